// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include <weir/detail/core/frame.hpp>

namespace weir::detail {

/// The name of an object in errors: "queue 'orders'".
struct object_name {
  const char* kind;
  std::string_view name;
};

/// The loop that an object belongs to: the one it was created in, or, if it was created outside,
/// the first that uses it. If its loop has ended, the object binds to the next loop that uses it;
/// use on another loop while its loop runs is errc::wrong_loop.
///
/// The one home check of queues, locks and governors.
class home {
 public:
  home() noexcept : serial_(current_loop_serial()) {}
  home(const home&) = delete;
  home& operator=(const home&) = delete;

  /// The quick check before each use; if it fails, `settle` decides.
  bool is_here() const noexcept { return serial_ == current_loop_serial(); }
  /// Binds to this loop, or throws. `across` names the alternative for use on several loops.
  /// Outside any loop: errc::no_current_fiber if the call `needs_loop`.
  void settle(const object_name& whose, const char* across, bool needs_loop);
  /// The serial number of its loop; 0 if it has none yet.
  std::uint32_t serial() const noexcept { return serial_; }

 private:
  std::uint32_t serial_;
};

}  // namespace weir::detail
