// SPDX-License-Identifier: MIT
#include <weir/blocking.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include <weir/detail/core/dump_line.hpp>

#include "core/loop.hpp"
#include "core/signals.hpp"

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

namespace {

using place = blocking_extra::place;

constexpr std::size_t threads_max = 64;
constexpr auto idle_limit = std::chrono::seconds(5);

/// Sends the result to the caller's loop, or destroys it if the caller has abandoned the call.
void send(blocking_extra& done) noexcept {
  if (!done.claim()) return done.dispose();
  done.answer_by_message();
}

/// The threads of the process and a FIFO queue of calls.
///
/// Invariants, under the mutex:
/// 1. `threads_` counts all threads but those that run an abandoned call.
/// 2. While a call is queued, all of `threads_` run something or are about to check the queue, and
///    `threads_` is not 0.
class blocking_pool {
 public:
  /// Never destroyed: threads may outlive main.
  static blocking_pool& instance() {
    static blocking_pool* const made = new blocking_pool;
    return *made;
  }

  /// Null, or the error if no thread can take it.
  std::exception_ptr submit(blocking_extra& call) noexcept;

  enum class removed : std::uint8_t { from_queue, abandoned, no };
  removed remove(blocking_extra& call) noexcept;

  /// Its position in the queue, from 1; 0 if it has begun.
  std::uint64_t place_of(const blocking_extra& call) noexcept;

 private:
  void append(blocking_extra& call) noexcept;
  void unlink(blocking_extra& call) noexcept;
  /// Ensures that a thread checks the queue. Returns the error if none can.
  std::exception_ptr provide_thread() noexcept;
  void start_thread();
  void work() noexcept;
  bool wait_for_call(std::unique_lock<std::mutex>& lock);
  bool finish(blocking_extra& call, std::unique_lock<std::mutex>& lock) noexcept;
  void fail_all(const std::exception_ptr& why, std::unique_lock<std::mutex>& lock) noexcept;

  std::mutex mutex_;
  std::condition_variable more_;
  blocking_extra* first_ = nullptr;
  blocking_extra* last_ = nullptr;
  std::size_t queued_ = 0;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;  // of threads_
};

void blocking_pool::append(blocking_extra& call) noexcept {
  call.where = place::queued;
  call.before = last_;
  call.after = nullptr;
  (last_ == nullptr ? first_ : last_->after) = &call;
  last_ = &call;
  ++queued_;
}

void blocking_pool::unlink(blocking_extra& call) noexcept {
  (call.before == nullptr ? first_ : call.before->after) = call.after;
  (call.after == nullptr ? last_ : call.after->before) = call.before;
  --queued_;
}

std::exception_ptr blocking_pool::provide_thread() noexcept {
  if (queued_ <= idle_) {
    more_.notify_one();
    return nullptr;
  }
  if (threads_ >= threads_max) return nullptr;
  try {
    start_thread();
    ++threads_;
  } catch (...) {
    if (threads_ == 0) return std::current_exception();
  }
  return nullptr;
}

void blocking_pool::start_thread() {
  const no_signals during;
  std::thread([this] { work(); }).detach();
}

std::exception_ptr blocking_pool::submit(blocking_extra& call) noexcept {
  const std::lock_guard lock(mutex_);
  append(call);
  std::exception_ptr failed = provide_thread();
  if (failed == nullptr) return nullptr;
  unlink(call);
  call.where = place::nowhere;
  return failed;
}

blocking_pool::removed blocking_pool::remove(blocking_extra& call) noexcept {
  std::unique_lock lock(mutex_);
  if (call.where == place::queued) {
    unlink(call);
    call.where = place::nowhere;
    call.take_back();
    return removed::from_queue;
  }
  if (call.where != place::running || !call.may_be_abandoned) return removed::no;
  call.where = place::replaced;
  (void)call.abandon();  // `running`: it is not claimed yet
  --threads_;
  if (first_ != nullptr) {
    if (const std::exception_ptr failed = provide_thread()) fail_all(failed, lock);
  }
  return removed::abandoned;
}

// No thread is left, and none can be started.
void blocking_pool::fail_all(const std::exception_ptr& why,
                             std::unique_lock<std::mutex>& lock) noexcept {
  while (blocking_extra* call = first_) {
    unlink(*call);
    call->where = place::nowhere;
    call->job->result().set_error(why);
    lock.unlock();
    send(*call);
    lock.lock();
  }
}

std::uint64_t blocking_pool::place_of(const blocking_extra& call) noexcept {
  const std::lock_guard lock(mutex_);
  if (call.where != place::queued) return 0;
  std::uint64_t position = 1;
  for (const blocking_extra* c = call.before; c != nullptr; c = c->before) ++position;
  return position;
}

bool blocking_pool::wait_for_call(std::unique_lock<std::mutex>& lock) {
  while (first_ == nullptr) {
    ++idle_;
    const std::cv_status woken = more_.wait_for(lock, idle_limit);
    --idle_;
    if (first_ == nullptr && woken == std::cv_status::timeout) return false;
  }
  return true;
}

// False if another thread has taken this one's place.
bool blocking_pool::finish(blocking_extra& call, std::unique_lock<std::mutex>& lock) noexcept {
  const bool replaced = call.where == place::replaced;
  call.where = place::nowhere;
  lock.unlock();
  send(call);
  lock.lock();
  if (!replaced) return true;
  if (threads_ >= threads_max) return false;
  ++threads_;
  return true;
}

void blocking_pool::work() noexcept {
  std::unique_lock lock(mutex_);
  while (wait_for_call(lock)) {
    blocking_extra& call = *first_;
    unlink(call);
    call.where = place::running;
    lock.unlock();
    call.job->run();
    lock.lock();
    if (!finish(call, lock)) return;
  }
  --threads_;
}

}  // namespace

// ------------------------------------------------------------------ the call

blocking_job::blocking_job(bool may_be_abandoned) noexcept {
  static_assert(sizeof(blocking_extra) <= extra_size);
  static_assert(alignof(blocking_extra) <= alignof(std::max_align_t));
  new (static_cast<void*>(extra_)) blocking_extra(*this, may_be_abandoned);
}

blocking_job::~blocking_job() { std::destroy_at(&extra()); }

blocking_extra& blocking_job::extra() noexcept {
  return *std::launder(reinterpret_cast<blocking_extra*>(extra_));
}

void blocking_job::run() noexcept {
  try {
    call();
  } catch (...) {
    result().set_error(std::current_exception());
  }
  drop_function();
}

void leave_blocking::operator()(blocking_job* job) const noexcept { job->extra().leave(); }

// ------------------------------------------------------------------ the wait

void blocking_wait_base::arm() noexcept {
  blocking_extra& extra = job_->extra();
  withdrawn_ = false;
  if (extra.in_flight()) return;  // simulated: restarted before its message arrived
  extra.ask(*this);
  if (extra.home()->simulated()) return extra.answer_by_message();
  if (std::exception_ptr failed = blocking_pool::instance().submit(extra)) {
    extra.take_back();
    job_->result().set_error(std::move(failed));
    complete();
  }
}

void blocking_wait_base::answered() noexcept {
  if (withdrawn_) return;
  if (job_->extra().home()->simulated()) job_->run();
  complete();
}

cancel_result blocking_wait_base::withdraw() noexcept {
  using removed = blocking_pool::removed;
  blocking_extra& extra = job_->extra();
  if (extra.home()->simulated()) {
    withdrawn_ = true;
    return cancel_result::done;
  }
  const removed how = blocking_pool::instance().remove(extra);
  if (how == removed::no) return cancel_result::no;
  if (how == removed::from_queue) return cancel_result::done;
  // Its thread continues without a waiter, and frees it: no restart is possible.
  [[maybe_unused]] const auto* const left = job_.release();
  loop::here()->emit("blocking_abandoned", "blocking");
  complete();
  return cancel_result::later;
}

void blocking_wait_base::describe(dump_line& line) const {
  if (job_ == nullptr || job_->extra().home() == nullptr) {
    line.add("blocking");  // not started
  } else if (job_->extra().home()->simulated()) {
    line.add("blocking, queued");
  } else if (const std::uint64_t position = blocking_pool::instance().place_of(job_->extra())) {
    line.add("blocking, queued as number ").add(position);
  } else {
    line.add("blocking, running");
  }
}

}  // namespace weir::detail
