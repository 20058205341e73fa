// SPDX-License-Identifier: MIT
#include "toolkit/pool_core.hpp"

#include <algorithm>
#include <utility>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>

#include "core/cancel_tree.hpp"
#include "core/counters.hpp"
#include "core/loop.hpp"
#include "toolkit/option.hpp"
#include "toolkit/pool_worker.hpp"

namespace weir::detail {

namespace {

// Workers of a simulated loop are simulated; others are threads with the machine's clock.
const void* clock_of_workers() noexcept {
  loop* here = loop::here();
  return here != nullptr && here->env().simulated() ? here->env().clock() : nullptr;
}

std::size_t positive(std::int64_t value, const char* which, const std::string& pool) {
  require_positive(value, "pool '" + pool + "'", which);
  return static_cast<std::size_t>(value);
}

/// Notifies the waiter of a job that it was accepted, was refused or has ended.
void notify(const job_ref& job) noexcept {
  if (job->home == nullptr) return;
  job->on_its_way = job;
  job->home->post(*job);
}

/// Its worker is gone: ends the job with errc::loop_gone.
void answer_lost(const job_ref& job) noexcept { const remote_run never_begun{job->op}; }

}  // namespace

void pool_job::deliver(loop&) noexcept {
  const job_ref self = std::move(on_its_way);
  if (pool_wait_base* w = std::exchange(waiter, nullptr)) w->arrived();
}

void drain_message::deliver(loop&) noexcept {
  const std::shared_ptr<pool_core> pool = std::move(on_its_way);
  if (drain_wait* waiting = pool->take_drain()) waiting->arrived();
}

taken_job::~taken_job() {
  if (job_ != nullptr) pool_->ended(job_);
}

pool_core::pool_core(const pool_options& options)
    : name_(options.name.empty() ? "pool" : options.name.view()),
      worker_count_(positive(options.workers, "workers", name_)),
      limit_(worker_count_ + positive(options.queue_size, "queue_size", name_)),
      clock_(clock_of_workers()) {}

void pool_core::start_workers() try {
  for (std::size_t i = 0; i < worker_count_; ++i)
    workers_.push_back(served_loop::start(name_ + "-" + std::to_string(i),
                                          std::make_unique<pool_worker>(shared_from_this())));
} catch (...) {  // no more threads; the started workers have no job yet
  close();
  for (const auto& worker : workers_) worker->join();
  throw;
}

bool pool_core::is_own_worker() const noexcept {
  const loop* here = loop::here();
  return here != nullptr && std::any_of(workers_.begin(), workers_.end(), [&](const auto& w) {
           return w->ref().serial() == here->serial();
         });
}

bool pool_core::is_of_another_world() const noexcept {
  return loop::here() != nullptr && clock_of_workers() != clock_;
}

void pool_core::require_no_run() const { detail::require_no_run("pool", name_); }

bool pool_core::closed() const noexcept {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::error_code pool_core::refusal_now() const noexcept {
  const std::lock_guard lock(mutex_);
  return closed_ ? make_error_code(refusal()) : std::error_code();
}

void pool_core::raise_refusal(std::error_code why) const {
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

job_ref pool_core::make_running(job_list& from, pool_worker& worker) {
  job_ref job = from.front();
  running_.splice(running_.end(), from, from.begin());
  job->where = pool_job::place::running;
  job->op->extra().there = worker.door_;
  return job;
}

std::error_code pool_core::enter(const job_ref& job, bool may_wait) {
  require_no_run();
  if (is_of_another_world()) return make_error_code(errc::wrong_loop);
  const std::lock_guard lock(mutex_);
  if (closed_) return make_error_code(refusal());
  if (queue_.size() + running_.size() >= limit_) {
    if (may_wait) {
      job->at = waiting_.insert(waiting_.end(), job);
      job->where = pool_job::place::waiting;
    }
    return make_error_code(errc::pool_full);
  }
  job->at = queue_.insert(queue_.end(), job);
  job->where = pool_job::place::queued;
  wake_idle();
  return {};
}

void pool_core::wake_idle() noexcept {
  if (idle_.empty()) return;
  pool_worker* worker = idle_.front();
  idle_.pop_front();
  worker->idle_.reset();
  worker->door_->post(worker->wake_);
}

// There is room: the oldest waiters get it, and their jobs are queued.
void pool_core::admit_waiting() noexcept {
  while (!waiting_.empty() && queue_.size() + running_.size() < limit_) {
    const job_ref job = waiting_.front();
    queue_.splice(queue_.end(), waiting_, waiting_.begin());
    job->where = pool_job::place::queued;
    wake_idle();
    if (!job->for_result) notify(job);
  }
}

void pool_core::refuse_waiting(job_list& refused) noexcept {
  for (const job_ref& job : waiting_) {
    job->where = pool_job::place::nowhere;
    notify(job);
  }
  refused.splice(refused.end(), waiting_);
}

cancel_result pool_core::take_back(const job_ref& job, const reason_ref& why, bool force) noexcept {
  const std::lock_guard lock(mutex_);
  switch (job->where) {
    case pool_job::place::waiting:
      waiting_.erase(job->at);
      break;
    case pool_job::place::queued:
      if (!job->for_result) return cancel_result::no;  // accepted: the notification is on its way
      queue_.erase(job->at);
      admit_waiting();
      break;
    case pool_job::place::running:
      if (!job->for_result) return cancel_result::no;
      request_cancel(*job->op.get(), why, force);
      return cancel_result::later;
    default:
      return cancel_result::no;
  }
  job->where = pool_job::place::nowhere;
  return cancel_result::done;
}

// ------------------------------------------------------------------ workers

taken_job pool_core::next_job(pool_worker& worker, bool& idle) {
  const bool may_idle = std::exchange(idle, false);
  const std::lock_guard lock(mutex_);
  if (worker.door_ == nullptr) worker.door_ = loop::here()->shared_door();

  if (!queue_.empty()) return {*this, make_running(queue_, worker)};
  if (may_idle && !may_end()) {
    worker.idle_ = idle_.insert(idle_.end(), &worker);
    idle = true;
  }
  return {};
}

bool pool_core::stops_being_idle(pool_worker& worker) noexcept {
  const std::lock_guard lock(mutex_);
  if (!worker.idle_) return false;
  idle_.erase(*worker.idle_);
  worker.idle_.reset();
  return true;
}

// On the worker's loop. The result of a submitted job is destroyed before close() can return; any
// other result belongs to its waiter alone once the waiter is notified.
void pool_core::ended(const job_ref& job) noexcept {
  if (job->op->result().pending()) answer_lost(job);  // taken, but never begun
  std::exception_ptr error;
  if (!job->for_result) {
    error = job->op->result().error();
    job->op->drop_result();
  }
  {
    remote_ref op;  // released after the lock
    const std::lock_guard lock(mutex_);
    running_.erase(job->at);
    job->where = pool_job::place::ended;
    op = std::move(job->op);
    if (first_error_ == nullptr) first_error_ = std::exchange(error, nullptr);
    admit_waiting();
    notify_drained();
  }
  if (job->for_result) notify(job);
  if (error != nullptr && !in_dead_world()) loop::here()->emit("suppressed", name_, 0, 0, error);
}

void pool_core::worker_added() noexcept {
  const std::lock_guard lock(mutex_);
  ++workers_left_;
}

// The other workers continue; a wake-up that the lost worker missed is repeated.
void pool_core::worker_gone(pool_worker& worker) noexcept {
  job_list refused;
  job_list lost;
  {
    const std::lock_guard lock(mutex_);
    if (worker.idle_) idle_.erase(*worker.idle_);
    if (--workers_left_ > 0) {
      if (!queue_.empty()) wake_idle();
      return;
    }
    lost_ = !closed_ || !queue_.empty();
    closed_ = true;
    refuse_waiting(refused);
    take_queue(lost);
  }
  std::exception_ptr error;
  for (const job_ref& job : lost) {
    answer_lost(job);
    if (!job->for_result) error = job->op->result().error();
  }
  dropped(lost, error);
}

// ------------------------------------------------------------------ closing and cancelling

void pool_core::close() noexcept {
  job_list refused;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  refuse_waiting(refused);
  while (!idle_.empty()) wake_idle();
}

// The taken jobs are destroyed outside the mutex; the pool is not drained until `dropped`.
void pool_core::take_queue(job_list& taken) noexcept {
  for (const job_ref& job : queue_) job->where = pool_job::place::ended;
  being_dropped_ += queue_.size();
  taken.splice(taken.end(), queue_);
}

void pool_core::dropped(const job_list& taken, const std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex_);
  if (first_error_ == nullptr) first_error_ = error;
  for (const job_ref& job : taken)
    if (job->for_result) notify(job);
  being_dropped_ -= taken.size();
  notify_drained();
}

void pool_core::cancel(cancel_reason reason) noexcept {
  close();
  loop* const here = loop::here();
  reason.when = here == nullptr ? time_point{} : here->now();
  const reason_ref why = make_reason(std::move(reason));
  job_list taken;
  {
    const std::lock_guard lock(mutex_);
    take_queue(taken);
    for (const job_ref& job : running_) request_cancel(*job->op.get(), why, false);
  }
  if (taken.empty()) return;
  for (const job_ref& job : taken) {
    job->op->drop_operation();
    job->op->result().set_cancelled(why);
  }
  dropped(taken, nullptr);
  if (here != nullptr) {
    here->emit("job_dropped", name_, taken.size());
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

bool pool_core::drained(const door_ref& home, drain_wait* waiter) {
  const std::lock_guard lock(mutex_);
  if (is_drained()) return true;
  drain_home_ = home;
  drain_waiter_ = waiter;
  drain_notified_ = false;
  return false;
}

void pool_core::notify_drained() noexcept {
  if (drain_waiter_ == nullptr || drain_notified_ || !is_drained()) return;
  drain_notified_ = true;
  drained_.on_its_way = shared_from_this();
  drain_home_->post(drained_);
}

drain_wait* pool_core::take_drain() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(drain_waiter_, nullptr);
}

bool pool_core::forget_drain() noexcept {
  const std::lock_guard lock(mutex_);
  if (drain_notified_) return false;
  drain_waiter_ = nullptr;
  return true;
}

std::error_code pool_core::refusal_of(const pool_job& job) const noexcept {
  const std::lock_guard lock(mutex_);
  if (job.where != pool_job::place::nowhere) return {};
  return make_error_code(refusal());
}

// ------------------------------------------------------------------ waits

void drain_wait::arm() {
  if (pool_->drained(loop::here()->shared_door(), this)) return complete();
  due_.expect();
}

void drain_wait::arrived() noexcept {
  due_.settle();
  complete();
}

cancel_result drain_wait::withdraw() noexcept {
  if (!pool_->forget_drain()) return cancel_result::no;  // the notification is on its way
  due_.settle();
  return cancel_result::done;
}

drain_wait::~drain_wait() {
  if (due_) (void)pool_->take_drain();
}

void drain_wait::describe(dump_line& line) const {
  line.add("the jobs of pool").add_name(pool_->name());
}

pool_wait_base::pool_wait_base(args&& a) noexcept
    : pool_(std::move(a.pool)), job_(std::move(a.job)), for_result_(a.for_result) {}

// Whether the job is empty, or this pool accepts no jobs.
bool pool_wait_base::is_refused() {
  if (!job_) {
    refused_ = make_error_code(errc::empty_job);
  } else if (pool_->is_of_another_world()) {
    refused_ = make_error_code(errc::wrong_loop);
  } else {
    refused_ = pool_->refusal_now();
  }
  return static_cast<bool>(refused_);
}

// True if there is nothing to wait for: accepted, or finally refused.
bool pool_wait_base::enter(bool may_wait) {
  const bool own = pool_->is_own_worker();
  if (!job_ || (own && for_result_)) {
    if (!is_refused()) refused_ = make_error_code(errc::would_deadlock);
    return true;
  }
  if (for_result_ && !may_wait) return false;
  if (entry_ == nullptr) {
    entry_ = std::make_shared<pool_job>();
    entry_->op = job_;
    entry_->for_result = for_result_;
  }
  if (may_wait) prepare();
  refused_ = pool_->enter(entry_, may_wait && !own);
  if (refused_ != errc::pool_full) return refused_ || !for_result_;
  if (!own) return false;
  refused_ = make_error_code(errc::would_deadlock);
  return true;
}

void pool_wait_base::prepare() {
  entry_->home = loop::here()->shared_door();
  entry_->waiter = this;
  if (for_result_) inherit(job_->extra(), *this, limit_, pool_->clock());
}

bool pool_wait_base::try_now() {
  pool_->require_no_run();
  return enter(false);
}

void pool_wait_base::arm() {
  if (enter(true)) return complete();
  refused_ = {};
  due_.expect();
}

void pool_wait_base::arrived() noexcept {
  due_.settle();
  refused_ = pool_->refusal_of(*entry_);
  complete();
}

cancel_result pool_wait_base::withdraw() noexcept {
  if (!due_) return cancel_result::done;
  const context& top = *waiting_strand()->top;
  const cancel_result answer =
      pool_->take_back(entry_, remote_reason(cancel_tree::reason(top)), cancel_tree::forced(top));
  if (answer == cancel_result::done) {
    due_.settle();
    entry_.reset();
  }
  cancelling_ = cancelling_ || answer == cancel_result::later;
  return answer;
}

void pool_wait_base::grace_over() noexcept { (void)pool_->take_back(entry_, {}, true); }

bool pool_wait_base::ended_by_itself() const noexcept {
  return cancelling_ && !due_ && !job_->result().is_cancelled();
}

pool_wait_base::~pool_wait_base() {
  if (due_) {
    entry_->waiter = nullptr;
  } else if (cancelling_) {
    emit_unseen(job_->result(), pool_->name());
  }
}

bool pool_wait_base::failed() const noexcept {
  return refused_ || (for_result_ && !job_->result().is_value());
}

void pool_wait_base::check() const {
  if (!refused_) return;
  if (refused_ == errc::empty_job) raise_empty_job();
  std::string text("pool '");
  text.append(pool_->name());
  if (refused_ == errc::would_deadlock)
    raise(errc::would_deadlock,
          text.append("': one of its own jobs waits for it and would wait for ever; use "
                      "try_submit, or another pool"));
  pool_->raise_refusal(refused_);
}

void pool_wait_base::describe(dump_line& line) const {
  line.add(for_result_ ? "a job of pool" : "room in pool").add_name(pool_->name());
}

}  // namespace weir::detail
