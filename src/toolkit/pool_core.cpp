// SPDX-License-Identifier: MIT
#include "toolkit/pool_core.hpp"

#include <algorithm>

#include <weir/detail/dump_line.hpp>

#include "core/counters.hpp"
#include "core/loop.hpp"
#include "core/region.hpp"
#include "toolkit/pool_worker.hpp"

namespace weir::detail {

namespace {

std::size_t positive(std::int64_t value, const char* which, std::string_view pool) {
  if (value > 0) return static_cast<std::size_t>(value);
  std::string text("pool '");
  text.append(pool).append("': ").append(which).append(" is ").append(std::to_string(value));
  raise(errc::invalid_argument, text.append("; give 1 or more"));
}

/// Tells whoever waits for a job that it was accepted, refused or has ended.
struct job_message final : message {
  explicit job_message(job_ref j) noexcept : job(std::move(j)) {}
  void deliver(loop&) noexcept override {
    if (pool_wait_base* w = std::exchange(job->waiter, nullptr)) w->arrived();
    delete this;
  }
  void refuse() noexcept override { delete this; }
  job_ref job;
};

void tell(const job_ref& job) noexcept {
  if (job->home != nullptr) job->home->post(*new job_message(job));
}

struct drain_message final : message {
  explicit drain_message(std::shared_ptr<pool_core> p) noexcept : pool(std::move(p)) {}
  void deliver(loop&) noexcept override {
    if (drain_wait* waiter = pool->take_drain()) waiter->arrived();
    delete this;
  }
  void refuse() noexcept override { delete this; }
  std::shared_ptr<pool_core> pool;
};

}  // namespace

taken_job::~taken_job() {
  if (job_ != nullptr) pool_->ended(job_);
}

pool_core::pool_core(const pool_options& options)
    : name_(options.name.empty() ? "pool" : options.name.view()),
      worker_count_(positive(options.workers, "workers", name_)),
      limit_(worker_count_ + positive(options.queue_size, "queue_size", name_)) {}

void pool_core::start_workers() try {
  for (std::size_t i = 0; i < worker_count_; ++i)
    workers_.push_back(
        served_loop::start(name_ + "-" + std::to_string(i), std::make_unique<pool_worker>(*this)));
} catch (...) {  // the system has no more threads; those that run have no job yet
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

bool pool_core::closed() const noexcept {
  const std::lock_guard lock(mutex_);
  return closed_;
}

// ------------------------------------------------------------------ admission

job_ref pool_core::make_running(job_list& from, pool_worker& worker) {
  job_ref job = from.front();
  running_.splice(running_.end(), from, from.begin());
  job->where = pool_job::place::running;
  job->op->parts().there = worker.door_;
  return job;
}

std::error_code pool_core::enter(const job_ref& job, bool may_wait) {
  const std::lock_guard lock(mutex_);
  if (closed_) return make_error_code(errc::pool_closed);
  if (queue_.size() + running_.size() >= limit_) {
    if (may_wait) {
      job->at = waiting_.insert(waiting_.end(), job);
      job->where = pool_job::place::waiting;
    }
    return make_error_code(errc::pool_full);
  }
  job->at = queue_.insert(queue_.end(), job);
  job->where = pool_job::place::queued;
  if (!idle_.empty()) {
    pool_worker* worker = idle_.front();
    idle_.pop_front();
    worker->idle_.reset();

    worker->door_->post(worker->wake_);
  }
  return {};
}

// A place is free: the oldest waiter gets it, with its job.
void pool_core::admit_waiting() noexcept {
  while (!waiting_.empty() && queue_.size() + running_.size() < limit_) {
    const job_ref job = waiting_.front();
    queue_.splice(queue_.end(), waiting_, waiting_.begin());
    job->where = pool_job::place::queued;
    if (!job->for_result) tell(job);
  }
}

cancel_result pool_core::take_back(const job_ref& job, const reason_ref& why) noexcept {
  const std::lock_guard lock(mutex_);
  switch (job->where) {
    case pool_job::place::waiting:
      waiting_.erase(job->at);
      break;
    case pool_job::place::queued:
      if (!job->for_result) return cancel_result::no;  // it is accepted: the news is on its way
      queue_.erase(job->at);
      admit_waiting();
      break;
    case pool_job::place::running:
      if (!job->for_result) return cancel_result::no;
      request_cancel(*job->op.get(), why);
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

// On the worker's loop: the job's result is its own until this tells about it.
void pool_core::ended(const job_ref& job) noexcept {
  const bool failed = !job->for_result && job->op->result().is_error();
  const std::exception_ptr error = failed ? job->op->result().error() : nullptr;
  if (!job->for_result) job->op->drop_operation();
  const std::lock_guard lock(mutex_);
  running_.erase(job->at);
  job->where = pool_job::place::ended;
  if (error != nullptr && first_error_ == nullptr) first_error_ = error;
  if (job->for_result) tell(job);
  admit_waiting();
  tell_drained();
}

// ------------------------------------------------------------------ the end

void pool_core::close() noexcept {
  job_list refused;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  refused.splice(refused.end(), waiting_);
  for (const job_ref& job : refused) {
    job->where = pool_job::place::nowhere;
    tell(job);
  }
  for (pool_worker* worker : idle_) {
    worker->idle_.reset();
    worker->door_->post(worker->wake_);
  }
  idle_.clear();
}

void pool_core::cancel(const cancel_reason& reason) noexcept {
  close();
  const reason_ref why = make_reason(reason);
  job_list dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.splice(dropped.end(), queue_);
    for (const job_ref& job : dropped) job->where = pool_job::place::ended;
    for (const job_ref& job : running_) request_cancel(*job->op.get(), why);
    tell_drained();
  }
  for (const job_ref& job : dropped) {
    job->op->drop_operation();
    job->op->result().set_cancelled(why);
    if (job->for_result) tell(job);
  }
  if (dropped.empty()) return;
  if (loop* here = loop::here()) {
    here->emit("job_dropped", name_, dropped.size());
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
  if (queue_.empty() && running_.empty()) return true;
  drain_home_ = home;
  drain_waiter_ = waiter;
  drain_told_ = false;
  return false;
}

void pool_core::tell_drained() noexcept {
  if (drain_waiter_ == nullptr || drain_told_ || !queue_.empty() || !running_.empty()) return;
  drain_told_ = true;
  drain_home_->post(*new drain_message(shared_from_this()));
}

drain_wait* pool_core::take_drain() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(drain_waiter_, nullptr);
}

bool pool_core::forget_drain() noexcept {
  const std::lock_guard lock(mutex_);
  if (drain_told_) return false;
  drain_waiter_ = nullptr;
  return true;
}

bool pool_core::was_refused(const pool_job& job) const noexcept {
  const std::lock_guard lock(mutex_);
  return job.where == pool_job::place::nowhere;
}

// ------------------------------------------------------------------ waits

void drain_wait::arm() {
  loop& here = *loop::here();
  if (pool_->drained(here.shared_door(), this)) return complete();
  waiting_ = true;
  here.expect_answer(1);
}

void drain_wait::arrived() noexcept {
  waiting_ = false;
  loop::here()->expect_answer(-1);
  complete();
}

cancel_result drain_wait::withdraw() noexcept {
  if (!pool_->forget_drain()) return cancel_result::no;  // the news is on its way
  waiting_ = false;
  loop::here()->expect_answer(-1);
  return cancel_result::done;
}

drain_wait::~drain_wait() {
  if (!waiting_) return;
  (void)pool_->take_drain();
  loop::here()->expect_answer(-1);
}

void drain_wait::describe(dump_line& line) const {
  line.add("the jobs of pool").add_name(pool_->name());
}

pool_wait_base::pool_wait_base(args&& a) noexcept
    : pool_(std::move(a.pool)), job_(std::move(a.job)), for_result_(a.for_result) {}

// True if there is nothing to wait for: accepted, or refused for good.
bool pool_wait_base::enter(bool may_wait) {
  const bool own = pool_->is_own_worker();
  if (!job_) {
    refused_ = make_error_code(errc::empty_job);
  } else if (own && for_result_) {
    refused_ = make_error_code(pool_->closed() ? errc::pool_closed : errc::would_deadlock);
  } else if (for_result_ && !may_wait) {
    return false;
  } else {
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
  }
  return true;
}

void pool_wait_base::prepare() {
  entry_->home = loop::here()->shared_door();
  entry_->waiter = this;
  if (!for_result_) return;
  const strand& s = *waiting_strand();
  job_->parts().locals = region::locals(region::scope_of(*s.top));
  job_->parts().deadline = earlier(s.top->deadline(), limit_);
  job_->parts().site = s.leaf->awaiting;
}

bool pool_wait_base::try_now() { return enter(false); }

void pool_wait_base::arm() {
  if (enter(true)) return complete();
  refused_ = {};
  waiting_ = true;
  loop::here()->expect_answer(1);
}

void pool_wait_base::arrived() noexcept {
  waiting_ = false;
  loop::here()->expect_answer(-1);
  if (pool_->was_refused(*entry_)) {
    refused_ = make_error_code(errc::pool_closed);
  } else if (cancelling_ && job_->result().is_value()) {
    loop::here()->emit("value_discarded", pool_->name());
  }
  complete();
}

cancel_result pool_wait_base::withdraw() noexcept {
  if (!waiting_) return cancel_result::done;
  const reason_ref& why = region::reason(*waiting_strand()->top);
  const cancel_result answer = pool_->take_back(entry_, remote_reason(why, loop::here()->now()));
  if (answer == cancel_result::done) {
    waiting_ = false;
    loop::here()->expect_answer(-1);
    entry_.reset();
  }
  cancelling_ = answer == cancel_result::later;
  return answer;
}

pool_wait_base::~pool_wait_base() {
  if (!waiting_) return;
  entry_->waiter = nullptr;
  loop::here()->expect_answer(-1);
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
  raise(errc::pool_closed, text.append("' is closed; submit before close()"));
}

void pool_wait_base::describe(dump_line& line) const {
  line.add(for_result_ ? "a job of pool" : "room in pool").add_name(pool_->name());
}

}  // namespace weir::detail
