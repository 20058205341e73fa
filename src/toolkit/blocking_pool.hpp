// SPDX-License-Identifier: MIT
// The threads of `blocking`, and the queue of calls they serve.
//
// A thread of the pool runs a call, searches (polls for a call, then sleeps), or sleeps in the
// stack of idle threads. At most one searches. A thread that was woken or started searches from the
// decision to wake or start it, before it runs at all.
//
// Invariants, whenever the mutex is free:
// 1. `threads_` counts all threads but those that run an abandoned call.
// 2. While a call is queued, a thread searches; or none is idle and all of `threads_` run calls,
//    and no further one can be started: there are 64, or the system refused the last one.
// 3. While a call is queued, `threads_` is not 0.
//
// Why no call waits for ever:
// - A submit, under the mutex, finds a searching thread, or appoints one: it takes an idle thread
//   from the stack, or starts one. After the mutex is released it is woken or started; its bell
//   keeps the ring if it is not asleep yet.
// - A searching thread stops searching only under the mutex: when it takes a call, or when the
//   queue is empty. If it takes a call and more are queued, it appoints the next thread first, and
//   wakes it before it runs the call. So calls may block: with k of them queued, one thread after
//   the other is appointed until all run or no thread is left.
// - A thread that has run a call takes the next one itself; invariant 2 needs nothing more.
// - A call that is removed, or a running one that is abandoned, frees a place: `remove` appoints.
// - An idle thread whose limit is over looks at the stack under the mutex. If it is not there any
//   more, it was appointed meanwhile, and waits for the ring, which is certain to come.
// - If a thread cannot be started, the appointment is withdrawn. Another idle thread is appointed,
//   or the running ones serve the queue, or there is none: then all queued calls fail.
//
// The stack is LIFO: the last thread to fall asleep has the warmest caches, and the others reach
// their limit. Under the mutex nothing is allocated, no user code runs, and no thread is woken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>

#include <weir/blocking.hpp>

#include "core/bell.hpp"
#include "core/short_mutex.hpp"
#include "core/spinner.hpp"

namespace weir::detail {

/// The type-independent part of a call. In a simulation its message is the step that makes the
/// call.
struct blocking_extra final : reply_to<blocking_wait_base> {
  enum class place : std::uint8_t { nowhere, queued, running, replaced };

  blocking_extra(blocking_job& j, bool abandonable) noexcept
      : job(&j), may_be_abandoned(abandonable) {}
  void dispose() noexcept override { delete job; }

  blocking_job* job;

  // Guarded by the pool's mutex.
  blocking_extra* before = nullptr;
  blocking_extra* after = nullptr;
  place where = place::nowhere;

  const bool may_be_abandoned;
};

/// See the top of this file. Calls start in the order in which they were submitted.
class blocking_pool {
 public:
  blocking_pool() noexcept = default;
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;

  /// Never destroyed: threads may outlive main.
  static blocking_pool& instance();

  /// The call is answered by a message, also if no thread can take it.
  void submit(blocking_extra& call) noexcept;

  enum class removed : std::uint8_t { from_queue, abandoned, no };
  removed remove(blocking_extra& call) noexcept;

  /// Its position in the queue, from 1; 0 if it has begun.
  std::uint64_t place_of(const blocking_extra& call) noexcept;

  /// For tests: idle threads end after this time.
  void set_idle_limit(std::chrono::nanoseconds limit) noexcept;
  std::size_t threads() noexcept;

 private:
  using place = blocking_extra::place;
  using locked = std::unique_lock<short_mutex>;

  /// A thread, on its own stack.
  struct worker {
    bell wakes;
    spinner before_sleep;
    bool searching = true;  // its own
    bool idle = false;      // in the stack; guarded by the mutex, as are the links
    worker* above = nullptr;
    worker* below = nullptr;
  };
  /// What is left to do when the mutex is released: to wake an idle thread or to start one.
  struct appointed {
    worker* woken = nullptr;
    bool start = false;
  };

  // Under the mutex.
  void append(blocking_extra& call) noexcept;
  void unlink(blocking_extra& call) noexcept;
  void push_idle(worker& w) noexcept;
  void remove_idle(worker& w) noexcept;
  /// Chooses a thread to search, if one is needed.
  appointed appoint(bool may_start = true) noexcept;

  // Without the mutex.
  void summon(appointed who) noexcept;
  void start_thread();
  void start_failed(const std::exception_ptr& why) noexcept;
  void work() noexcept;
  blocking_extra* next_call(worker& me, blocking_extra* done) noexcept;

  // These release the mutex meanwhile.
  /// Whether the thread of a call that was abandoned continues as a thread of the pool.
  bool comes_back(blocking_extra& abandoned, locked& lock) noexcept;
  /// Returns true when a call is queued, false when the thread has been idle for too long.
  bool wait_for_call(worker& me, blocking_extra*& done, locked& lock) noexcept;
  /// Sends the result of `done`, if any; the searching thread then polls, and returns whether it
  /// saw a call.
  bool search(worker& me, blocking_extra* done, locked& lock) noexcept;
  /// As an idle thread. False: its limit is over.
  bool sleep(worker& me, locked& lock) noexcept;

  short_mutex mutex_;
  blocking_extra* first_ = nullptr;
  blocking_extra* last_ = nullptr;
  worker* idle_ = nullptr;  // the last one to fall asleep
  std::size_t threads_ = 0;
  bool searching_ = false;  // a thread does
  std::chrono::nanoseconds idle_limit_ = std::chrono::seconds(5);

  // `first_ != nullptr`, for the searching thread, which polls without the mutex.
  alignas(64) std::atomic<bool> queued_{false};
};

}  // namespace weir::detail
