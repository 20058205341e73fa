// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include <weir/detail/toolkit/remote.hpp>
#include <weir/loop_thread.hpp>
#include <weir/name.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/scope.hpp>

namespace weir {

struct pool_options {
  weir::name name{};
  std::int64_t workers = hardware_threads();
  std::int64_t queue_size = 128;
};

}  // namespace weir

#include <weir/detail/toolkit/pool.hpp>

namespace weir {

/// A fixed number of workers, each a thread with its own loop, and a bounded backlog.
///
/// A job is an operation or a plain callable, possibly move-only; jobs start in order of
/// acceptance, at most `workers` run, at most `workers + queue_size` are accepted and unfinished.
/// Not fail-fast: an error of a job cancels nothing.
///
/// Owned by a scope (inside fibers): the destructor cancels without waiting, the scope joins it and
/// raises a job error that no close() rethrew. Without a scope, outside loops: the destructor
/// cancels and joins. What jobs capture must outlive the owner, not only the handle; so must the
/// handle itself if a job uses it. Threads: try_submit, submit, run, cancel on any; the handle
/// itself belongs to its owner.
class pool {
 public:
  explicit pool(scope& s, const pool_options& options = {});
  explicit pool(const pool_options& options = {});
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool();

  /// Never waits. An empty code means accepted; else errc::empty_job, pool_closed or pool_full.
  template <detail::pool_jobs Job>
  std::error_code try_submit(Job&& job) {
    return accept_now(detail::make_job(std::forward<Job>(job)));
  }
  /// Waits for room, first come, first served.
  template <detail::pool_jobs Job>
  auto submit(Job&& job) {
    return detail::pending<detail::submit_wait>(
        detail::submit_wait::args(core_, detail::make_job(std::forward<Job>(job)), false));
  }
  /// Waits for room, for at most `d`: timeout_error.
  template <class Rep, class Period, detail::pool_jobs Job>
  auto submit_for(std::chrono::duration<Rep, Period> d, Job&& job) {
    return with_timeout(d, submit(std::forward<Job>(job)));
  }
  /// Returns the job's value or throws its error. On cancellation a queued job is withdrawn, a
  /// running job cancelled and joined.
  template <detail::pool_jobs Job>
  auto run(Job&& job) {
    using wait_type = detail::pool_run_wait<detail::job_value_t<Job>>;
    return detail::pending<wait_type>(
        typename wait_type::args(core_, detail::make_job(std::forward<Job>(job)), true));
  }
  /// Accepts no new jobs, waits until the accepted jobs have ended and rethrows the first job
  /// error. Call it once.
  task<> close();
  task<> wait() { return close(); }
  /// Cancels running jobs and drops queued ones; no new ones are accepted.
  void cancel(cancel_reason reason = cancel_reason());
  bool closed() const;

 private:
  std::error_code accept_now(detail::remote_ref job);
  std::shared_ptr<detail::pool_core> core_;
  bool owned_by_scope_;
};

}  // namespace weir

#include <weir/detail/toolkit/run_with_pool.hpp>

namespace weir {

/// Runs `fn(pool&)`. If the body returns without close(), the pool drains as close() does; if it
/// throws or is cancelled, the jobs are cancelled. If its close() times out and the body returns,
/// the remaining jobs are cancelled too.
template <class F>
auto with_pool(const pool_options& options, F fn) {
  if constexpr (detail::check_body<F, pool>()) {
    if (detail::is_empty_callable(fn)) detail::raise_empty_job();
    return detail::run_with_pool<F>(options, detail::kept_name(options.name), std::move(fn));
  } else {
    return detail::refused();
  }
}
template <class F>
auto with_pool(F fn) {
  return with_pool(pool_options{}, std::move(fn));
}

}  // namespace weir
