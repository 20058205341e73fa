// SPDX-License-Identifier: MIT
// Part of <weir/durable/step.hpp>, which includes it after the declarations it needs.
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/durable/command.hpp>
#include <weir/durable/serde.hpp>
#include <weir/local.hpp>
#include <weir/policy/retry.hpp>

namespace weir {

namespace detail {

template <class F>
struct step_result {
  using type = std::remove_cvref_t<std::invoke_result_t<F&>>;
};
template <class F>
  requires is_task<std::remove_cvref_t<std::invoke_result_t<F&>>>
struct step_result<F> {
  using type = typename std::remove_cvref_t<std::invoke_result_t<F&>>::value_type;
};

/// Calls a step's function, plain or not, as a task.
template <class T, class F>
struct step_call {
  static task<T> run(F& fn) {
    using given = std::remove_cvref_t<std::invoke_result_t<F&>>;
    if constexpr (is_task<given>) {
      co_return co_await fn();
    } else {
      co_return fn();
    }
  }
};

/// The source of step_key().
class step_source {
 public:
  virtual std::string key() = 0;
  /// The key of the object whose handler runs the step; empty if there is none.
  virtual std::string_view object_key() const noexcept { return {}; }

 protected:
  step_source() = default;
  step_source(const step_source&) = default;
  step_source& operator=(const step_source&) = default;
  ~step_source() = default;
};

/// A step outside durable runs; its key is generated when it is first requested.
class plain_step final : public step_source {
 public:
  std::string key() override;

 private:
  std::string key_;
};

struct plain_step_region final : local_region_base {
  using setup = plain_step*;
  explicit plain_step_region(setup of);
};

/// Throws weir::terminal_error in place of an error of `encode`: the step has run, and another
/// attempt would repeat it.
[[noreturn]] void raise_unrecordable();
template <class T>
std::string encode_result(const T& value) {
  try {
    return encode(value);
  } catch (...) {
    raise_unrecordable();
  }
}

template <class T, class F>
class task_body_of final : public step_body {
 public:
  explicit task_body_of(F& fn) noexcept : fn_(fn) {}
  task<std::string> attempt() override { return run(fn_); }

 private:
  static task<std::string> run(F& fn) {
    if constexpr (std::is_void_v<T>) {
      co_await fn();
      co_return encode<void>();
    } else {
      const T value = co_await fn();
      co_return encode_result(value);
    }
  }
  F& fn_;
};

template <class T, class F>
class function_body_of final : public function_body {
 public:
  explicit function_body_of(F& fn) noexcept : fn_(fn) {}
  std::string call() override {
    if constexpr (std::is_void_v<T>) {
      fn_();
      return encode<void>();
    } else {
      return encode_result<T>(fn_());
    }
  }

 private:
  F& fn_;
};

template <class T, class F>
using step_body_of = std::conditional_t<is_task<std::remove_cvref_t<std::invoke_result_t<F&>>>,
                                        task_body_of<T, F>, function_body_of<T, F>>;

/// The message of an exception.
std::string message_of(const std::exception_ptr& error);
/// Of a terminal_error; null: none, or another error.
std::shared_ptr<const terminal_facts> facts_of(const std::exception_ptr& error);
/// The code that is recorded for the failure of a step: errc::terminal, unless the step misused
/// weir.
errc code_of(const std::exception_ptr& error);

/// The attempts of a step, inside or outside a run: which errors are not retried, and the error
/// after the last attempt.
class step_attempts {
 public:
  /// `made` attempts failed before.
  step_attempts(const retry_options& options, std::int64_t made) : rules_(options), run_(rules_) {
    if (made > 0) run_.go_on_after(made);
  }
  /// Every step makes a first attempt, so only further ones are events.
  void begin() { run_.begin_quietly(); }
  /// The delay before the next attempt; negative: `out` is the result.
  duration after_failure(outcome_base& out);

 private:
  retry_rules rules_;
  retry_run run_;
};

template <class T, class F>
struct step_coroutine {
  static task<T> journaled(command_setup setup, F fn, step_options options) {
    step_body_of<T, F> body(fn);
    setup.body = &body;
    setup.retry = &options.retry;
    pending<answer_wait<T>> answer(std::move(setup));
    co_return co_await std::move(answer);
  }
  static task<T> plain(F fn, step_options options) {
    step_attempts attempts(options.retry, 0);
    plain_step step;
    outcome<T> out;
    auto once = [&](context&) { return step_call<T, F>::run(fn); };
    auto call = [&] { return run_region<T, plain_step_region, decltype(once)>(&step, once); };
    for (;;) {
      attempts.begin();
      co_await detail::into(out, call);
      if (out.is_value()) break;
      const duration pause = attempts.after_failure(out);
      if (pause < duration::zero()) break;
      if (pause > duration::zero()) co_await sleep(pause);
      out.reset();
    }
    co_await detail::finish_as(out);
    co_return out.take();
  }
};

/// Rejects bad options before the step runs, and a budget that the run itself created, because
/// steps run outside it.
void check_step(const retry_options& given);

template <class F>
auto make_step(command_kind kind, const char* what, std::string_view name, F&& fn,
               const step_options& options, std::source_location site) {
  using plain = std::decay_t<F>;
  static_assert(std::is_invocable_v<plain&>, "the function of a step takes no arguments");
  using result = typename step_result<plain>::type;
  if (is_empty_callable(fn)) raise_empty_job();
  check_step(options.retry);
  using coroutine = step_coroutine<result, plain>;
  if (run_seam* run = run_outside_step(what)) {
    command_setup setup(*run, kind, site);
    setup.name = name;
    return coroutine::journaled(std::move(setup), std::forward<F>(fn), options);
  }
  return coroutine::plain(std::forward<F>(fn), options);
}

}  // namespace detail
}  // namespace weir
