// SPDX-License-Identifier: MIT
// Operations that run in their own cancel region: with_timeout, with_token, shield, ...
#pragma once

#include <optional>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/scope.hpp>

namespace weir::detail {

/// A region with a time limit: with_timeout, with_deadline, shield with a limit, grace.
struct limited_region : scope, deadline_node {
  explicit limited_region(region_kind kind, const char* name) : scope(kind, name) {}
  ~limited_region();
  void set_deadline(time_point at, cancel_kind kind);
  /// A deadline that is enforced elsewhere: context::deadline() returns it, no timer is armed for
  /// it.
  void know_deadline(time_point limit) noexcept {
    at = limit;
    has_deadline = fired = true;
  }
  void expired() noexcept override;
  void arm() noexcept;
  /// The outer cancellation was requested. Shields under one cancellation share their limit.
  void start_shield_limit();

  time_point at = time_point::max();
  bool has_deadline = false;
  bool fired = false;
  bool ended_by_it = false;  // the region's reason is this limit
  std::uint32_t order_of_entry = 0;
  cancel_kind fires_as = cancel_kind::timeout;
  std::optional<duration> shield_limit;  // a shield: starts with the outer cancellation
};

/// Leaves the region `r` of an operation that ended as `out`: a cancelled caller continues
/// unwinding unless there is a value to deliver.
verdict judge_region(scope& r, outcome_base& out);
bool has_entries(const scope& r) noexcept;
/// Runs the defers that the operation registered with its context.
task<> end_region(scope& r, outcome_base& out);

/// Runs `op` in a region of type `Region`, which decides whether it starts (`may_start`) and what
/// is reported (`judge`).
///
/// Members of class templates, because g++-12 warns about the frames of free coroutine templates
/// whose arguments are closures of another coroutine (-Wsubobject-linkage).
template <class T, class Region, class Op>
struct region_coroutine {
  static task<T> run(typename Region::setup setup, Op op) {
    Region r(std::move(setup));
    outcome<T> out;
    if (r.may_start(out)) {
      auto call = [&] { return detail::as_task(op, r); };
      co_await detail::inside(r, out, call);
      if (has_entries(r)) co_await detail::quietly(end_region(r, out));
    }
    if (!detail::apply_verdict(r.judge(out), out)) co_await keep_unwinding{};
    co_await detail::finish_as(out);
    co_return out.take();
  }
};
template <class T, class Region, class Op>
task<T> run_region(typename Region::setup setup, Op op) {
  return region_coroutine<T, Region, Op>::run(std::move(setup), std::forward<Op>(op));
}

}  // namespace weir::detail
