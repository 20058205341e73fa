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

/// A job in the pool, shared by the pool's lists and its waiter. Also the message, sent at most
/// once, that notifies the waiter: accepted, refused, or ended.
struct pool_job final : message {
  void deliver(loop&) noexcept override;
  void refuse() noexcept override { on_its_way.reset(); }

  enum class place : std::uint8_t { nowhere, waiting, queued, running, ended };
  remote_ref op;
  bool for_result = false;
  door_ref home;  // the waiter's

  // Guarded by the pool's mutex.
  place where = place::nowhere;
  std::list<std::shared_ptr<pool_job>>::iterator at;
  std::shared_ptr<pool_job> on_its_way;  // itself, as a message

  pool_wait_base* waiter = nullptr;  // used on its loop only
};
using job_ref = std::shared_ptr<pool_job>;
using job_list = std::list<job_ref>;

/// A job taken by a worker; its destructor reports the end of the job to the pool.
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

/// Notifies close() that no accepted job is left.
struct drain_message final : message {
  void deliver(loop&) noexcept override;
  void refuse() noexcept override { on_its_way.reset(); }
  std::shared_ptr<pool_core> on_its_way;
};

/// Shared by a pool, its workers and its waiters.
///
/// Invariants (under the mutex):
/// 1. accepted = queued + running <= workers + queue_size, and callers wait only if that is full:
///    room is given to the oldest waiter at once, with its job, and only that waiter is woken.
/// 2. For each job that is queued while a worker is idle, the longest idle worker is woken. The
///    first worker to arrive takes the oldest job, so jobs start in the order of acceptance. If the
///    woken worker crashes, another is woken in its place.
/// 3. User code (jobs and their destructors) never runs under the mutex.
class pool_core : public std::enable_shared_from_this<pool_core> {
 public:
  explicit pool_core(const pool_options& options);
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;

  void start_workers();
  const std::string& name() const noexcept { return name_; }
  bool is_own_worker() const noexcept;
  /// Whether the calling loop and the workers are not in the same simulation.
  bool is_of_another_world() const noexcept;
  /// The clock of its workers, see environment::clock.
  const void* clock() const noexcept { return clock_; }
  bool closed() const noexcept;
  /// Throws errc::not_journaled in a durable run.
  void require_no_run() const;
  /// Why it accepts no more jobs; empty if it does accept them.
  std::error_code refusal_now() const noexcept;
  /// Throws the error for a refused job or close().
  [[noreturn]] void raise_refusal(std::error_code why) const;

  /// Empty: accepted. With `may_wait` a job without room waits; the result is `errc::pool_full`.
  std::error_code enter(const job_ref& job, bool may_wait);
  /// Withdraws a job that has not begun: `done`. Cancels a running one: `later`. Otherwise `no`.
  cancel_result take_back(const job_ref& job, const reason_ref& why, bool force) noexcept;

  /// Accepts no new jobs and refuses the waiting ones.
  void close() noexcept;
  /// Closes, drops the queued jobs and cancels the running ones.
  void cancel(cancel_reason reason) noexcept;
  const std::vector<std::shared_ptr<served_loop>>& workers() const noexcept { return workers_; }

  bool claim_close() noexcept;
  /// The first error of a job without a waiter; returned once.
  std::exception_ptr take_error() noexcept;

  // For workers.
  void worker_added() noexcept;
  /// Its loop has ended or crashed; without any worker the remaining jobs end with loop_gone.
  void worker_gone(pool_worker& worker) noexcept;
  /// `idle`: in, whether the worker may become idle; out, whether it did.
  taken_job next_job(pool_worker& worker, bool& idle);
  bool stops_being_idle(pool_worker& worker) noexcept;
  void ended(const job_ref& job) noexcept;

  // For close().
  bool drained(const door_ref& home, drain_wait* waiter);
  drain_wait* take_drain() noexcept;
  /// False if the notification was already sent.
  bool forget_drain() noexcept;
  /// Why it refused a waiting job; empty if it did not.
  std::error_code refusal_of(const pool_job& job) const noexcept;

 private:
  job_ref make_running(job_list& from, pool_worker& worker);
  void wake_idle() noexcept;
  void admit_waiting() noexcept;
  void refuse_waiting(job_list& refused) noexcept;
  void take_queue(job_list& taken) noexcept;
  void dropped(const job_list& taken, const std::exception_ptr& error) noexcept;
  bool is_drained() const noexcept {
    return queue_.empty() && running_.empty() && being_dropped_ == 0;
  }
  void notify_drained() noexcept;
  bool may_end() const noexcept { return closed_ && queue_.empty(); }
  errc refusal() const noexcept { return lost_ ? errc::loop_gone : errc::pool_closed; }

  const std::string name_;
  const std::size_t worker_count_;
  const std::size_t limit_;
  const void* const clock_;
  std::vector<std::shared_ptr<served_loop>> workers_;

  mutable std::mutex mutex_;
  job_list waiting_;
  job_list queue_;
  job_list running_;
  std::size_t being_dropped_ = 0;  // being destroyed outside the mutex
  std::size_t workers_left_ = 0;
  std::list<pool_worker*> idle_;
  std::exception_ptr first_error_;
  drain_message drained_;
  door_ref drain_home_;
  drain_wait* drain_waiter_ = nullptr;
  bool drain_notified_ = false;
  bool closed_ = false;
  bool lost_ = false;  // all workers have crashed
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
  answer_due due_;
};

}  // namespace weir::detail
