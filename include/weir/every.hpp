// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/duration.hpp>
#include <weir/future.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>
#include <weir/time.hpp>

namespace weir {

struct every_options {
  bool fixed_rate = false;  ///< start at multiples of the interval, instead of after the previous
                            ///< run
};

}  // namespace weir

#include <weir/detail/toolkit/every.hpp>

namespace weir {

/// The handle of a periodic job, made by `start_every`: stops it and waits for its end. Destroying
/// it stops the job.
///
/// Threads: home loop only (errc::wrong_loop). May outlive the scope and the loop of its job.
class [[nodiscard]] every_handle {
 public:
  every_handle(every_handle&&) noexcept = default;
  every_handle& operator=(every_handle&& other) noexcept {
    every_handle old(std::move(*this));
    job_ = std::move(other.job_);
    control_ = std::move(other.control_);
    return *this;
  }
  ~every_handle();

  /// Prevents further runs; a current run finishes. Returns without waiting; a second call does
  /// nothing.
  void stop();

  /// Waits for the end of the job: returns if it was stopped, rethrows its error, also after
  /// `stop()`; cancelled_error if its scope was cancelled or had ended before `stop()`. A second
  /// wait: errc::already_waited. From the job itself: errc::would_deadlock.
  detail::pending<detail::every_wait> wait() const;

 private:
  friend struct detail::every_start;
  every_handle(detail::core_ref job, detail::every_control_ref control) noexcept
      : job_(std::move(job)), control_(std::move(control)) {}
  void stop_now() noexcept;

  detail::core_ref job_;
  detail::every_control_ref control_;
};

namespace detail {

/// Starts the loop of a periodic job as a service of `s`.
struct every_start {
  static every_handle begin(scope& s, task<> loop, every_control_ref control,
                            std::source_location site);
};

}  // namespace detail

/// Calls `op` periodically and runs what it returns: first after one interval, then one interval
/// after the end of the last run. Runs never overlap. An error ends it and is rethrown; a value is
/// dropped.
///
/// `fixed_rate`: the runs start at multiples of the interval, without drift; those missed because a
/// run took too long are skipped (one event `every_skipped` per gap, with their number).
template <class Rep, class Period, class Op>
task<> every(std::chrono::duration<Rep, Period> interval, every_options options, Op&& op) {
  detail::ticker clock(detail::saturating_cast(interval), options);
  detail::require_repeatable<std::decay_t<Op>>(op);
  return detail::run_every<std::decay_t<Op>>(std::move(clock), std::forward<Op>(op));
}
template <class Rep, class Period, class Op>
task<> every(std::chrono::duration<Rep, Period> interval, Op&& op) {
  return weir::every(interval, every_options{}, std::forward<Op>(op));
}

/// The same as a background child of `s`, stopped by its handle. An error stays in the handle and
/// cancels nothing, whatever the failure policy of `s`; if it was never observed there, it is
/// raised at the end of `s`. On a cancelled scope nothing is started.
template <class Rep, class Period, class Op>
every_handle start_every(scope& s, std::chrono::duration<Rep, Period> interval,
                         every_options options, Op&& op,
                         std::source_location site = std::source_location::current()) {
  detail::ticker clock(detail::saturating_cast(interval), options);
  detail::require_repeatable<std::decay_t<Op>>(op);
  auto control = std::make_shared<detail::every_control>();
  clock.stop_with(control);
  return detail::every_start::begin(
      s, detail::run_every<std::decay_t<Op>>(std::move(clock), std::forward<Op>(op)),
      std::move(control), site);
}
template <class Rep, class Period, class Op>
every_handle start_every(scope& s, std::chrono::duration<Rep, Period> interval, Op&& op,
                         std::source_location site = std::source_location::current()) {
  return weir::start_every(s, interval, every_options{}, std::forward<Op>(op), site);
}

}  // namespace weir
