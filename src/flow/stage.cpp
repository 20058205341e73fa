// SPDX-License-Identifier: MIT
#include <weir/detail/flow/stage.hpp>

#include <weir/detail/core/dump_line.hpp>

#include "core/loop.hpp"

namespace weir::detail {

void ready_stage::describe(dump_line& line) const { line.add("a source that never waits"); }

void turn_slot::drop() noexcept {
  if (pull_turn* const turn = std::exchange(turn_, nullptr)) loop::free(*turn);
}

bool pull_wait::try_now() {
  armed_ = true;
  const pull answer = poll_stages();
  if (answer == pull::value || answer == pull::end) return settle();
  note_polled(answer);
  return false;
}

// Armed stages must be quiet before the pull ends.
bool pull_wait::settle() noexcept {
  phase_ = phase::settled;
  if (armed_) withdraw_all();
  return is_quiet();
}

// Standing down one stage may make another confirm before they are counted.
void pull_wait::withdraw_all() noexcept {
  armed_ = false;
  counting_ = true;
  leaving_ += static_cast<int>(stand_down_stages());
  counting_ = false;
}

void pull_wait::arm() {
  if (phase_ == phase::open && again_) take_a_turn();
}

void pull_wait::link() {
  if (phase_ == phase::settled) return;
  begin_to_wait(*waiting_strand()->top);
  take_a_turn();
}

void pull_wait::take_a_turn() noexcept {
  // No turn yet: it is being polled for the first time, and an arm completed at once.
  if (turn_ == nullptr) begin_to_wait(*current->top);
  if (!turn_->queued) loop::here()->push(*turn_);
}

// Code that the stages run may cancel the strand that waits for this pull.
void pull_wait::poll_on_turn() {
  armed_ = polling_ = true;
  const pull answer = poll_stages();
  polling_ = false;
  if (phase_ == phase::given_up) {
    if (answer == pull::value) put_back();
    withdraw_all();
  } else if (answer == pull::value || answer == pull::end) {
    (void)settle();
  } else {
    note_polled(answer);
    arm();
  }
}

bool pull_turn::begin_turn() noexcept {
  if (of->phase_ == pull_wait::phase::open) of->poll_on_turn();
  return false;
}

void pull_turn::end_turn() noexcept {
  pull_wait& w = *of;
  if (queued) return;
  if (w.phase_ == pull_wait::phase::given_up) return w.one_less();
  if (w.phase_ == pull_wait::phase::settled && w.leaving_ == 0) w.complete();
}

// A result stays in its stage until it is polled; a confirmation is not a result.
void pull_wait::arm_completed(arm_link& link) noexcept {
  const bool leaves =
      link.state == arm_link::phase::confirming || link.state == arm_link::phase::leaving;
  link.state = link.state == arm_link::phase::confirming ? arm_link::phase::idle
                                                         : arm_link::phase::completed;
  if (phase_ == phase::open) {
    take_a_turn();
  } else if (leaves) {
    one_less();
  }
}

void pull_wait::one_less() noexcept {
  --leaving_;
  if (counting_ || leaving_ > 0 || has_turn()) return;
  complete();
}

// A queued turn must neither delay the withdrawal nor make it irreversible.
void pull_wait::drop_turn() noexcept {
  turn_ = nullptr;
  own_turn().drop();
}

cancel_result pull_wait::withdraw() noexcept {
  if (phase_ == phase::settled) return cancel_result::no;
  phase_ = phase::given_up;
  if (polling_) {  // see poll_on_turn
    ++leaving_;
    return cancel_result::later;
  }
  if (armed_) withdraw_all();
  if (has_turn()) drop_turn();
  if (leaving_ > 0) return cancel_result::later;
  phase_ = phase::open;
  return cancel_result::done;
}

// If the stages are not quiet at once, the pull is not paused: it polls them again.
cancel_result pull_wait::pause() noexcept {
  if (phase_ != phase::open || polling_) return cancel_result::no;
  phase_ = phase::paused;
  if (armed_) withdraw_all();
  phase_ = phase::open;
  const bool quiet = leaving_ == 0;
  leaving_ = 0;
  if (quiet) {
    if (has_turn()) drop_turn();
    return cancel_result::done;
  }
  take_a_turn();
  return cancel_result::no;
}

void pull_wait::end_early() noexcept {
  if (phase_ != phase::open) return;
  phase_ = phase::settled;
  if (armed_) withdraw_all();
  if (is_quiet()) complete();
}

}  // namespace weir::detail
