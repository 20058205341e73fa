// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/toolkit/pipe.hpp>

namespace weir {

namespace detail {

/// A callable as the innermost operation of a pipeline.
template <class F>
class callable_operation {
 public:
  using value = result_t<F>;

  template <class G>
  explicit callable_operation(std::in_place_t, G&& fn) : fn_(std::forward<G>(fn)) {}

  task<value> operator()() const {
    if constexpr (std::is_copy_constructible_v<F>) {
      return keep(std::as_const(fn_));
    } else {
      return attempt_task(fn_);
    }
  }

  // Below: for the library.
  auto weir_await() && { return keep(std::move(fn_)).weir_await(); }
  task<value> weir_start(context& c) { return detail::as_task(fn_, c); }

 private:
  static task<value> keep(F fn) { co_return co_await attempt_task(fn); }
  mutable F fn_;  // a callable may change itself when it is called
};

template <class F>
inline constexpr bool wants_context<callable_operation<F>> = wants_context<F>;

}  // namespace detail

/// Turns a callable that returns a task or wait into an operation, to which policies are applied.
///
/// `op(f) | timeout(1s) | retry({.attempts = 3})`, left to right from the innermost to the
/// outermost. The result is a callable again: `operator()` is const and returns a `task<T>`, any
/// number of times and also concurrently; several runs share nothing but the breakers, budgets,
/// governors and samples of their policies. It is copyable if `f` is; a run then keeps a copy, so
/// the operation may be destroyed before its task has ended. An empty callable: errc::empty_job.
/// Costs: one frame from the thread's cache per layer, no other memory unless something fails.
template <class F>
auto op(F&& fn) {
  using plain = std::decay_t<F>;
  static_assert(detail::operation<plain> || detail::broken_callable<plain>,
                "weir::op takes a callable that returns a weir::task or a wait");
  if constexpr (!detail::operation<plain>) {
    return detail::refused();
  } else if constexpr (detail::direct_op<plain>) {
    return detail::held_t<F>(std::forward<F>(fn));
  } else {
    if (detail::is_empty_callable(fn)) detail::raise_empty_job();
    return detail::callable_operation<plain>(std::in_place, std::forward<F>(fn));
  }
}

}  // namespace weir
