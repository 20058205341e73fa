// SPDX-License-Identifier: MIT
// The timers of all runs: one queue with one alarm.
#include "durable/engine_core.hpp"

namespace weir::detail {

void engine_core::start_timer(queued_timer& t) {
  if (t.queued()) return;
  timers_.add(t);
  if (&timers_.first() == &t) arm_alarm();
}

void engine_core::stop_timer(queued_timer& t) noexcept {
  if (!t.queued()) return;
  const bool first = &timers_.first() == &t;
  timers_.remove(t);
  if (first) arm_alarm();
}

// The alarm runs on the monotonic clock. Where the wall clock can be set, or the machine suspended,
// without notice, it also expires in between to check the wall clock.
void engine_core::arm_alarm() {
  if (alarm_.armed()) host_.cancel_deadline(alarm_);
  if (timers_.empty() || to_recover_ > 0 || !running()) return;
  const std::uint64_t now = ticks_of(wall_now());
  const std::uint64_t when = timers_.first().due;
  const auto left = static_cast<std::int64_t>(when > now ? when - now : 0);
  const duration pause = std::min(duration(left), host_.env().wall_check());
  host_.arm_deadline(alarm_, saturating_add(host_.now(), pause), host_.next_order());
}

// Due sleeps up to the next limit fire together; a limit fires alone, after what they woke has run.
void engine_core::fire_due() {
  if (!running()) return;
  const wall_time now = wall_now();
  const std::uint64_t ticks_now = ticks_of(now);
  bool fired = false;
  while (!timers_.empty() && timers_.first().due <= ticks_now) {
    queued_timer& t = timers_.first();
    if (t.limit && fired) break;
    timers_.remove(t);
    fired = true;
    if (t.is_alarm) {
      durable_run& run = durable_run::of_alarm(t);
      if (run.takes_turns() && !run.part->joined) join_late(run);
      resume(run);
      continue;
    }
    const bool limit = t.limit;
    const auto& fires = static_cast<run_timer&>(t);
    deliver_to(*fires.run, completion{record_type::fired, fires.command, now, {}, {}});
    if (limit) break;
  }
  arm_alarm();
}

// The run is not in memory: the alarm resumes it.
void engine_core::set_alarm(durable_run& run, std::uint64_t when, std::uint64_t order) {
  stop_timer(run.alarm);
  run.alarm.due = when;
  run.alarm.order = order;
  start_timer(run.alarm);
}

}  // namespace weir::detail
