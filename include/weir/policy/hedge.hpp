// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/duration.hpp>
#include <weir/outcome.hpp>
#include <weir/policy/retry_budget.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>

namespace weir {

struct hedge_options {
  duration after = std::chrono::milliseconds(50);
  std::int64_t max = 2;  ///< attempts in total, 1 to 1000
  double quantile = 0;   ///< of the times to a value, used instead of `after`; 0: unused
  std::int64_t min_samples = 100;
  retry_budget* budget = nullptr;
};

}  // namespace weir

#include <weir/detail/toolkit/hedge.hpp>

namespace weir {

/// `op | hedge({...})`: if `op` takes too long, starts it again in parallel and takes the first
/// value.
///
/// The next attempt starts after `.after`, or at once when an attempt failed, until `.max` have
/// been started; `.after = unbounded` starts one only after a failure, 0 starts all at once. With
/// `.quantile` the delay is that quantile of the times to a value seen so far, once there are
/// `.min_samples` of them; these samples belong to the policy, are shared by all its operations,
/// and stay on its home loop (errc::wrong_loop). Ensures: the losers are cancelled (hedge_lost) and
/// joined before the result is delivered; if all fail, the last error is the result. After a denial
/// the running attempt continues, and the budget is not asked again. Events: `hedge` (number: of
/// the further attempt, from 2 on), `budget_denied`, `value_discarded`, `suppressed`. Bad options:
/// errc::invalid_argument.
inline detail::hedge_policy hedge(hedge_options options = {}) {
  return detail::hedge_policy(options);
}

}  // namespace weir
