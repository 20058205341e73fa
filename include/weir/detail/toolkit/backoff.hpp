// SPDX-License-Identifier: MIT
// Part of <weir/policy/backoff.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>

#include <weir/duration.hpp>

namespace weir {

namespace detail {

/// The parameters of a delay sequence.
struct delay_rules {
  duration base;
  double factor;
  duration ceiling;
  jitter how;
  /// Throws errc::invalid_argument, naming the policy and the option.
  void check(const char* policy) const;
};

/// The successive delays of one run. Saturates at the ceiling for every factor.
class delay_sequence {
 public:
  /// The next delay; jitter draws from the loop's random numbers.
  duration next(const delay_rules& rules);
  void restart() noexcept { begun_ = false; }
  /// Skips the first `n` delays.
  void skip(const delay_rules& rules, std::int64_t n);

 private:
  double planned_ns_ = 0;  // the last delay before jitter and ceiling
  duration last_{};
  bool begun_ = false;
};

}  // namespace detail
}  // namespace weir
