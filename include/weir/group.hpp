// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/op.hpp>
#include <weir/name.hpp>
#include <weir/scope.hpp>

namespace weir {

struct group_options {
  weir::name name{};
  std::int64_t collect = 0;  ///< number of errors that `errors()` keeps
};

}  // namespace weir

#include <weir/detail/toolkit/group.hpp>

namespace weir {

/// Related jobs: the first failure cancels the other jobs, never the body.
///
/// Requires: made by `with_group`, used on its home loop only (elsewhere: errc::wrong_loop).
/// Ensures: execution cannot pass the end of `with_group` until every job has ended. The first
/// error of a job is stored, and `wait()`, or else `with_group`, rethrows it unchanged; later ones
/// are suppressed. A cancelled job is not an error. Cancels: with the caller, jobs first, body
/// last; a body that throws cancels the jobs too. Costs: a job is one record and one frame from the
/// thread's cache; a finished job is freed at once.
class group {
 public:
  group(const group&) = delete;
  group& operator=(const group&) = delete;

  /// Starts `op` as a job on a later turn. After the first error, or once the group is cancelled,
  /// the job is accepted and dropped (event `job_dropped`): it never starts and is destroyed at
  /// once. After `wait()` was called: errc::group_waiting.
  template <detail::operation Op>
  void go(Op&& op, spawn_options options = {},
          std::source_location site = std::source_location::current()) {
    if constexpr (!detail::direct_op<std::remove_cvref_t<Op>>) {
      if (detail::is_empty_callable(op)) detail::raise_empty_job();
    }
    if (takes_jobs()) {
      start(scope::make(std::forward<Op>(op)), options, site);
    } else if constexpr (!std::is_lvalue_reference_v<Op>) {
      [[maybe_unused]] const detail::held_t<Op> dropped(std::move(op));
    }
  }

  /// Waits until every job has ended and rethrows the first error, if there was one. A second wait:
  /// errc::already_waited. From one of its own jobs: errc::would_deadlock.
  detail::pending<detail::group_wait> wait();

  /// Copies of the first `.collect` errors, the first one first.
  std::vector<std::exception_ptr> errors() const;
  std::string_view name() const noexcept;

 private:
  friend struct detail::group_region;
  explicit group(detail::group_region& region) noexcept : region_(&region) {}
  bool takes_jobs();
  void start(detail::fiber* job, const spawn_options& options, std::source_location site);

  detail::group_region* region_;
};

}  // namespace weir

#include <weir/detail/toolkit/group_region.hpp>

namespace weir {

/// Runs `fn(group&)` in the calling fiber and returns its value when the body and every job have
/// ended. If the body returns without `wait()`, it waits for the jobs here; if the body throws, the
/// jobs are cancelled and joined, and its error is thrown.
template <class F>
auto with_group(group_options options, F fn,
                std::source_location site = std::source_location::current()) {
  static_assert(detail::group_body<F>, "the body of with_group takes a weir::group&");
  using result = std::remove_cvref_t<std::invoke_result_t<F&, group&>>;
  static_assert(detail::is_task<result>,
                "the body of with_group must return weir::task<T> (make it a coroutine)");
  if constexpr (detail::is_task<result>) {
    detail::group_setup setup(options, site);
    if (detail::is_empty_callable(fn)) detail::raise_empty_job();
    auto body = [fn = std::move(fn)](detail::group_region& g) mutable { return fn(g.face); };
    return detail::run_scope<typename result::value_type, detail::group_region>(std::move(setup),
                                                                                std::move(body));
  } else {
    return detail::refused();
  }
}
template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, group_options>)
auto with_group(F fn, std::source_location site = std::source_location::current()) {
  return weir::with_group(group_options{}, std::move(fn), site);
}

}  // namespace weir
