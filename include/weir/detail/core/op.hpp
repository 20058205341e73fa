// SPDX-License-Identifier: MIT
// What counts as an operation, and how each kind becomes a task.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <weir/context.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>
#include <weir/task.hpp>

namespace weir {

template <class T>
class future;
template <class T>
class child;

namespace detail {

template <class T>
inline constexpr bool is_future = false;
template <class T>
inline constexpr bool is_future<future<T>> = true;
template <class T>
inline constexpr bool is_future<child<T>> = true;

/// A wait, a task or a future: directly awaitable.
template <class T>
concept direct_op = is_task<T> || is_pending<T> || is_future<T>;

template <class F>
concept plain_call = std::invocable<F&>;
template <class F>
concept context_call = std::invocable<F&, context&>;

template <class F>
struct call_result {};
template <plain_call F>
struct call_result<F> {
  using type = std::remove_cvref_t<std::invoke_result_t<F&>>;
};
template <class F>
  requires(context_call<F> && !plain_call<F>)
struct call_result<F> {
  using type = std::remove_cvref_t<std::invoke_result_t<F&, context&>>;
};

template <class F>
concept callable_op = !direct_op<F> && requires { typename call_result<F>::type; } &&
                      direct_op<typename call_result<F>::type>;

/// Detects any operator() of a class: if it has one, the name is ambiguous in `probe`.
struct call_operator {
  void operator()();
};
template <class F>
struct call_operator_probe : F, call_operator {};
template <class F>
concept has_call_operator =
    std::is_class_v<std::remove_cvref_t<F>> && !std::is_final_v<std::remove_cvref_t<F>> &&
    !requires { &call_operator_probe<std::remove_cvref_t<F>>::operator(); };
/// A lambda whose body does not compile: its operator() has no type. The compiler has already
/// reported why.
template <class F>
concept broken_callable = has_call_operator<F> && !plain_call<F> && !context_call<F> &&
                          !requires { &std::remove_cvref_t<F>::operator(); };

/// Anything that can be run: see the first paragraph of docs/reference/core.md.
template <class Op>
concept operation = direct_op<std::remove_cvref_t<Op>> || callable_op<std::remove_cvref_t<Op>>;

template <class Op>
struct result_of {};
template <class T>
struct result_of<task<T>> {
  using type = T;
};
template <class T>
struct result_of<quiet_task<T>> {
  using type = T;
};
template <class W>
struct result_of<pending<W>> {
  // A reference (oneshot::receive) is stored as a copy.
  using type = std::remove_cvref_t<typename W::result>;
};
template <class T>
struct result_of<future<T>> {
  using type = T;
};
template <class T>
struct result_of<child<T>> {
  using type = T;
};
template <callable_op F>
struct result_of<F> : result_of<typename call_result<F>::type> {};

/// The value type of an operation.
template <class Op>
using result_t = typename result_of<std::remove_cvref_t<Op>>::type;

/// The type in which an operation is stored: a child is stored as a future.
template <class Op>
struct held {
  using type = std::decay_t<Op>;
};
template <class Op>
  requires is_future<std::remove_cvref_t<Op>>
struct held<Op> {
  using type = future<result_t<Op>>;
};
template <class Op>
using held_t = typename held<Op>::type;

/// True for a null function pointer or an empty std::function.
template <class F>
bool is_empty_callable(const F& f) noexcept {
  if constexpr (std::is_pointer_v<F>) {
    return f == nullptr;
  } else if constexpr (requires { f.operator bool(); }) {
    return !static_cast<bool>(f);
  } else {
    return false;
  }
}

template <class W>
task<std::remove_cvref_t<typename W::result>> run_wait(pending<W> wait) {
  co_return co_await std::move(wait);
}
/// Observes a future: its value copied, its error, or cancelled as it was. In weir/future.hpp.
template <class T>
task<T> run_future(future<T> observed);

[[noreturn]] void raise_empty_job();

/// An operation as a task. Callables are referred to and must outlive the task.
template <class Op>
task<result_t<Op>> as_task(Op&& op, context& c) {
  using plain = std::remove_cvref_t<Op>;
  if constexpr (is_task<plain>) {
    if (!op) raise(errc::already_taken, "task run twice: a task runs only once");
    return task<result_t<plain>>(op.release());
  } else if constexpr (is_pending<plain>) {
    return run_wait(std::move(op));
  } else if constexpr (is_future<plain>) {
    return run_future<result_t<plain>>(op);
  } else if constexpr (requires { op.weir_start(c); }) {
    return op.weir_start(c);
  } else {
    if (is_empty_callable(op)) raise_empty_job();
    if constexpr (plain_call<plain>) {
      return detail::as_task(op(), c);
    } else {
      return detail::as_task(op(c), c);
    }
  }
}

struct make_task {
  template <class Op>
  static task<result_t<Op>> task_of(Op& op, context& c) {
    return detail::as_task(op, c);
  }
};

}  // namespace detail
}  // namespace weir
