// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include <weir/detail/frame.hpp>

namespace weir::detail {

/// How an object calls itself in errors: "queue 'orders'".
struct object_name {
  const char* kind;
  std::string_view name;
};

/// Where an object with a home belongs: to the loop it was made in, or, if it was made outside, to
/// the first one that uses it. A home whose loop has ended passes to the next loop that uses the
/// object; use on another one while it lives is errc::wrong_loop.
///
/// This is the one check of rule 2 for queues, locks and governors.
class home {
 public:
  home() noexcept : serial_(current_loop_serial()) {}
  home(const home&) = delete;
  home& operator=(const home&) = delete;

  /// The quick check before each use; if it says no, `settle` decides.
  bool is_here() const noexcept { return serial_ == current_loop_serial(); }
  /// Passes on to this loop, or throws. `across` is what to use where an object is needed on
  /// several loops. Outside any loop: errc::no_current_fiber if the call `needs_loop`.
  void settle(const object_name& whose, const char* across, bool needs_loop);
  /// The serial number of its loop; 0 if it has none yet.
  std::uint32_t serial() const noexcept { return serial_; }

 private:
  std::uint32_t serial_;
};

}  // namespace weir::detail
