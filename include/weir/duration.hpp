// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
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

namespace detail {

/// `at + by`, saturating instead of overflowing.
constexpr time_point saturating_add(time_point at, duration by) noexcept {
  if (by > duration::zero() && at > time_point::max() - by) return time_point::max();
  if (by < duration::zero() && at < time_point::min() - by) return time_point::min();
  return at + by;
}

/// Any chrono duration as nanoseconds; saturates beyond the range of 64 bits.
template <class Rep, class Period>
constexpr duration saturating_cast(std::chrono::duration<Rep, Period> d) noexcept {
  using wide = std::chrono::duration<double, std::nano>;
  if (wide(d).count() >= 9.2e18) return duration::max();
  if (wide(d).count() <= -9.2e18) return duration::min();
  return std::chrono::duration_cast<duration>(d);
}

}  // namespace detail
}  // namespace weir
