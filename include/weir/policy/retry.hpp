// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/outcome.hpp>
#include <weir/policy/backoff.hpp>
#include <weir/policy/retry_budget.hpp>
#include <weir/time.hpp>

namespace weir {

struct retry_options {
  std::int64_t attempts = 3;  ///< in total, 1 to 1000, or weir::unbounded
  duration base = std::chrono::milliseconds(100);
  double factor = 2;
  duration ceiling = std::chrono::seconds(30);
  weir::jitter jitter = weir::jitter::full;
  retry_budget* budget = nullptr;
  bool reset_on_item = true;  ///< of retry_stream: a delivered item resets the count
};

/// The result of a `retry` predicate, which may also return bool.
class retry_decision {
 public:
  retry_decision(bool again) noexcept : again_(again) {}
  /// Retry after the usual delay.
  static retry_decision retry() noexcept { return {true}; }
  /// Retry after exactly `d`: ceiling and jitter do not apply, the deadline does.
  template <class Rep, class Period>
  static retry_decision retry_after(std::chrono::duration<Rep, Period> d) noexcept {
    retry_decision decided(true);
    decided.delay_ = detail::saturating_cast(d);
    return decided;
  }
  /// Do not retry: the error is the result.
  static retry_decision stop() noexcept { return {false}; }

  bool again() const noexcept { return again_; }
  const std::optional<duration>& delay() const noexcept { return delay_; }

 private:
  bool again_;
  std::optional<duration> delay_;
};

}  // namespace weir

#include <weir/detail/toolkit/retry.hpp>

namespace weir {

/// `op | retry({...})`: runs `op` again when it failed, at most `.attempts` times in total; then
/// the last error is the result.
///
/// Between attempts it waits `base`, `base` x `factor`, ..., at most `ceiling`, randomised by
/// `jitter`; a zero delay does not wait. It never starts a wait that would reach the enclosing
/// deadline: then the last error is the result. Cancels: cancellation is never retried and ends a
/// wait at once; a cancelled_error is not retried unless the predicate says so. Events: `attempt`
/// (number: counted from 1), `retry` (number: of the attempt that failed; before the wait),
/// `budget_denied`, and `retry_amplified` (number: the product) when a nested retry retries.
/// `.when(predicate)` selects the errors to retry. Bad options: errc::invalid_argument.
inline detail::retry_policy retry(retry_options options = {}) {
  return detail::retry_policy(options);
}

}  // namespace weir
