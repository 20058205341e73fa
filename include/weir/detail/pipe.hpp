// SPDX-License-Identifier: MIT
// `operation | policy`: how policies are applied.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <weir/detail/op.hpp>

namespace weir::detail {

/// Base of everything that may stand to the right of `op |`. A policy is called with an operation
/// and gives one that runs it.
struct policy {};

template <class P>
concept any_policy = std::derived_from<std::remove_cvref_t<P>, policy>;

/// A callable operation under a policy: again a callable operation, re-runnable, copyable if its
/// callable is.
template <class Op, class P>
class piped {
 public:
  template <class O, class Q>
  piped(O&& op, Q&& p) : op_(std::forward<O>(op)), policy_(std::forward<Q>(p)) {}

  task<result_t<Op>> operator()() const { return run(this->policy_, this->op_); }
  auto weir_await() && { return run(std::move(policy_), std::move(op_)).weir_await(); }

 private:
  static task<result_t<Op>> run(P policy, Op op) {
    co_return co_await std::move(policy)([&]() { return detail::as_task(op, this_context()); });
  }

  Op op_;
  P policy_;
};

}  // namespace weir::detail

namespace weir {

/// Applies a policy. A callable gives a callable; a task or wait gives an operation that runs once.
template <detail::operation Op, detail::any_policy P>
auto operator|(Op&& op, P&& policy) {
  using plain = detail::held_t<Op>;
  if constexpr (detail::direct_op<plain>) {
    return std::forward<P>(policy)(std::forward<Op>(op));
  } else {
    return detail::piped<plain, std::remove_cvref_t<P>>(std::forward<Op>(op),
                                                        std::forward<P>(policy));
  }
}

}  // namespace weir
