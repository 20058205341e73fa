// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
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

namespace detail {

class pool_core;
struct pool_job;

template <class Job>
concept plain_job = !operation<Job> && std::is_invocable_v<std::decay_t<Job>&>;
template <class Job>
concept pool_jobs = operation<Job> || plain_job<Job>;

template <class Job>
struct job_value {
  using type = std::remove_cvref_t<std::invoke_result_t<std::decay_t<Job>&>>;
};
template <operation Job>
struct job_value<Job> {
  using type = result_t<Job>;
};
template <class Job>
using job_value_t = typename job_value<std::remove_cvref_t<Job>>::type;

/// A job as a remote operation; null for a null pointer or an empty std::function.
template <pool_jobs Job>
remote_ref make_job(Job&& job) {
  using plain = std::decay_t<Job>;
  if constexpr (!direct_op<plain>)
    if (is_empty_callable(job)) return {};
  return make_remote<job_value_t<plain>, plain>(std::forward<Job>(job));
}

/// Waits until a job is accepted, or (`for_result`) until it has ended. On cancellation it
/// withdraws a job that has not started.
class pool_wait_base : public wait {
 public:
  struct args {
    args(std::shared_ptr<pool_core> p, remote_ref j, bool result) noexcept
        : pool(std::move(p)), job(std::move(j)), for_result(result) {}
    std::shared_ptr<pool_core> pool;
    remote_ref job;
    bool for_result;
  };
  bool poll() override { return try_now(); }
  void link() override { arm(); }
  bool try_now();
  void arm();
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void grace_over() noexcept override;
  void describe(dump_line& line) const override;
  bool failed() const noexcept;
  /// A running job that was asked to stop has ended with a value or an error nevertheless.
  bool ended_by_itself() const noexcept;
  /// True if the job is refused regardless of a time limit.
  bool is_refused();
  /// A time limit directly around it.
  void limit_to(time_point at) noexcept { limit_ = at; }
  /// Accepted, refused, or answered.
  void arrived() noexcept;

 protected:
  explicit pool_wait_base(args&& a) noexcept;
  ~pool_wait_base();
  /// Throws if the pool refused the job.
  void check() const;
  /// The result; marks it as taken.
  outcome_base& taken() noexcept {
    cancelling_ = false;
    return job_->result();
  }

 private:
  bool enter(bool may_wait);
  void prepare();
  std::shared_ptr<pool_core> pool_;
  remote_ref job_;
  std::shared_ptr<pool_job> entry_;
  std::error_code refused_;
  time_point limit_ = time_point::max();
  answer_due due_;
  bool for_result_;
  bool cancelling_ = false;  // a running job was asked to stop; the result is not taken
};

class submit_wait : public pool_wait_base {
 public:
  using result = void;
  explicit submit_wait(args&& a) noexcept : pool_wait_base(std::move(a)) {}
  void take() const { check(); }
};

template <class T>
class pool_run_wait : public pool_wait_base {
 public:
  using result = T;
  explicit pool_run_wait(args&& a) noexcept : pool_wait_base(std::move(a)) {}
  T take() {
    check();
    return static_cast<outcome<T>&>(taken()).take();
  }
};

}  // namespace detail

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

namespace detail {

template <class F>
task<body_result_with<F, pool>> run_with_pool(pool_options options, kept_name name, F fn) {
  options.name = name.view();
  std::optional<pool> p;  // outlives the jobs, which may use it
  auto body = [&](scope& s) -> task<body_result_with<F, pool>> {
    p.emplace(s, options);
    if constexpr (std::is_void_v<body_result_with<F, pool>>) {
      co_await fn(*p);
      if (!p->closed()) co_await p->close();
    } else {
      auto value = co_await fn(*p);
      if (!p->closed()) co_await p->close();
      co_return value;
    }
  };
  scope_options around;
  around.name = options.name.empty() ? weir::name("pool") : options.name;
  co_return co_await with_scope(around, body);
}

}  // namespace detail

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
