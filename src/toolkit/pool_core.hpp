// SPDX-License-Identifier: MIT
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <weir/pool.hpp>

#include "core/door.hpp"
#include "core/served_loop.hpp"
#include "toolkit/remote.hpp"

namespace weir::detail {

class drain_wait;
class pool_worker;

/// A job on its way through the pool. Shared by the pool's lists and by whoever waits for it.
struct pool_job {
  enum class place : std::uint8_t { nowhere, waiting, queued, running, ended };
  remote_ref op;
  bool for_result = false;
  door_ref home;  // of the waiter

  // Behind the pool's mutex.
  place where = place::nowhere;
  std::list<std::shared_ptr<pool_job>>::iterator at;

  pool_wait_base* waiter = nullptr;  // on its loop only
};
using job_ref = std::shared_ptr<pool_job>;
using job_list = std::list<job_ref>;

/// A job that a worker has taken: whatever happens, the pool hears of its end.
class taken_job {
 public:
  taken_job() noexcept = default;
  taken_job(pool_core& pool, job_ref job) noexcept : pool_(&pool), job_(std::move(job)) {}
  taken_job(taken_job&& other) noexcept = default;
  taken_job& operator=(taken_job&& other) noexcept = default;
  ~taken_job();
  explicit operator bool() const noexcept { return job_ != nullptr; }
  const remote_ref& op() const noexcept { return job_->op; }

 private:
  pool_core* pool_ = nullptr;
  job_ref job_;
};

/// What a pool, its workers and those who wait for it share.
///
/// Invariants (behind the mutex):
/// 1. accepted = queued + running <= workers + queue_size, and somebody waits only if that is full:
///    room is handed to the oldest waiter at once, with its job, and that waiter alone is woken.
/// 2. For each job that is queued while a worker is idle, the longest idle one is woken; whoever
///    comes first takes the oldest job, so jobs start in the order of acceptance.
/// 3. User code (jobs and their destructors) never runs under the mutex.
class pool_core : public std::enable_shared_from_this<pool_core> {
 public:
  explicit pool_core(const pool_options& options);
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;

  void start_workers();
  const std::string& name() const noexcept { return name_; }
  bool is_own_worker() const noexcept;
  bool closed() const noexcept;

  /// Empty: accepted. `may_wait`: a job without room waits, and `errc::pool_full` is the answer.
  std::error_code enter(const job_ref& job, bool may_wait);
  /// Takes a job back that has not begun: `done`. A running one is asked to stop: `later`. Else no.
  cancel_result take_back(const job_ref& job, const reason_ref& why) noexcept;

  /// No new jobs; those who wait are refused.
  void close() noexcept;
  /// Also drops what is queued and cancels what runs.
  void cancel(const cancel_reason& reason) noexcept;
  const std::vector<std::shared_ptr<served_loop>>& workers() const noexcept { return workers_; }

  bool claim_close() noexcept;
  /// The first error of a job that nobody waited for; told once.
  std::exception_ptr take_error() noexcept;

  // For workers.
  /// `idle`: whether the worker may become idle, then whether it did.
  taken_job next_job(pool_worker& worker, bool& idle);
  bool stops_being_idle(pool_worker& worker) noexcept;
  void ended(const job_ref& job) noexcept;

  // For close().
  bool drained(const door_ref& home, drain_wait* waiter);
  drain_wait* take_drain() noexcept;
  /// False if it was told already.
  bool forget_drain() noexcept;
  bool was_refused(const pool_job& job) const noexcept;

 private:
  job_ref make_running(job_list& from, pool_worker& worker);
  void admit_waiting() noexcept;
  void tell_drained() noexcept;
  bool may_end() const noexcept { return closed_ && queue_.empty(); }

  const std::string name_;
  const std::size_t worker_count_;
  const std::size_t limit_;
  std::vector<std::shared_ptr<served_loop>> workers_;

  mutable std::mutex mutex_;
  job_list waiting_;
  job_list queue_;
  job_list running_;
  std::list<pool_worker*> idle_;
  std::exception_ptr first_error_;
  door_ref drain_home_;
  drain_wait* drain_waiter_ = nullptr;
  bool drain_told_ = false;
  bool closed_ = false;
  bool close_called_ = false;

  friend class pool_worker;
};

/// Waits until no accepted job is left.
class drain_wait : public simple_wait<drain_wait> {
 public:
  using args = std::shared_ptr<pool_core>;
  using result = void;
  explicit drain_wait(args&& pool) noexcept : pool_(std::move(pool)) {}
  ~drain_wait();
  bool try_now() const noexcept { return false; }
  void arm();
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void take() const noexcept {}
  void arrived() noexcept;

 private:
  std::shared_ptr<pool_core> pool_;
  bool waiting_ = false;
};

}  // namespace weir::detail
