// SPDX-License-Identifier: MIT
// Bringing runs into memory: which is replayed when, with what history.
#include "durable/engine_core.hpp"

#include "core/error_notes.hpp"

namespace weir::detail {

void engine_core::resume(durable_run& run) {
  if (run.live != nullptr || run.resuming || run.ended() || run.held || !open_) return;
  if (!run.cancel_asked && waits_to_begin(run)) {
    if (run.alarm.queued()) return;
    return set_alarm(run, ticks_of(run.begins), run.start_place);
  }
  if (waits_for_turn(run)) return;
  stop_timer(run.alarm);
  run.resuming = true;
  resuming_.push_back(&run);
  pump_->wake();
}

bool engine_core::waits_to_begin(const durable_run& run) {
  if (run.takes_turns()) return !run.part->joined;
  return !run.begun && run.begins > run.started && run.begins > wall_now();
}

void engine_core::begin_resumed() {
  while (replaying_ < setup_.max_resume && !resuming_.empty()) {
    durable_run& run = *resuming_.front();
    resuming_.pop_front();
    ++replaying_;
    if (run.takes_turns()) run.depends = std::max(run.depends, run.part->of->lsn);
    const handler_base* code = code_of(run);
    try {
      if (code == nullptr) {
        block_run(run, "no handler '" + run.handler() + "' of version " +
                           std::to_string(run.version) + " was added");
        continue;
      }
      std::string input;
      run_history history = load(run, input);
      run.state = durable::run_state::running;
      run.set_message({});
      ++live_;
      run.begin(*code, std::move(input), std::move(history));
      emit(run);
      make_ready(run);
    } catch (...) {
      std::string why = message_of(std::current_exception());
      if (run.live != nullptr) {  // its input cannot be decoded
        run.discard();
        --live_;
        why.append("; handler '").append(run.handler()).append("' was added at ");
        why.append(text_of(code->added)).append(old_code);
      }
      block_run(run, std::move(why));
    }
  }
}

run_history engine_core::load(durable_run& run, std::string& input) {
  run_history past;
  std::string payload;
  input = read_start(run.number(), run.start_place, payload).input;
  run.places.for_each([&](record_place place) {
    const record_head head = journal_->read(place, payload);
    past.add(head, payload, place);
  });
  return past;
}

void engine_core::replayed(durable_run& run) {
  run.resuming = false;
  --replaying_;
  has_recovered(run);
}

void engine_core::has_recovered(durable_run& run) {
  if (std::exchange(run.recovering, false) && --to_recover_ == 0) {
    arm_alarm();
    arm_forgetting();
  }
}

}  // namespace weir::detail
