// SPDX-License-Identifier: MIT
// Part of <weir/every.hpp>, which includes it after the declarations it needs.
#pragma once

#include <memory>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/duration.hpp>
#include <weir/future.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>
#include <weir/time.hpp>

namespace weir {

namespace detail {

class tick_wait;
struct every_start;

/// Shared state of a periodic job's handle, waits and fiber.
struct every_control {
  tick_wait* sleeping = nullptr;  // between two runs
  reason_ref parent_reason;       // the scope was cancelled before it was stopped
  bool stopped = false;
  bool waited = false;
};
using every_control_ref = std::shared_ptr<every_control>;

/// Waits for the next run; false if the job was stopped.
class tick_wait : public sleep_wait {
 public:
  struct args {
    time_point when;
    every_control* control;  // null: it cannot be stopped
  };
  using result = bool;

  explicit tick_wait(args&& a) noexcept : sleep_wait(ticks(a.when)), control_(a.control) {}
  ~tick_wait() { leave(); }
  bool try_now() const noexcept { return control_ != nullptr && control_->stopped; }
  bool poll() override { return try_now(); }
  void arm();
  void link() override { arm(); }
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  bool take() const noexcept { return !try_now(); }
  /// The job was stopped: ends the wait for the next run.
  void wake() noexcept;

 private:
  void leave() noexcept {
    if (control_ != nullptr && control_->sleeping == this) control_->sleeping = nullptr;
  }
  every_control* control_;
};

/// Computes when the next run of a periodic job is due.
class ticker {
 public:
  /// errc::invalid_argument unless the interval is positive.
  ticker(duration interval, every_options options);
  void stop_with(every_control_ref control) noexcept { control_ = std::move(control); }
  /// Counted from now: the start of the job, or the end of the last run.
  pending<tick_wait> next();
  bool stopped() const noexcept { return control_ != nullptr && control_->stopped; }

 private:
  void skip_missed(time_point now);

  duration interval_;
  time_point due_{};  // of the last run
  every_control_ref control_;
  bool fixed_rate_;
  bool begun_ = false;
};

/// Each run has its own context, so that its defers run before the next run. Its error reaches even
/// a cancelled caller, as if there were no region.
struct every_region final : plain_region {
  struct setup {};
  explicit every_region(setup) : plain_region(region_kind::settle, "every") {}
  verdict judge(outcome_base& out);
};

/// It may have been stopped or cancelled since the tick. No other fiber runs from here to the first
/// statement of the operation, so no run begins after a stop.
template <class Op>
task<> run_if_wanted(const ticker& clock, Op& op, context& c) {
  const bool wanted = !clock.stopped() && !c.cancel_requested();
  if (wanted) (void)co_await detail::quietly(detail::as_task(op, c));
}

template <class Op>
task<> run_every(ticker clock, Op op) {
  auto once = [&](context& c) { return detail::run_if_wanted(clock, op, c); };
  for (;;) {
    const bool due = co_await clock.next();
    if (!due) co_return;
    co_await run_region<void, every_region, decltype(once)>({}, once);
  }
}

template <class Op>
void require_repeatable(const Op& op) {
  static_assert(callable_op<Op>,
                "weir::every and weir::start_every run their operation again and again: give a "
                "callable that makes it, for example [&] { return work(); }");
  if (is_empty_callable(op)) raise_empty_job();
}

/// Waits for the end of a periodic job.
class every_wait : public future_wait {
 public:
  struct args {
    core_ref job;
    every_control_ref control;
  };
  using result = void;

  explicit every_wait(args&& a) : future_wait(std::move(a.job)), control_(std::move(a.control)) {}
  bool try_now() noexcept;
  bool poll() override { return try_now(); }
  void describe(dump_line& line) const override;
  bool failed() const noexcept;
  void take();

 private:
  /// Why it ended, if neither a job's error nor stop() was the reason.
  const reason_ref* cancelled_by() const noexcept;

  every_control_ref control_;
  bool begun_ = false;    // this is the job's one wait
  bool refused_ = false;  // another wait came first
};

}  // namespace detail
}  // namespace weir
