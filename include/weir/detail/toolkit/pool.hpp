// SPDX-License-Identifier: MIT
// Part of <weir/pool.hpp>, which includes it after the declarations it needs.
#pragma once

#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weir/detail/core/timer.hpp>
#include <weir/detail/toolkit/remote.hpp>
#include <weir/loop_thread.hpp>
#include <weir/name.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

class pool_core;

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
class pool_wait_base : public remote_asker {
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
  void grace_over() noexcept override;
  void describe(dump_line& line) const override;
  bool failed() const noexcept;
  /// True if the job is refused regardless of a time limit.
  bool is_refused();
  /// Accepted, refused, or ended.
  void answered() noexcept override;

 protected:
  explicit pool_wait_base(args&& a) noexcept;
  ~pool_wait_base();
  /// Throws if the pool refused the job.
  void check() const;

 private:
  /// Waiters get room in batches; if that takes too long, each place is given away at once.
  struct room_watch final : deadline_node {
    explicit room_watch(pool_wait_base& w) noexcept : of(w) {}
    void expired() noexcept override;
    pool_wait_base& of;
  };

  bool enter(bool may_wait);
  bool wait_in_line();
  void stop_watch() noexcept;
  std::shared_ptr<pool_core> pool_;
  errc refused_{};  // none: accepted, or still waiting
  room_watch watch_{*this};
  bool for_result_;
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
}  // namespace weir
