// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weir::detail {

/// Where a loop sleeps that waits for more than messages and timers. The loop owns it, from the
/// first operation that needs one; without one it sleeps on its bell's futex.
class parker {
 public:
  parker() = default;
  parker(const parker&) = delete;
  parker& operator=(const parker&) = delete;
  virtual ~parker() = default;

  /// Sleeps until something is ready, the bell's descriptor is written, or the time has passed
  /// (negative: no limit). Nothing is delivered yet: the loop still counts as asleep.
  virtual void sleep(std::int64_t nanoseconds) noexcept = 0;
  /// Delivers what `sleep` found; if it was not called since, what is ready now. True if there was
  /// anything.
  virtual bool deliver() noexcept = 0;
};

}  // namespace weir::detail
