// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/operation.hpp>
#include <weir/detail/core/pipe.hpp>

namespace weir {

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
