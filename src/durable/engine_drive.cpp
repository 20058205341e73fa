// SPDX-License-Identifier: MIT
// Letting runs continue: which is driven when; parking and suspending them.
#include "durable/engine_core.hpp"

#include <algorithm>

#include "core/error_notes.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

namespace {

/// How many turns a recovered run may take to come to rest before the timers of all other runs stop
/// waiting for it.
constexpr int recovery_patience = 16;
/// A run whose command cannot be recorded is replayed for each attempt, so the pauses between them
/// grow from one second to half a minute: they are doubled so often.
constexpr unsigned pauses_doubled = 5;

}  // namespace

void engine_core::make_ready(durable_run& run) {
  if (run.listed) return;
  run.listed = true;
  unpark(run);
  ready_.push_back(&run);
  pump_->wake();
}

void engine_core::work_on_runs() {
  work_on_one();
  run_has_gone_first();
}

void engine_core::work_on_one() {
  if (!running() || steps_ == nullptr || steps_->cancel_requested()) return;
  const in_loop outside(host_);
  begin_resumed();
  if (!ready_.empty()) {
    durable_run& run = *ready_.front();
    ready_.pop_front();
    run.listed = false;
    if (run.final) {
      retire(run);
    } else if (run.live != nullptr && run.state != durable::run_state::blocked) {
      drive(run);
    }
  }
  const bool can_resume = replaying_ < setup_.max_resume && !resuming_.empty();
  if (!ready_.empty() || can_resume) pump_->wake();
}

void engine_core::drive(durable_run& run) {
  durable_run::progress how = durable_run::progress::blocked;
  try {
    how = run.drive();
  } catch (...) {  // a disk error about another run
    if (!running()) return;
    run.block(message_of(std::current_exception()));
  }
  const bool blocked = how == durable_run::progress::blocked;
  if (run.resuming && (!run.live->replaying || blocked)) replayed(run);
  if (!blocked && !run.resuming) run.set_cancelled_blocked({});
  const bool unrecorded = how == durable_run::progress::unrecorded;
  if (!unrecorded && !run.resuming && run.rare().unrecorded != 0) run.need_rare().unrecorded = 0;
  switch (how) {
    case durable_run::progress::more:
      if (run.recovering && ++run.restless_turns == recovery_patience) has_recovered(run);
      return make_ready(run);
    case durable_run::progress::parked:
      return park(run);
    case durable_run::progress::ended:
      return end_run(run);
    case durable_run::progress::blocked:
      return stop_blocked(run);
    case durable_run::progress::unrecorded:
      return set_aside(run);
  }
}

// Steps under way refer to its frames, and their results are recorded: the end of each makes it
// ready again. Then it leaves memory, and its replay comes to the command again.
void engine_core::set_aside(durable_run& run) {
  if (!run.may_be_evicted()) return;
  const std::string why = std::move(*run.live->unrecorded);
  run.evict("a command of it cannot be recorded");
  --live_;
  run.state = durable::run_state::suspended;
  run.set_message(why);
  const unsigned before = std::min(run.need_rare().unrecorded++, pauses_doubled);
  set_alarm(run, ticks_of(wall_now() + (room_interval * (1U << before))), run.start_place);
  emit(run);
}

// ------------------------------------------------------------------ parked and suspended runs

void parked_list::push_back(live_run& run) noexcept {
  run.parked = true;
  run.parked_before = last;
  run.parked_after = nullptr;
  (last == nullptr ? first : last->parked_after) = &run;
  last = &run;
}

void parked_list::remove(live_run& run) noexcept {
  run.parked = false;
  (run.parked_before == nullptr ? first : run.parked_before->parked_after) = run.parked_after;
  (run.parked_after == nullptr ? last : run.parked_after->parked_before) = run.parked_before;
}

// A run that got a completion while it ran is already ready; a run with steps under way is made
// ready by their answers. Neither is suspended.
void engine_core::park(durable_run& run) {
  unpark(run);
  if (run.listed || !run.may_be_evicted()) return;
  parked_.push_back(*run.live);
  if (live_ > setup_.max_live) suspend_some();
}

void engine_core::unpark(durable_run& run) noexcept {
  if (run.live != nullptr && run.live->parked) parked_.remove(*run.live);
}

// Suspends the runs that have been parked longest; their next timer or completion resumes them.
void engine_core::suspend_some() {
  while (parked_.first != nullptr && live_ > setup_.max_live) {
    durable_run& run = parked_.first->of();
    ++list_visits;
    const queued_timer* first = nullptr;
    for (const auto& [key, t] : run.live->timers)
      if (first == nullptr || timer_queue::before(t, *first)) first = &t;
    const bool sleeps = first != nullptr;
    const std::uint64_t when = sleeps ? first->due : 0;
    const std::uint64_t order = sleeps ? first->order : 0;
    unpark(run);
    // A run whose timer is due would be resumed at once: its timer makes it ready.
    if (sleeps && when <= ticks_of(wall_now())) continue;
    run.evict("suspended to save memory");
    --live_;
    run.state = durable::run_state::suspended;
    if (sleeps) set_alarm(run, when, order);
    emit(run);
  }
}

}  // namespace weir::detail
