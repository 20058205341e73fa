// SPDX-License-Identifier: MIT
// `operation | policy` and `policy | policy`: how policies are applied.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>

namespace weir::detail {

/// Base of everything that may follow `op |`. A policy `P` provides a static `task<T> run<T,
/// Policy, Op>(Policy, Op)`, which runs the operation under the policy. Both arguments are values,
/// kept by the task, or references to objects that outlive it.
struct policy {
  static constexpr bool runs_again = false;  // may run its operation more than once
};

template <class P>
concept any_policy = std::derived_from<std::remove_cvref_t<P>, policy>;

template <class First, class Second>
class pipeline;
template <class P>
inline constexpr bool is_pipeline = false;
template <class First, class Second>
inline constexpr bool is_pipeline<pipeline<First, Second>> = true;

/// A callable operation under a policy: again a callable operation, re-runnable, copyable if its
/// callable is. A run keeps copies of both if they are copyable, so the object may be destroyed
/// first; a move-only operation must outlive its runs.
template <class Op, class P>
class piped {
 public:
  using value = result_t<Op>;

  template <class O, class Q>
  piped(O&& op, Q&& p) : op_(std::forward<O>(op)), policy_(std::forward<Q>(p)) {}

  task<value> operator()() const {
    if constexpr (std::is_copy_constructible_v<Op> && std::is_copy_constructible_v<P>) {
      return P::template run<value, P, Op>(std::as_const(policy_), std::as_const(op_));
    } else {
      return P::template run<value, P&, Op&>(policy_, op_);
    }
  }

  // Below: for the library.
  auto weir_await() && {
    return P::template run<value, P, Op>(std::move(policy_), std::move(op_)).weir_await();
  }
  /// A run of an operation that its caller keeps alive: nothing is copied.
  task<value> weir_start(context&) { return P::template run<value, P&, Op&>(policy_, op_); }
  const Op& inner() const noexcept { return op_; }
  const P& applied() const noexcept { return policy_; }

 private:
  mutable Op op_;  // a move-only callable may change itself when it is called
  mutable P policy_;
};

/// Whether an operation contains a policy that runs it again.
template <class Op>
inline constexpr bool has_retry = false;
template <class Op, class P>
inline constexpr bool has_retry<piped<Op, P>> = requires { typename P::is_retry; } || has_retry<Op>;

template <class P, class Op>
auto apply_policy(P&& p, Op&& op) {
  using plain = held_t<Op>;
  using kind = std::remove_cvref_t<P>;
  if constexpr (is_pipeline<kind>) {
    return apply_policy(std::forward<P>(p).second(),
                        apply_policy(std::forward<P>(p).first(), std::forward<Op>(op)));
  } else if constexpr (!direct_op<plain>) {
    if (is_empty_callable(op)) raise_empty_job();
    return piped<plain, kind>(std::forward<Op>(op), std::forward<P>(p));
  } else if constexpr (kind::runs_again) {
    static_assert(!kind::runs_again,
                  "retry, hedge and supervise run an operation more than once, but a task, wait or "
                  "future runs once: give a callable, weir::op([&] { return f(); })");
    return refused();
  } else if constexpr (!is_future<plain> && std::is_lvalue_reference_v<Op>) {
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "a task or wait runs once: std::move it into the policy");
    return refused();
  } else if constexpr (is_pending<plain> && requires { p.on_wait(std::forward<Op>(op)); }) {
    return p.on_wait(std::forward<Op>(op));
  } else {
    return kind::template run<result_t<plain>, kind, plain>(std::forward<P>(p),
                                                            std::forward<Op>(op));
  }
}

/// Adds `policy(op)`, which is the same as `op | policy`.
template <class Derived>
class policy_of : public policy {
 public:
  template <operation Op>
  auto operator()(Op&& op) const& {
    return apply_policy(static_cast<const Derived&>(*this), std::forward<Op>(op));
  }
  template <operation Op>
  auto operator()(Op&& op) && {
    return apply_policy(static_cast<Derived&&>(*this), std::forward<Op>(op));
  }
};

/// Two policies as one: the first is the inner one.
template <class First, class Second>
class pipeline : public policy_of<pipeline<First, Second>> {
 public:
  template <class A, class B>
  pipeline(A&& first, B&& second)
      : first_(std::forward<A>(first)), second_(std::forward<B>(second)) {}
  const First& first() const& noexcept { return first_; }
  First&& first() && noexcept { return std::move(first_); }
  const Second& second() const& noexcept { return second_; }
  Second&& second() && noexcept { return std::move(second_); }

 private:
  First first_;
  Second second_;
};

// Found through the bases of every policy.

/// Applies a policy. A callable becomes a callable; a task or wait becomes an operation that runs
/// once.
template <operation Op, any_policy P>
auto operator|(Op&& op, P&& policy) {
  return apply_policy(std::forward<P>(policy), std::forward<Op>(op));
}

/// The left operand of a policy is the result of an await: a common mistake.
template <class V, any_policy P>
  requires(!operation<V> && !any_policy<V> && !has_call_operator<V>)
refused operator|(V&&, P&&) {
  static_assert(operation<V>,
                "a policy is applied to an operation, not to its result, and co_await binds "
                "tighter than |: write co_await (f() | policy) with parentheses");
  return {};
}

/// A pipeline of policies: `op | (a | b)` is the same as `op | a | b`.
template <any_policy A, any_policy B>
auto operator|(A&& inner, B&& outer) {
  return pipeline<std::remove_cvref_t<A>, std::remove_cvref_t<B>>(std::forward<A>(inner),
                                                                  std::forward<B>(outer));
}

}  // namespace weir::detail
