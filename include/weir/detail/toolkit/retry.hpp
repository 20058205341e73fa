// SPDX-License-Identifier: MIT
// Part of <weir/policy/retry.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/outcome.hpp>
#include <weir/policy/backoff.hpp>
#include <weir/policy/retry_budget.hpp>
#include <weir/time.hpp>

namespace weir {

namespace detail {

/// Calls the predicate of a retry; null if it has none.
using retry_question = retry_decision (*)(void* predicate, const std::exception_ptr& error);

/// The options of a retry, checked.
struct retry_rules {
  explicit retry_rules(const retry_options& given);
  delay_rules delays;
  std::int64_t attempts;
  std::shared_ptr<budget_core> budget;
};

/// One run of a retry: counts its attempts and decides after each failure.
class retry_run {
 public:
  retry_run(const retry_rules& rules, bool holds_retry) : rules_(rules) {
    if (holds_retry) enter_list();
  }
  /// For a run that outlives the frames that use it, such as a stream's: it is in no list.
  explicit retry_run(const retry_rules& rules) : rules_(rules), has_frame_(false) {}
  retry_run(const retry_run&) = delete;
  retry_run& operator=(const retry_run&) = delete;
  ~retry_run() {
    if (listed_ != nullptr) leave_list();
  }
  /// `made` attempts failed in an earlier life.
  void go_on_after(std::int64_t made);
  void begin_attempt();
  /// The same; the first attempt is no event.
  void begin_quietly();
  /// The delay before the next attempt; negative: `out` is the result. An error of the predicate
  /// becomes the result.
  duration after_failure(outcome_base& out, retry_question ask, void* predicate);

 private:
  friend struct retry_list;
  duration plan(outcome_base& out, const retry_decision& decided);
  void enter_list();
  void leave_list() noexcept;
  void emit_amplified();

  const retry_rules& rules_;
  delay_sequence delays_;
  std::int64_t attempt_ = 0;
  std::int64_t reported_ = 0;      // the largest product reported for this run
  const frame* listed_ = nullptr;  // where nested retries find this one
  bool has_frame_ = true;
};

template <class T, class P, class Op>
struct retry_coroutine {
  static task<T> run(P policy, Op op) {
    retry_run run(policy.rules(), has_retry<std::remove_cvref_t<Op>>);
    outcome<T> out;
    auto call = [&] { return attempt_task(op); };
    for (;;) {
      run.begin_attempt();
      co_await detail::into(out, call);
      if (out.is_value()) [[likely]]
        break;
      const duration pause = run.after_failure(out, policy.question(), policy.predicate());
      if (pause < duration::zero()) break;
      if (pause > duration::zero()) co_await sleep(pause);
      out.reset();
    }
    co_await detail::finish_as(out);
    co_return out.take();
  }
};

/// A retry with a predicate that selects the errors to retry.
template <class F>
class retry_when : public policy_of<retry_when<F>> {
 public:
  using is_retry = void;
  static constexpr bool runs_again = true;
  retry_when(retry_rules rules, F fn) : rules_(std::move(rules)), fn_(std::move(fn)) {}

  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return retry_coroutine<T, P, Op>::run(std::forward<P>(policy), std::forward<Op>(op));
  }
  const retry_rules& rules() const noexcept { return rules_; }
  retry_question question() const noexcept {
    return [](void* fn, const std::exception_ptr& error) -> retry_decision {
      return (*static_cast<F*>(fn))(error);
    };
  }
  void* predicate() noexcept { return std::addressof(fn_); }

 private:
  retry_rules rules_;
  F fn_;
};

/// The policy made by weir::retry.
class retry_policy : public policy_of<retry_policy> {
 public:
  using is_retry = void;
  static constexpr bool runs_again = true;
  explicit retry_policy(const retry_options& options) : rules_(options) {}

  /// Asks `predicate(const std::exception_ptr&)` (bool or retry_decision) once after each failed
  /// attempt except the last; for an error_group it asks for each leaf, and all must be retryable.
  /// If it throws, that error is the result.
  template <class F>
  retry_when<std::decay_t<F>> when(F&& predicate) const {
    static_assert(
        std::is_invocable_r_v<retry_decision, std::decay_t<F>&, const std::exception_ptr&>,
        "the predicate of retry takes a const std::exception_ptr& and returns bool or "
        "weir::retry_decision");
    return {rules_, std::forward<F>(predicate)};
  }

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return retry_coroutine<T, P, Op>::run(std::forward<P>(policy), std::forward<Op>(op));
  }
  const retry_rules& rules() const noexcept { return rules_; }
  static retry_question question() noexcept { return nullptr; }
  static void* predicate() noexcept { return nullptr; }

 private:
  retry_rules rules_;
};

}  // namespace detail
}  // namespace weir
