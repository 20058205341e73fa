// SPDX-License-Identifier: MIT
#include "toolkit/blocking_pool.hpp"

#include <thread>
#include <utility>

#include "core/signals.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t threads_max = 64;

/// Sends the result to the caller's loop, or destroys it if the caller has abandoned the call.
void send(blocking_extra& done) noexcept {
  if (!done.claim()) return done.dispose();
  done.answer_by_message();
}

}  // namespace

blocking_pool& blocking_pool::instance() {
  static blocking_pool* const made = new blocking_pool;
  return *made;
}

// ------------------------------------------------------------------ under the mutex

void blocking_pool::append(blocking_extra& call) noexcept {
  call.where = place::queued;
  call.before = last_;
  call.after = nullptr;
  (last_ == nullptr ? first_ : last_->after) = &call;
  last_ = &call;
  queued_.store(true, std::memory_order_relaxed);
}

void blocking_pool::unlink(blocking_extra& call) noexcept {
  (call.before == nullptr ? first_ : call.before->after) = call.after;
  (call.after == nullptr ? last_ : call.after->before) = call.before;
  if (first_ == nullptr) queued_.store(false, std::memory_order_relaxed);
}

void blocking_pool::push_idle(worker& w) noexcept {
  w.idle = true;
  w.above = nullptr;
  w.below = idle_;
  if (idle_ != nullptr) idle_->above = &w;
  idle_ = &w;
}

void blocking_pool::remove_idle(worker& w) noexcept {
  w.idle = false;
  (w.above == nullptr ? idle_ : w.above->below) = w.below;
  if (w.below != nullptr) w.below->above = w.above;
}

blocking_pool::appointed blocking_pool::appoint(bool may_start) noexcept {
  if (searching_ || first_ == nullptr) return {};
  if (worker* const last = idle_) {
    remove_idle(*last);
    searching_ = true;
    return {.woken = last};
  }
  if (!may_start || threads_ >= threads_max) return {};
  ++threads_;
  searching_ = true;
  return {.start = true};
}

// ------------------------------------------------------------------ the callers

void blocking_pool::submit(blocking_extra& call) noexcept {
  locked lock(mutex_);
  append(call);
  const appointed who = appoint();
  lock.unlock();
  summon(who);
}

blocking_pool::removed blocking_pool::remove(blocking_extra& call) noexcept {
  locked lock(mutex_);
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
  const appointed who = appoint();
  lock.unlock();
  summon(who);
  return removed::abandoned;
}

std::uint64_t blocking_pool::place_of(const blocking_extra& call) noexcept {
  const locked lock(mutex_);
  if (call.where != place::queued) return 0;
  std::uint64_t position = 1;
  for (const blocking_extra* c = call.before; c != nullptr; c = c->before) ++position;
  return position;
}

void blocking_pool::set_idle_limit(std::chrono::nanoseconds limit) noexcept {
  const locked lock(mutex_);
  idle_limit_ = limit;
}

std::size_t blocking_pool::threads() noexcept {
  const locked lock(mutex_);
  return threads_;
}

// ------------------------------------------------------------------ wake and start

void blocking_pool::summon(appointed who) noexcept {
  if (who.woken != nullptr) who.woken->wakes.ring();
  if (!who.start) return;
  try {
    start_thread();
  } catch (...) {
    start_failed(std::current_exception());
  }
}

void blocking_pool::start_thread() {
  const program_signals during;
  std::thread([this] { work(); }).detach();
}

void blocking_pool::start_failed(const std::exception_ptr& why) noexcept {
  locked lock(mutex_);
  --threads_;
  searching_ = false;
  const appointed who = appoint(false);
  blocking_extra* failed = nullptr;
  if (threads_ == 0) {
    failed = std::exchange(first_, nullptr);
    last_ = nullptr;
    queued_.store(false, std::memory_order_relaxed);
    for (blocking_extra* call = failed; call != nullptr; call = call->after)
      call->where = place::nowhere;
  }
  lock.unlock();
  summon(who);
  while (failed != nullptr) {
    blocking_extra& call = *std::exchange(failed, failed->after);
    call.job->result().set_error(why);
    send(call);
  }
}

// ------------------------------------------------------------------ the threads

void blocking_pool::work() noexcept {
  worker me;
  blocking_extra* call = nullptr;
  while ((call = next_call(me, call)) != nullptr) call->job->run();
}

// Sends the result of `done`, if any, and returns the next call to run; null: the thread ends.
blocking_extra* blocking_pool::next_call(worker& me, blocking_extra* done) noexcept {
  locked lock(mutex_);
  if (done != nullptr && std::exchange(done->where, place::nowhere) == place::replaced) {
    if (!comes_back(*std::exchange(done, nullptr), lock)) return nullptr;
  }
  if (!wait_for_call(me, done, lock)) return nullptr;
  blocking_extra& call = *first_;
  unlink(call);
  call.where = place::running;
  appointed next;
  if (std::exchange(me.searching, false)) {
    searching_ = false;
    next = appoint();
  }
  lock.unlock();
  summon(next);
  if (done != nullptr) send(*done);
  return &call;
}

// An abandoned call has ended. Its result may be destroyed here, by user code, so it is sent before
// the next call is taken.
bool blocking_pool::comes_back(blocking_extra& abandoned, locked& lock) noexcept {
  lock.unlock();
  send(abandoned);
  lock.lock();
  if (threads_ >= threads_max) return false;
  ++threads_;
  return true;
}

bool blocking_pool::wait_for_call(worker& me, blocking_extra*& done, locked& lock) noexcept {
  while (first_ == nullptr) {
    if (!searching_) me.searching = searching_ = true;
    const bool found = search(me, std::exchange(done, nullptr), lock);
    if (first_ != nullptr) break;
    if (found) continue;  // and taken by another thread, or removed
    if (std::exchange(me.searching, false)) searching_ = false;
    if (!sleep(me, lock)) return false;
  }
  return true;
}

bool blocking_pool::search(worker& me, blocking_extra* done, locked& lock) noexcept {
  if (done == nullptr && !me.searching) return false;
  lock.unlock();
  if (done != nullptr) send(*done);
  auto queued = [this] { return queued_.load(std::memory_order_relaxed); };
  const bool found = me.searching && me.before_sleep.spin(queued);
  lock.lock();
  return found;
}

bool blocking_pool::sleep(worker& me, locked& lock) noexcept {
  using slept = bell::slept;
  push_idle(me);
  const std::chrono::nanoseconds limit = idle_limit_;
  lock.unlock();
  slept how = slept::disturbed;
  while (how == slept::disturbed) how = me.wakes.sleep(limit.count());
  lock.lock();
  if (how == slept::timed_out) {
    if (me.idle) {
      remove_idle(me);
      --threads_;
      return false;
    }
    // It was appointed at this moment.
    lock.unlock();
    while (me.wakes.sleep(-1) != slept::rung) {
    }
    lock.lock();
  }
  me.searching = true;
  return true;
}

}  // namespace weir::detail
