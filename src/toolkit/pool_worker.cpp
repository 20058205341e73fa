// SPDX-License-Identifier: MIT
#include "toolkit/pool_worker.hpp"

#include <mutex>
#include <optional>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/region_await.hpp>

#include "core/loop.hpp"

namespace weir::detail {

pool_worker::pool_worker(std::shared_ptr<pool_core> pool, pool_seat& seat) noexcept
    : pool_(std::move(pool)), seat_(seat) {
  const std::lock_guard lock(pool_->mutex_);
  ++pool_->workers_left_;
}

// As run_remote, but for one job after the other in one frame, and mostly in one region.
task<> pool_worker::run() {
  remote_run job;  // outlives the region, which refers to it: its destructor may free it
  std::optional<remote_region> r;
  for (;;) {
    if (!job) job = co_await pending<job_wait>(this);
    if (!job) co_return;
    if (r && r->is_clean()) {
      r->reuse(job.op());
    } else {
      r.emplace(job.op());
    }
    if (!job.op().is_plain) {
      co_await remote_call{&*r};
    } else if (!call_jobs(*r, job)) {
      continue;
    }
    const bool deferred = has_entries(*r);
    if (deferred) co_await quietly(end_region(*r, job.op().result()));
    r->end();
    if (deferred) r.reset();
    job.finish();
    job = remote_run();
  }
}

// It uses up the turn as the awaits of `run` would. The region is left before anything suspends.
bool pool_worker::call_jobs(remote_region& r, remote_run& job) noexcept {
  strand& self = *current;
  enter_region(r);
  for (;;) {
    r.call();
    if (!r.is_clean()) return true;
    r.release();
    job.finish();
    if (self.budget > 0 && pool_->has_queued()) {
      --self.budget;
      bool idle = false;
      job = pool_->next_job(seat_, idle);
    }
    if (!job || !job.op().is_plain || !r.is_clean()) break;
    r.reuse(job.op());
  }
  leave_region(r);
  return false;
}

void pool_seat::wake_message::deliver(loop&) noexcept {
  if (seat.waiting != nullptr) seat.waiting->woken();
}

bool job_wait::try_now() noexcept {
  bool idle = false;
  job_ = pool_.next_job(seat_, idle);
  return static_cast<bool>(job_);
}

// Completes at once if there is a job or the worker may end; otherwise the worker becomes idle.
void job_wait::arm() noexcept {
  seat_.waiting = this;
  search();
  bool idle = true;
  job_ = pool_.next_job(seat_, idle);
  if (!idle) complete();
}

// Spins for a short time, if the loop has nothing else to do: while it does, a job costs its
// submitter no wake-up.
void job_wait::search() noexcept {
  loop& here = *loop::here();
  if (!seat_.searching || !here.nothing_ready()) return;
  seat_.spins.spin([&] { return pool_.has_queued() || here.has_messages(); });
}

cancel_result job_wait::withdraw() noexcept {
  if (pool_.stops_being_idle(seat_)) return cancel_result::done;
  leaving_ = true;
  return cancel_result::no;
}

void job_wait::woken() noexcept {
  bool idle = !leaving_;
  job_ = pool_.next_job(seat_, idle);
  if (idle) return;  // another worker took the job
  seat_.waiting = nullptr;
  complete();
}

// Another thread touches `searching` only while the worker is idle.
job_wait::~job_wait() {
  seat_.waiting = nullptr;
  if (seat_.searching) pool_.stops_searching(seat_);
}

void job_wait::describe(dump_line& line) const { line.add("a job of pool").add_name(pool_.name()); }

}  // namespace weir::detail
