// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>
#include <weir/time.hpp>

namespace weir {

struct chaos_options {
  double fault_rate = 0;    ///< 0: never, 1: always
  duration latency{};       ///< added before the operation
  double latency_rate = 0;  ///< probability of the latency
};

/// A fault that `chaos` injected.
class chaos_error : public error {
 public:
  chaos_error();
};

}  // namespace weir

#include <weir/detail/toolkit/chaos.hpp>

namespace weir {

/// `op | chaos({...})`: fault injection: sometimes delays `op`, sometimes throws a chaos_error
/// instead of running it.
///
/// Drawn from the loop's random numbers, so that a simulation repeats it. The latency is an
/// ordinary wait: cancellation ends it at once, and outer time limits include it. Event: `fault`.
/// Rates outside 0 to 1 or a negative latency: errc::invalid_argument.
inline detail::chaos_policy chaos(chaos_options options = {}) {
  return detail::chaos_policy(options);
}

}  // namespace weir
