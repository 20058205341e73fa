// SPDX-License-Identifier: MIT
// Back-off: the delays between attempts, for retry and supervise.
#pragma once

#include <chrono>
#include <cstdint>

#include <weir/duration.hpp>

namespace weir {

/// How a delay `d` is randomised, so that callers that failed together do not retry together.
enum class jitter : std::uint8_t {
  full,          ///< uniform in [0, d)
  equal,         ///< uniform in [d / 2, d)
  decorrelated,  ///< uniform in [base, 3 x the last delay), at most the ceiling
  none,          ///< d
};

/// The delays before restarts: `base`, then `factor` times the last one, up to `ceiling`. After a
/// life of at least `reset_after` it starts again at `base`.
struct backoff {
  duration base{};
  double factor = 2;
  duration ceiling = std::chrono::seconds(30);
  weir::jitter jitter = weir::jitter::none;
  duration reset_after = unbounded;
};

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
