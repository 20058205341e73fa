// SPDX-License-Identifier: MIT
// When steps start, and what becomes of a run whose step is lost.
#include "durable/engine_core.hpp"

#include "durable/step_job.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

void engine_core::start_step(durable_run& run, command_wait& w,
                             const run_history::step_past& past) {
  if (past.open)
    return refuse(run, w, errc::outcome_unknown,
                  "step_once '" + w.setup().name + "' of run '" + run.id.str() +
                      "' was under way when the process died; whether it was done is not known");
  const in_loop outside(host_);
  auto job = std::allocate_shared<step_job>(frame_allocator<step_job>(), *this, run, w, past);
  run.live->jobs.emplace(w.command, job);
  if (journal_->durable_lsn() >= job->depends()) return job->start(*steps_);
  waiting_steps_.push_back(std::move(job));
  if (waiting_steps_.back()->depends() > taken_lsn_) want_flush();
}

// In the order in which they were issued.
void engine_core::start_waiting_steps() noexcept {
  if (steps_ == nullptr || steps_->cancel_requested()) return;
  const std::uint64_t durable_now = journal_->durable_lsn();
  list_visits += waiting_steps_.size();
  for (const std::shared_ptr<step_job>& job : waiting_steps_)
    if (job->depends() <= durable_now) job->start(*steps_);
  std::erase_if(waiting_steps_, [&](const auto& job) { return job->depends() <= durable_now; });
}

void engine_core::step_lost(durable_run& run) noexcept {
  if (run.state == durable::run_state::blocked && run.live->jobs.empty()) stop_blocked(run);
}

}  // namespace weir::detail
