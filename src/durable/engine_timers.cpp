// SPDX-License-Identifier: MIT
// The timers of all runs: one ordered set with one alarm.
#include "durable/engine_core.hpp"

namespace weir::detail {

bool engine_core::by_time::operator()(const run_timer* a, const run_timer* b) const noexcept {
  if (a->when != b->when) return a->when < b->when;
  if (a->limit != b->limit) return !a->limit;  // a value wins over a limit
  if (a->order != b->order) return a->order < b->order;
  return a < b;
}

void engine_core::start_timer(run_timer& t) {
  if (t.started) return;
  t.started = true;
  timers_.insert(&t);
  if (*timers_.begin() == &t) arm_alarm();
}

void engine_core::stop_timer(run_timer& t) noexcept {
  if (!std::exchange(t.started, false)) return;
  const bool first = *timers_.begin() == &t;
  timers_.erase(&t);
  if (first) arm_alarm();
}

void engine_core::forget_timers() noexcept {
  for (run_timer* t : timers_) t->started = false;
  timers_.clear();
}

// The alarm runs on the monotonic clock. Where the wall clock can be set, or the machine suspended,
// without notice, it also expires in between to check the wall clock.
void engine_core::arm_alarm() {
  if (alarm_.armed()) host_.cancel_deadline(alarm_);
  if (timers_.empty() || to_recover_ > 0 || !running()) return;
  const std::uint64_t now = ticks_of(wall_now());
  const std::uint64_t when = (*timers_.begin())->when;
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
  while (!timers_.empty() && (*timers_.begin())->when <= ticks_now) {
    run_timer& t = **timers_.begin();
    if (t.limit && fired) break;
    t.started = false;
    timers_.erase(timers_.begin());
    fired = true;
    if (t.of == nullptr) {
      durable_run& run = *t.run;
      run.alarm.reset();
      if (run.takes_turns() && !run.part->joined) join_late(run);
      resume(run);
      continue;
    }
    const bool limit = t.limit;
    deliver_to(*t.run, completion{record_type::fired, t.command, now, {}, {}});
    if (limit) break;
  }
  arm_alarm();
}

// The run is not in memory: the alarm resumes it.
void engine_core::set_alarm(durable_run& run, std::uint64_t when, std::uint64_t order) {
  run.alarm = std::make_unique<run_timer>();
  run.alarm->run = &run;
  run.alarm->when = when;
  run.alarm->order = order;
  start_timer(*run.alarm);
}

}  // namespace weir::detail
