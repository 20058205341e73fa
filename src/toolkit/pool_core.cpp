// SPDX-License-Identifier: MIT
#include "toolkit/pool_core.hpp"

#include <algorithm>
#include <utility>

#include <weir/detail/core/run_rules.hpp>

#include "core/cancel_tree.hpp"
#include "core/counters.hpp"
#include "core/loop.hpp"
#include "toolkit/option.hpp"
#include "toolkit/pool_worker.hpp"

namespace weir::detail {

namespace {

constexpr std::uint64_t largest_batch = 64;
constexpr std::uint64_t batches_per_pool = 8;

// Workers of a simulated loop are simulated; others are threads with the machine's clock.
const void* clock_of_workers() noexcept {
  const loop* const here = loop::here();
  return here != nullptr && here->shared_door()->simulated() ? here->shared_door()->clock()
                                                             : nullptr;
}

std::size_t positive(std::int64_t value, const char* which, const std::string& pool) {
  require_positive(value, "pool '" + pool + "'", which);
  return static_cast<std::size_t>(value);
}

}  // namespace

// ------------------------------------------------------------------ after the mutex is released

void pool_chores::wake(pool_seat& seat) noexcept {
  seat.next_idle = std::exchange(woken_, &seat);
  some_ = true;
}

void pool_chores::answer(remote_op& job) noexcept {
  message& carrier = static_cast<remote_start&>(job);
  carrier.next = nullptr;
  *answers_end_ = &carrier;
  answers_end_ = &carrier.next;
  some_ = true;
}

// A worker that was woken, and a job that was answered, may be in another list at once: its link is
// read before that.
void pool_chores::do_all() noexcept {
  while (woken_ != nullptr) {
    pool_seat& seat = *std::exchange(woken_, woken_->next_idle);
    seat.door->post(seat.wake);
  }
  while (answers_ != nullptr) {
    message* const carrier = std::exchange(answers_, answers_->next);
    auto& job = static_cast<remote_op&>(static_cast<remote_start&>(*carrier));
    job.answer_by_message();
  }
  if (stopped_ != nullptr) nudge(*stopped_, *stopped_at_, force_);
  if (close_ended_) pool_.drain_.answer_by_message();
}

// ------------------------------------------------------------------ construction and state

pool_core::pool_core(const pool_options& options)
    : name_(options.name.empty() ? "pool" : options.name.view()),
      worker_count_(positive(options.workers, "workers", name_)),
      limit_(worker_count_ + positive(options.queue_size, "queue_size", name_)),
      batch_(std::clamp<std::uint64_t>(limit_ / batches_per_pool, 1, largest_batch)),
      clock_(clock_of_workers()),
      workers_left_(0) {}

void pool_core::start_workers() try {
  for (std::size_t i = 0; i < worker_count_; ++i) seats_.push_back(std::make_unique<pool_seat>());
  for (std::size_t i = 0; i < worker_count_; ++i) {
    workers_.push_back(
        served_loop::start(name_ + "-" + std::to_string(i),
                           std::make_unique<pool_worker>(shared_from_this(), *seats_[i])));
    lowest_serial_ = std::min(lowest_serial_, workers_.back()->ref().serial());
    highest_serial_ = std::max(highest_serial_, workers_.back()->ref().serial());
  }
} catch (...) {  // no more threads; the started workers have no job yet
  close();
  for (const auto& worker : workers_) worker->join();
  throw;
}

// Almost every other loop is outside the range.
bool pool_core::is_own_worker() const noexcept {
  const loop* here = loop::here();
  if (here == nullptr || here->serial() < lowest_serial_ || here->serial() > highest_serial_)
    return false;
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const auto& w) { return w->ref().serial() == here->serial(); });
}

bool pool_core::is_of_another_world() const noexcept {
  return loop::here() != nullptr && clock_of_workers() != clock_;
}

void pool_core::require_no_run() const { detail::require_no_run("pool", name_); }

bool pool_core::closed() const noexcept {
  const std::lock_guard lock(mutex_);
  return closed_;
}

errc pool_core::refusal_now() const noexcept {
  const std::lock_guard lock(mutex_);
  return closed_ ? refusal() : accepted;
}

void pool_core::raise_refusal(errc why) const {
  std::string text("pool '");
  text.append(name_);
  if (why == errc::wrong_loop)
    raise(errc::wrong_loop, text.append("': it and the loop that uses it are not in the same "
                                        "simulation; make it where it is used"));
  if (why == errc::loop_gone)
    raise(errc::loop_gone, text.append("': its workers have crashed; make another one"));
  raise(errc::pool_closed, text.append("' is closed; submit before close()"));
}

// ------------------------------------------------------------------ admission

// Whether the callers that wait get the free places now.
bool pool_core::has_room() const noexcept {
  return !waiting_.empty() && limit_ - accepted_ >= (urgent_ ? 1 : batch_);
}

void pool_core::free_places(std::uint64_t count, pool_chores& then) noexcept {
  accepted_ -= count;
  if (has_room()) admit_waiting(then);
  if (drain_asked_ && accepted_ == 0) {
    drain_asked_ = false;
    then.answer_close();
  }
}

errc pool_core::enter(remote_ref& job, entry how) noexcept {
  if (is_of_another_world()) return errc::wrong_loop;
  pool_chores then(*this);
  const std::lock_guard lock(mutex_);
  if (closed_) return refusal();
  // A pool with a free place is not full; the callers that wait get theirs first.
  if (how == entry::now && !waiting_.empty()) admit_waiting(then);
  if (waiting_.empty() && accepted_ < limit_) {
    ++accepted_;
    queue(*job, then);
    if (job->wants_result) return accepted;
    if (job->is_asked()) {
      job->retain();
    } else {
      (void)job.detach();
    }
    return accepted;
  }
  if (how != entry::now) {
    job->where = remote_op::place::waiting;
    waiting_.push_back(*job);
    urgent_ = urgent_ || how == entry::waits_urgently;
    free_places(0, then);
  }
  return errc::pool_full;
}

void pool_core::queue(remote_op& job, pool_chores& then) noexcept {
  job.where = remote_op::place::queued;
  if (queue_.empty()) has_queued_.store(true, std::memory_order_relaxed);
  queue_.push_back(job);
  wake_idle(then);
}

void pool_core::wake_idle(pool_chores& then) noexcept {
  if (searching_ > 0 || idle_ == nullptr) return;
  pool_seat& seat = *std::exchange(idle_, idle_->next_idle);
  seat.idle = false;
  seat.searching = true;
  ++searching_;
  then.wake(seat);
}

// All free places go to the callers that have waited longest.
void pool_core::admit_waiting(pool_chores& then) noexcept {
  while (!waiting_.empty() && accepted_ < limit_) {
    remote_op& job = waiting_.pop_front();
    ++accepted_;
    if (!job.wants_result) {
      job.retain();
      then.answer(job);
    }
    queue(job, then);
  }
  if (waiting_.empty()) urgent_ = false;
}

void pool_core::refuse_waiting(pool_chores& then) noexcept {
  while (!waiting_.empty()) {
    remote_op& job = waiting_.pop_front();
    job.where = remote_op::place::nowhere;
    job.refused = true;
    then.answer(job);
  }
  urgent_ = false;
}

void pool_core::make_urgent() noexcept {
  pool_chores then(*this);
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return;
  urgent_ = true;
  free_places(0, then);
}

cancel_result pool_core::take_back(remote_op& job, reason_ref why, bool force) noexcept {
  pool_chores then(*this);
  const std::lock_guard lock(mutex_);
  switch (job.where) {
    case remote_op::place::waiting:
      waiting_.take(job);
      if (waiting_.empty()) urgent_ = false;
      break;
    case remote_op::place::queued:
      if (!job.wants_result) return cancel_result::no;  // the answer is on its way
      queue_.take(job);
      left_queue();
      free_places(1, then);
      break;
    case remote_op::place::running:
      if (!job.wants_result) return cancel_result::no;
      if (!job.why) job.why = std::move(why);
      then.stop(job, force);
      return cancel_result::later;
    default:
      return cancel_result::no;
  }
  job.where = remote_op::place::nowhere;
  return cancel_result::done;
}

// ------------------------------------------------------------------ workers

// The job of a seat has ended: nothing but memory is left of it, or its caller will own the rest.
void pool_core::end_job(pool_seat& seat, pool_chores& then) noexcept {
  seat.ended = false;
  remote_op& job = *std::exchange(seat.running, nullptr);
  job.where = remote_op::place::nowhere;
  free_places(1, then);
  if (job.wants_result) {
    then.answer(job);
  } else {
    then.let_go(remote_ref(&job));
  }
}

remote_run pool_core::next_job(pool_seat& seat, bool& idle) noexcept {
  const bool may_idle = std::exchange(idle, false);
  pool_chores then(*this);
  const std::lock_guard lock(mutex_);
  if (seat.door == nullptr) seat.door = loop::here()->shared_door();
  if (seat.ended) end_job(seat, then);
  if (!queue_.empty()) {
    remote_op& job = queue_.pop_front();
    left_queue();
    end_search(seat, then);
    seat.running = &job;
    job.where = remote_op::place::running;
    job.worker = &seat;
    return remote_run(job, this);
  }
  if (closed_ || may_idle) {
    end_search(seat, then);
  } else if (!seat.searching && !seat.door->simulated()) {
    seat.searching = true;
    ++searching_;
  }
  if (may_idle && !closed_) {
    seat.idle = idle = true;
    seat.next_idle = std::exchange(idle_, &seat);
  }
  return {};
}

// A worker that searches no more passes the duty on.
void pool_core::end_search(pool_seat& seat, pool_chores& then) noexcept {
  if (!std::exchange(seat.searching, false)) return;
  --searching_;
  if (!queue_.empty()) wake_idle(then);
}

void pool_core::stops_searching(pool_seat& seat) noexcept {
  pool_chores then(*this);
  const std::lock_guard lock(mutex_);
  end_search(seat, then);
}

bool pool_core::stops_being_idle(pool_seat& seat) noexcept {
  const std::lock_guard lock(mutex_);
  return end_idling(seat);
}

bool pool_core::end_idling(pool_seat& seat) noexcept {
  if (!std::exchange(seat.idle, false)) return false;
  pool_seat** at = &idle_;
  while (*at != &seat) at = &(*at)->next_idle;
  *at = seat.next_idle;
  return true;
}

void pool_core::ended(remote_op& job, bool may_ask_again) noexcept {
  pool_seat& seat = *job.worker;
  std::exception_ptr error;
  if (!job.wants_result) {
    if (const outcome_base& result = job.result(); !result.is_value()) [[unlikely]] {
      error = result.error();
      if (error != nullptr) keep_error(error);
    }
    job.drop_result();
  }
  seat.ended = true;
  if (may_ask_again && error == nullptr) return;
  {
    pool_chores then(*this);
    const std::lock_guard lock(mutex_);
    end_job(seat, then);
  }
  if (error != nullptr && !in_dead_world()) loop::here()->emit("suppressed", name_, 0, 0, error);
}

// Leaves it to the caller if it is not the first.
void pool_core::keep_error(std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex_);
  if (first_error_ == nullptr) first_error_ = std::exchange(error, nullptr);
}

// The other workers continue; a wake-up that the lost worker missed is repeated.
void pool_core::worker_gone(pool_seat& seat) noexcept {
  job_list lost;
  {
    pool_chores then(*this);
    const std::lock_guard lock(mutex_);
    if (seat.ended) end_job(seat, then);
    end_idling(seat);
    end_search(seat, then);
    if (--workers_left_ > 0) return;
    lost_ = !closed_ || !queue_.empty();
    closed_ = true;
    refuse_waiting(then);
    lost = take_queue();
  }
  for (remote_op* job = lost.first(); job != nullptr; job = job->following) {
    lose(*job, nullptr);
    std::exception_ptr error = job->wants_result ? nullptr : job->result().error();
    if (error != nullptr) keep_error(error);
  }
  drop(std::move(lost));
}

// ------------------------------------------------------------------ closing and cancelling

void pool_core::close() noexcept {
  pool_chores then(*this);
  const std::lock_guard lock(mutex_);
  closed_ = true;
  refuse_waiting(then);
  while (idle_ != nullptr) {
    pool_seat& seat = *std::exchange(idle_, idle_->next_idle);
    seat.idle = false;
    seat.searching = true;
    ++searching_;
    then.wake(seat);
  }
}

// The places of the jobs stay taken until they are destroyed, outside the mutex: see `drop`.
job_list pool_core::take_queue() noexcept {
  for (remote_op* job = queue_.first(); job != nullptr; job = job->following)
    job->where = remote_op::place::nowhere;
  has_queued_.store(false, std::memory_order_relaxed);
  return std::move(queue_);
}

// The jobs have ended and their functions are destroyed.
void pool_core::drop(job_list taken) noexcept {
  for (remote_op* job = taken.first(); job != nullptr; job = job->following)
    if (!job->wants_result) job->drop_result();
  if (!taken.empty()) {
    pool_chores then(*this);
    const std::lock_guard lock(mutex_);
    free_places(taken.size(), then);
  }
  while (!taken.empty()) {
    remote_op& job = taken.pop_front();
    if (job.wants_result) {
      job.answer_by_message();
    } else {
      job.release();
    }
  }
}

void pool_core::cancel(cancel_reason reason) noexcept {
  close();
  loop* const here = loop::here();
  reason.when = here == nullptr ? time_point{} : here->now();
  const reason_ref why = make_reason(std::move(reason));
  std::vector<std::pair<remote_ref, door*>> running;
  running.reserve(seats_.size());
  job_list taken = [&] {
    const std::lock_guard lock(mutex_);
    for (const auto& seat : seats_) {
      if (seat->running == nullptr) continue;
      if (!seat->running->why) seat->running->why = why;
      running.emplace_back(remote_ref::share(seat->running), seat->door.get());
    }
    return take_queue();
  }();
  for (const auto& [job, there] : running) nudge(*job, *there, false);
  if (taken.empty()) return;
  const std::size_t count = taken.size();
  for (remote_op* job = taken.first(); job != nullptr; job = job->following) {
    job->drop_operation();
    job->result().set_cancelled(why);
  }
  drop(std::move(taken));
  if (here != nullptr) {
    here->emit("job_dropped", name_, count);
  } else {
    counters::count(name_, "job_dropped");
  }
}

bool pool_core::claim_close() noexcept {
  const std::lock_guard lock(mutex_);
  return !std::exchange(close_called_, true);
}

std::exception_ptr pool_core::take_error() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(first_error_, nullptr);
}

bool pool_core::drained(drain_wait& waiter) {
  const std::lock_guard lock(mutex_);
  if (accepted_ == 0) return true;
  drain_.ask(waiter);
  drain_.pool = shared_from_this();
  drain_asked_ = true;
  return false;
}

bool pool_core::forget_drain() noexcept {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(drain_asked_, false)) return false;
  drain_.take_back();
  drain_.pool.reset();  // the caller has another reference
  return true;
}

}  // namespace weir::detail
