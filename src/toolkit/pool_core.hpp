// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir/pool.hpp>

#include "core/door.hpp"
#include "core/served_loop.hpp"
#include "core/short_mutex.hpp"
#include "core/spinner.hpp"
#include "toolkit/job_list.hpp"
#include "toolkit/remote.hpp"

namespace weir::detail {

class drain_wait;
class job_wait;
class pool_chores;

/// A worker as its pool sees it. It belongs to the pool, so it outlives the worker: the thread that
/// decided under the mutex to wake the worker may post the message afterwards.
struct pool_seat {
  struct wake_message final : message {
    explicit wake_message(pool_seat& s) noexcept : seat(s) {}
    void deliver(loop& here) noexcept override;
    void refuse() noexcept override {}
    pool_seat& seat;
  };

  wake_message wake{*this};
  door_ref door;  // of its loop; written when it asks for its first job
  // Used on its loop only.
  job_wait* waiting = nullptr;
  spinner spins;
  bool ended = false;  // `running` has ended, which the next lock of the mutex makes known
  // Guarded by the pool's mutex.
  remote_op* running = nullptr;
  pool_seat* next_idle = nullptr;
  bool idle = false;
  bool searching = false;
};

/// The answer to close(): no accepted job is left.
struct drain_reply final : reply_to<drain_wait> {
  void dispose() noexcept override { const std::shared_ptr<pool_core> last = std::move(pool); }
  std::shared_ptr<pool_core> pool;  // kept while it is asked
};

/// Shared by a pool, its workers and its waiters.
///
/// Room. `accepted_` counts the accepted and unfinished jobs, which are at most workers +
/// queue_size. Callers wait first come, first served, and while one waits no other overtakes it.
/// They get room in batches, when `batch_` places are free: one wake-up of a caller then pays for
/// many jobs. A caller that has waited for long makes the pool urgent: until no caller waits, each
/// place is given away at once. Fewer than `batch_` free places imply unfinished jobs, whose end
/// gives more, so batches cannot stop the pool. A job that does not wait for room is refused only
/// if no place is free: it lets the waiting callers have the free ones first.
///
/// Wake-ups. A worker runs a job, searches (it is about to look at the queue: it was woken, or
/// spins), is idle, or has ended; `searching_` counts the searching ones. Invariant (under the
/// mutex): if a job is queued and a worker is idle, a worker searches. So a job wakes a worker only
/// if none searches, and a searching worker that takes a job while more are queued wakes the next.
/// A worker becomes idle only while the queue is empty; one that ends, crashes or is cancelled
/// while it searches passes the duty on. The worker that was idle last is woken first.
///
/// Order. The queue is first in, first out under the mutex, so jobs start in the order of
/// acceptance.
///
/// Ends. A worker destroys the function of a job, and its result if no caller waits for it, before
/// it frees the place; and it frees the place before it answers. So after run() there is room, and
/// after close() nothing of a job is left: close() waits until `accepted_` is 0. A worker that has
/// ended a job and asks for the next one in the same turn does both under one lock (`next_job`),
/// and answers afterwards; no other code runs in between.
///
/// References. A job that somebody waits for, for room or for its result, stays alive because its
/// reply is asked, and is answered only after it has left the lists and its seat, under the mutex.
/// So whoever finds a job there, under the mutex, finds it alive. An accepted job without a waiter
/// belongs to the pool, which drops the reference when it has ended; it gets it from the caller
/// that submits, or adds its own when it answers a caller that waited for room.
///
/// Under the mutex nothing is allocated, posted or destroyed, and no user code runs: what is to be
/// done is collected in a pool_chores, which does it afterwards.
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
  /// No error: see `enter` and `refusal_now`.
  static constexpr errc accepted{};
  /// Why it accepts no more jobs; `accepted` if it does accept them.
  errc refusal_now() const noexcept;
  /// Throws the error for a refused job or close().
  [[noreturn]] void raise_refusal(errc why) const;

  /// What becomes of a job for which there is no room.
  enum class entry : std::uint8_t { now, waits, waits_urgently };
  /// `accepted`, or why not; `errc::pool_full`: refused, or (unless `now`) waiting. The pool takes
  /// the reference of a job that nobody waits for, if it accepts it.
  errc enter(remote_ref& job, entry how) noexcept;
  /// Withdraws a job that has not begun: `done`. Cancels a running one: `later`. Otherwise `no`.
  cancel_result take_back(remote_op& job, reason_ref why, bool force) noexcept;
  bool gives_room_in_batches() const noexcept { return batch_ > 1; }
  /// A caller has waited for long.
  void make_urgent() noexcept;

  /// Accepts no new jobs and refuses the waiting ones.
  void close() noexcept;
  /// Closes, drops the queued jobs and cancels the running ones.
  void cancel(cancel_reason reason) noexcept;
  const std::vector<std::shared_ptr<served_loop>>& workers() const noexcept { return workers_; }

  bool claim_close() noexcept;
  /// The first error of a job without a waiter; returned once.
  std::exception_ptr take_error() noexcept;

  // For workers.
  /// Its loop has ended or crashed; without any worker the remaining jobs end with loop_gone.
  void worker_gone(pool_seat& seat) noexcept;
  /// The next job; empty if there is none now. `idle`: in, whether the worker may become idle; out,
  /// whether it did. If it may not, it searches from now on.
  remote_run next_job(pool_seat& seat, bool& idle) noexcept;
  /// For workers, without the mutex: whether next_job is worth a try.
  bool has_queued() const noexcept { return has_queued_.load(std::memory_order_relaxed); }
  bool stops_being_idle(pool_seat& seat) noexcept;
  void stops_searching(pool_seat& seat) noexcept;
  /// On the worker's loop. If the worker can ask for the next job in this turn, `next_job` does the
  /// rest.
  void ended(remote_op& job, bool may_ask_again) noexcept;

  // For close().
  /// True: no accepted job is left. Otherwise `waiter` will be answered.
  bool drained(drain_wait& waiter);
  /// False if the answer is on its way.
  bool forget_drain() noexcept;
  /// On the waiter's loop.
  drain_reply& drain() noexcept { return drain_; }

 private:
  // These are called under the mutex.
  bool has_room() const noexcept;
  void free_places(std::uint64_t count, pool_chores& then) noexcept;
  void end_job(pool_seat& seat, pool_chores& then) noexcept;
  void queue(remote_op& job, pool_chores& then) noexcept;
  void admit_waiting(pool_chores& then) noexcept;
  void refuse_waiting(pool_chores& then) noexcept;
  job_list take_queue() noexcept;
  void left_queue() noexcept {
    if (queue_.empty()) has_queued_.store(false, std::memory_order_relaxed);
  }
  void wake_idle(pool_chores& then) noexcept;
  void end_search(pool_seat& seat, pool_chores& then) noexcept;
  bool end_idling(pool_seat& seat) noexcept;
  bool may_end() const noexcept { return closed_ && queue_.empty(); }
  errc refusal() const noexcept { return lost_ ? errc::loop_gone : errc::pool_closed; }

  void keep_error(std::exception_ptr& error) noexcept;
  void drop(job_list taken) noexcept;

  friend class pool_chores;
  friend class pool_worker;
  const std::string name_;
  const std::size_t worker_count_;
  const std::uint64_t limit_;
  const std::uint64_t batch_;
  const void* const clock_;
  std::vector<std::shared_ptr<served_loop>> workers_;
  std::vector<std::unique_ptr<pool_seat>> seats_;
  std::uint32_t lowest_serial_ = ~std::uint32_t{0};  // of the loops of its workers
  std::uint32_t highest_serial_ = 0;

  // What every job changes is on one cache line, with the mutex; the rest is mostly read.
  alignas(64) mutable short_mutex mutex_;
  std::uint64_t accepted_ = 0;  // and not ended
  job_list queue_;
  std::size_t searching_ = 0;
  pool_seat* idle_ = nullptr;     // a stack
  alignas(64) job_list waiting_;  // for room
  bool urgent_ = false;
  bool closed_ = false;
  bool lost_ = false;  // all workers have crashed
  bool close_called_ = false;
  bool drain_asked_ = false;  // and not answered yet
  std::size_t workers_left_;
  std::exception_ptr first_error_;
  drain_reply drain_;
  /// Whether the queue has jobs; written, under the mutex, only when that changes.
  alignas(64) std::atomic<bool> has_queued_{false};
};

/// What is to be done after the pool's mutex is released; made before it is taken.
class pool_chores {
 public:
  explicit pool_chores(pool_core& pool) noexcept : pool_(pool) {}
  pool_chores(const pool_chores&) = delete;
  pool_chores& operator=(const pool_chores&) = delete;
  ~pool_chores() {
    if (some_) [[unlikely]]
      do_all();
  }

  void wake(pool_seat& seat) noexcept;
  /// Answers the caller of a job. The job stays alive until then, because its reply is asked.
  void answer(remote_op& job) noexcept;
  void answer_close() noexcept { some_ = close_ended_ = true; }
  /// Drops a reference.
  void let_go(remote_ref job) noexcept { let_go_ = std::move(job); }
  /// Asks the worker of a running job, whose caller waits, to stop it.
  void stop(remote_op& job, bool force) noexcept {
    stopped_ = &job;
    stopped_at_ = job.worker->door.get();
    force_ = force;
    some_ = true;
  }

 private:
  void do_all() noexcept;
  pool_core& pool_;
  pool_seat* woken_ = nullptr;  // linked by next_idle
  message* answers_ = nullptr;  // in order
  message** answers_end_ = &answers_;
  remote_ref let_go_;
  remote_op* stopped_ = nullptr;
  door* stopped_at_ = nullptr;
  bool some_ = false;  // besides a reference to drop
  bool force_ = false;
  bool close_ended_ = false;
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
  void answered() noexcept;

 private:
  std::shared_ptr<pool_core> pool_;
  bool asked_ = false;
};

}  // namespace weir::detail
