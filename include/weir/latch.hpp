// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <weir/detail/flow/gate.hpp>
#include <weir/name.hpp>

namespace weir {

/// Opens permanently when it has been counted down to 0. Otherwise as `event`.
class latch {
 public:
  /// Negative: errc::invalid_argument; 0: open at once.
  explicit latch(std::int64_t count, weir::name name = {});

  /// Below 0: errc::invalid_argument, and nothing is counted.
  void count_down(std::int64_t by = 1);
  /// The remaining count.
  std::int64_t count() const noexcept { return count_; }
  /// Waits until the count is 0.
  [[nodiscard]] detail::pending<detail::gate_wait> wait() {
    gate_.check();
    return detail::pending<detail::gate_wait>({&gate_});
  }

 private:
  std::int64_t count_;
  detail::gate gate_;
};

}  // namespace weir
