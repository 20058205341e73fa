// SPDX-License-Identifier: MIT
#include <weir/blocking.hpp>

#include <new>

#include <weir/detail/core/dump_line.hpp>

#include "core/loop.hpp"
#include "toolkit/blocking_pool.hpp"

namespace weir::detail {

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

// A simulated call that was withdrawn waits for its message; its function must not outlive the
// caller. A real one in flight has been run, and its function is gone.
void leave_blocking::operator()(blocking_job* job) const noexcept {
  if (job->extra().in_flight()) job->drop_function();
  job->extra().leave();
}

// ------------------------------------------------------------------ the wait

void blocking_wait_base::arm() noexcept {
  blocking_extra& extra = job_->extra();
  withdrawn_ = false;
  if (extra.in_flight()) return;  // simulated: restarted before its message arrived
  extra.ask(*this);
  if (extra.home()->simulated()) return extra.answer_by_message();
  blocking_pool::instance().submit(extra);
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
