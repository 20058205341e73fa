// SPDX-License-Identifier: MIT
// How long to wait before trying again: what retry and supervise have in common.
#pragma once

#include <chrono>
#include <cstdint>

#include <weir/duration.hpp>

namespace weir {

/// How chance spreads a delay `d`, so that many who failed together do not come back together.
enum class jitter : std::uint8_t {
  full,          ///< anywhere in [0, d)
  equal,         ///< anywhere in [d / 2, d)
  decorrelated,  ///< anywhere in [base, 3 x the last one), at most the ceiling
  none,          ///< d
};

/// The delays before restarts: `base`, then `factor` times the last one, up to `ceiling`. A life of
/// at least `reset_after` starts again at `base`.
struct backoff {
  duration base{};
  double factor = 2;
  duration ceiling = std::chrono::seconds(30);
  weir::jitter jitter = weir::jitter::none;
  duration reset_after = unbounded;
};

namespace detail {

/// What a sequence of delays depends on.
struct delay_rules {
  duration base;
  double factor;
  duration ceiling;
  jitter how;
  /// Throws errc::invalid_argument, naming the policy and the option.
  void check(const char* policy) const;
};

/// The delays of one run, one after the other. Saturates at the ceiling, whatever the factor.
class delay_sequence {
 public:
  /// The next one; with jitter it draws from the loop's random numbers.
  duration next(const delay_rules& rules);
  void restart() noexcept { begun_ = false; }
  /// Begins as after `n` delays.
  void skip(const delay_rules& rules, std::int64_t n);

 private:
  double planned_ns_ = 0;  // the last delay before chance and ceiling
  duration last_{};
  bool begun_ = false;
};

}  // namespace detail
}  // namespace weir
