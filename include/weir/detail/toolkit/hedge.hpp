// SPDX-License-Identifier: MIT
// Part of <weir/policy/hedge.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

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

namespace detail {

class hedge_samples;
class hedge_core;

/// The options of a hedge, checked, with what its operations share.
struct hedge_rules {
  explicit hedge_rules(const hedge_options& given);
  hedge_options options;
  std::shared_ptr<budget_core> budget;
  std::shared_ptr<hedge_samples> samples;  // null without a quantile
};

/// Waits until an attempt ends or the next one is due.
class hedge_wait : public simple_wait<hedge_wait, local_wait>, public deadline_node {
 public:
  using args = hedge_core*;
  using result = void;
  explicit hedge_wait(hedge_core*&& core) noexcept : core_(core) {}
  bool try_now() const noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void expired() noexcept override;
  void blockers(blocker_list& list) const override;
  void take() const noexcept {}
  void wake() noexcept;

 private:
  hedge_core* core_;
};

/// The attempts of one run. Each is a fiber in its own region; the first value decides.
///
/// Invariant: losers are cancelled from an attempt only while the waiting strand is parked
/// (`parked_`), because cancelling the region would also end a strand that is about to wait.
class hedge_core {
 public:
  explicit hedge_core(const hedge_rules& rules);
  hedge_core(const hedge_core&) = delete;
  hedge_core& operator=(const hedge_core&) = delete;

  scope& region() noexcept { return region_; }
  /// Starts the next attempt; emits the event `hedge` unless it is the first.
  void launch(task<> attempt);
  /// Whether to start another attempt now; asks the budget once.
  bool wants_another();
  bool decided() const noexcept { return decided_; }
  bool waits_for_nothing() const noexcept { return running_ == 0; }
  pending<hedge_wait> news() noexcept { return pending<hedge_wait>(this); }
  void cancel_losers() noexcept;
  quiet_wait_op<join_wait> joined() {
    return quiet_wait_op<join_wait>({&region_, join_wait::use::end});
  }

 protected:
  ~hedge_core() = default;
  /// An attempt has a value. False: another attempt was first.
  bool value_came(time_point started);
  /// An attempt failed; `before`: the result so far. False: a value was first.
  bool failure_came(const outcome_base& failed, const outcome_base& before);

 private:
  friend class hedge_wait;
  bool may_start_more() const noexcept { return started_ < rules_.options.max && !denied_; }

  const hedge_rules& rules_;
  scope region_{region_kind::arms, "hedge"};
  hedge_wait* parked_ = nullptr;
  std::int64_t started_ = 0;
  std::int64_t running_ = 0;
  time_point next_at_ = time_point::max();
  bool due_ = false;      // the delay is over
  bool failed_ = false;   // an attempt failed since the last one was started
  bool denied_ = false;   // the budget denied: it is not asked again
  bool decided_ = false;  // there is a value
};

template <class T>
class hedge_run : public hedge_core {
 public:
  using hedge_core::hedge_core;
  void ended(outcome<T>&& out, time_point started) {
    if (out.is_value() ? value_came(started) : failure_came(out, result)) {
      keep(std::move(out));
    } else {
      out.drop_value();
    }
  }
  outcome<T> result;

 private:
  // If moving the value throws, that error is the result.
  void keep(outcome<T>&& out) noexcept {
    try {
      result.adopt(std::move(out));
    } catch (...) {
      result.set_error(std::current_exception());
    }
  }
};

time_point hedge_now() noexcept;

template <class T, class P, class Op>
struct hedge_coroutine {
  static task<> attempt(hedge_run<T>& attempts, std::remove_reference_t<Op>& op) {
    const time_point started = hedge_now();
    outcome<T> out;
    try {
      out.adopt(co_await run_settle<T, std::remove_reference_t<Op>&>(op));
    } catch (...) {  // settle does not throw, but a move may
      out.set_error(std::current_exception());
    }
    attempts.ended(std::move(out), started);
  }
  static task<T> run(P policy, Op op) {
    hedge_run<T> attempts(policy.rules());
    enter_region(attempts.region());
    attempts.launch(attempt(attempts, op));
    for (;;) {
      if (attempts.wants_another()) {
        attempts.launch(attempt(attempts, op));
        continue;
      }
      if (attempts.waits_for_nothing()) break;
      co_await attempts.news();
      if (attempts.decided()) break;
    }
    attempts.cancel_losers();
    co_await attempts.joined();
    leave_region(attempts.region());
    co_await detail::finish_as(attempts.result);
    co_return attempts.result.take();
  }
};

/// The policy made by weir::hedge.
class hedge_policy : public policy_of<hedge_policy> {
 public:
  static constexpr bool runs_again = true;
  explicit hedge_policy(const hedge_options& options) : rules_(options) {}

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return hedge_coroutine<T, P, Op>::run(std::forward<P>(policy), std::forward<Op>(op));
  }
  const hedge_rules& rules() const noexcept { return rules_; }

 private:
  hedge_rules rules_;
};

}  // namespace detail
}  // namespace weir
