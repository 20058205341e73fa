// SPDX-License-Identifier: MIT
// How a policy runs its operation: into an outcome, without a throw.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/policy/settle.hpp>

namespace weir::detail {

/// Awaits the task that `make()` returns and stores how it ended in `out`; an exception of `make()`
/// counts as its error. A cancellation point, but no catch edge: a cancelled fiber is unwound
/// through it.
template <class T, class Make>
class attempt_await {
 public:
  attempt_await(outcome<T>& out, Make& make) noexcept : out_(out), make_(make) {}
  attempt_await(const attempt_await&) = delete;
  attempt_await& operator=(const attempt_await&) = delete;

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> me) {
    try {
      out_.own_frame(make_().release());
    } catch (...) {
      out_.set_error(std::current_exception());
      return false;
    }
    return start_child(me.promise(), out_);
  }
  void await_resume() noexcept { out_.destroy_frame(); }

 private:
  outcome<T>& out_;
  Make& make_;
};

template <class T, class Make>
struct attempt_op {
  outcome<T>* out;
  Make* make;
  attempt_await<T, Make> weir_await() && { return attempt_await<T, Make>(*out, *make); }
};
template <class T, class Make>
attempt_op<T, Make> into(outcome<T>& out, Make& make) {
  return {&out, &make};
}

/// The context of one run of a callable that takes one: its defers run at the end of that run.
struct attempt_region final : plain_region {
  struct setup {};
  explicit attempt_region(setup) : plain_region(region_kind::settle, "attempt") {}
};

template <class Op>
inline constexpr bool wants_context = callable_op<Op> && !plain_call<Op>;

/// One run of an operation that is kept elsewhere.
template <class Op>
task<result_t<Op>> attempt_task(Op& op) {
  if constexpr (wants_context<Op>) {
    return run_region<result_t<Op>, attempt_region, Op&>({}, op);
  } else {
    return detail::as_task(op, *current->top);
  }
}

}  // namespace weir::detail
