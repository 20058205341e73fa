// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <concepts>
#include <limits>

namespace weir {

using duration = std::chrono::nanoseconds;

/// A point on the steady clock of a loop: real, virtual (simulation) or hand-driven (test_clock).
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

/// A point on the wall clock of a loop.
using wall_time = std::chrono::sys_time<duration>;

/// Means "no limit" where a limit is expected. 0 never means infinite.
struct unbounded_t {
  template <std::integral Count>
  constexpr operator Count() const noexcept {
    return std::numeric_limits<Count>::max();
  }
  constexpr operator duration() const noexcept { return duration::max(); }
};
inline constexpr unbounded_t unbounded{};

}  // namespace weir

#include <weir/detail/core/duration.hpp>
