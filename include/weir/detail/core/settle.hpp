// SPDX-License-Identifier: MIT
// The machinery of <weir/policy/settle.hpp>.
#pragma once

#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/duration.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

/// A region without special rules.
struct plain_region : scope {
  using scope::scope;
  bool may_start(outcome_base&) const noexcept { return true; }
  verdict judge(outcome_base& out) { return judge_region(*this, out); }
};

template <class T, class Op>
struct settle_coroutine {
  static task<outcome<T>> run(Op op) {
    plain_region r(region_kind::settle, "settle");
    outcome<T> out;
    auto call = [&] { return detail::as_task(op, r); };
    co_await detail::inside(r, out, call);
    if (has_entries(r)) co_await detail::quietly(end_region(r, out));
    if (!detail::apply_verdict(r.judge(out), out)) co_await keep_unwinding{};
    co_return std::move(out);
  }
};
template <class T, class Op>
task<outcome<T>> run_settle(Op op) {
  return settle_coroutine<T, Op>::run(std::forward<Op>(op));
}

struct shield_region final : limited_region {
  struct setup {
    std::optional<duration> limit;
  };
  explicit shield_region(setup s);
  bool may_start(outcome_base&) const noexcept { return true; }
  /// Values and errors are delivered even to a cancelled caller.
  verdict judge(outcome_base& out);
};

template <class F>
struct finally_region final : plain_region {
  struct setup {
    explicit setup(F f) : fn(std::move(f)) {}
    F fn;
  };
  explicit finally_region(setup s) : plain_region(region_kind::settle, "finally") {
    defer(std::move(s.fn));
  }
};

/// Calls a function that is kept elsewhere.
template <class F>
struct function_ref {
  template <class... Args>
    requires std::is_invocable_v<F&, Args...>
  decltype(auto) operator()(Args&&... args) const {
    return (*fn)(std::forward<Args>(args)...);
  }
  F* fn;
};

}  // namespace detail
}  // namespace weir
