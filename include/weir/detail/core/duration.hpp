// SPDX-License-Identifier: MIT
// Part of <weir/duration.hpp>, which includes it after the declarations it needs.
#pragma once

#include <chrono>

namespace weir {

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
