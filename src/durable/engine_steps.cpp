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
  auto* const job = new step_job(*this, run, w, past);
  w.job = core_ref(job);
  ++run.live->jobs;
  if (journal_->durable_lsn() >= job->depends()) return job->start(*steps_);
  waiting_steps_.push_back(w.job);
  if (job->depends() > taken_lsn_) want_flush();
}

// In the order in which they were issued.
void engine_core::start_waiting_steps() noexcept {
  if (steps_ == nullptr || steps_->cancel_requested()) return;
  const std::uint64_t durable_now = journal_->durable_lsn();
  list_visits += waiting_steps_.size();
  auto kept = waiting_steps_.begin();
  for (core_ref& waiting : waiting_steps_) {
    step_job& job = job_in(waiting);
    if (job.depends() <= durable_now) {
      job.start(*steps_);
    } else {
      *kept++ = std::move(waiting);
    }
  }
  waiting_steps_.erase(kept, waiting_steps_.end());
}

void engine_core::step_lost(durable_run& run) noexcept {
  if (run.state == durable::run_state::blocked && run.live->jobs == 0) stop_blocked(run);
}

}  // namespace weir::detail
