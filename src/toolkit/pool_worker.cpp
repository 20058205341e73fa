// SPDX-License-Identifier: MIT
#include "toolkit/pool_worker.hpp"

#include <weir/detail/core/dump_line.hpp>

#include "core/loop.hpp"

namespace weir::detail {

task<> pool_worker::run() {
  for (;;) {
    taken_job job = co_await pending<job_wait>(this);
    if (!job) co_return;
    co_await run_remote(remote_run(job.op()));
  }
}

void pool_worker::wake_message::deliver(loop&) noexcept {
  if (worker.waiting_ != nullptr) worker.waiting_->woken();
}

bool job_wait::try_now() {
  bool idle = false;
  job_ = worker_.pool_->next_job(worker_, idle);
  return static_cast<bool>(job_);
}

// Completes at once if there is a job or the worker may end; otherwise the worker becomes idle.
void job_wait::arm() {
  worker_.waiting_ = this;
  bool idle = true;
  job_ = worker_.pool_->next_job(worker_, idle);
  if (!idle) complete();
}

cancel_result job_wait::withdraw() noexcept {
  if (worker_.pool_->stops_being_idle(worker_)) return cancel_result::done;
  leaving_ = true;
  return cancel_result::no;
}

void job_wait::woken() noexcept {
  bool idle = !leaving_;
  job_ = worker_.pool_->next_job(worker_, idle);
  if (idle) return;  // another worker took the job
  worker_.waiting_ = nullptr;
  complete();
}

void job_wait::describe(dump_line& line) const {
  line.add("a job of pool").add_name(worker_.pool_->name());
}

}  // namespace weir::detail
