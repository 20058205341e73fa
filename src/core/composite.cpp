// SPDX-License-Identifier: MIT
#include <weir/detail/core/composite.hpp>

#include <weir/detail/core/run_rules.hpp>

#include "core/cancel_tree.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

bool arms_wait::decides(std::size_t) noexcept { return true; }
bool arms_wait::delivers_after_cancel() const noexcept { return true; }
cancel_kind arms_wait::loser_kind() const noexcept { return cancel_kind::race_lost; }

void cancel_losers(scope& s, cancel_kind kind) noexcept {
  if (cancel_tree::first_child(s) == nullptr || s.cancel_requested()) return;
  cancel_tree::cancel(s, make_reason(kind, s.id(), loop::here()->now()), false);
}

void emit_discarded(std::string_view object) noexcept {
  loop::here()->emit("value_discarded", object);
}

void arms_wait::note_completed(arm_link& arm) noexcept {
  if (&arm == asked_) {  // inside withdraw(), whose answer decides what this means
    arm.state = arm_link::phase::completed;
    return;
  }
  if (arm.state == arm_link::phase::confirming) {  // it only confirms that it has ended
    --leaving_;
    arm.state = arm_link::phase::idle;
    return;
  }
  if (arm.state == arm_link::phase::leaving) --leaving_;
  arm.state = arm_link::phase::completed;
  ++completed_;
  if (decided_ || !decides(arm.index)) return;
  decided_ = true;
  winner_ = arm.index;
}

// Withdrawing one arm may complete another one (a permit is passed on). So the state of an arm
// changes before its withdrawal, and completions are only recorded meanwhile.
bool arms_wait::withdraw_armed(by how) noexcept {
  bool refused = false;
  busy_ = true;
  for (std::size_t i = 0; i < arm_count(); ++i) {
    arm_link& link = link_at(i);
    if (link.state != arm_link::phase::armed) continue;
    link.state = arm_link::phase::leaving;
    asked_ = &link;
    const cancel_result answer = how == by::pausing ? arm_at(i).pause() : arm_at(i).withdraw();
    asked_ = nullptr;
    if (answer == cancel_result::later) spent_ = true;
    if (link.state == arm_link::phase::completed) {  // completed inside the call
      if (answer == cancel_result::later) {
        link.state = arm_link::phase::idle;
      } else {
        note_completed(link);
      }
    } else if (answer == cancel_result::done) {
      link.state = arm_link::phase::idle;
    } else {
      ++leaving_;
      if (answer == cancel_result::later) link.state = arm_link::phase::confirming;
      refused = refused || answer == cancel_result::no;
    }
  }
  busy_ = false;
  return refused;
}

// Arms nothing: polls arms in order and stops at the one that decides. So the lowest index wins a
// tie, and unneeded arms are never started.
bool arms_wait::try_arms() {
  winner_ = completed_ = leaving_ = 0;
  decided_ = cancelled_ = ended_ = spent_ = false;
  problem_ = nullptr;
  if (current_run != nullptr) [[unlikely]]
    for (std::size_t i = 0; i < arm_count(); ++i) require_fits_run(arm_at(i));
  for (std::size_t i = 0; i < arm_count() && !decided_; ++i) {
    arm_link& link = link_at(i);
    // After a withdrawal and restart, an arm may still hold its earlier result.
    const bool has_result = link.state == arm_link::phase::completed;
    link.state = arm_link::phase::idle;
    if (has_result || arm_at(i).poll()) note_completed(link);
  }
  return decided_;
}

// Only for arms that must all complete: they may complete each other, as a push and a next of one
// queue. In a race that would give the loser an effect. Moving a value may throw.
bool arms_wait::ask_again(std::size_t i) noexcept {
  try {
    return arm_at(i).poll();
  } catch (...) {
    poll_failed(std::current_exception());
    return false;
  }
}

void arms_wait::arm_rest() noexcept {
  if (!is_arm() && cancel_tree::kind(*current->top) == region_kind::arms)
    children_ = static_cast<scope*>(current->top);
  busy_ = true;
  for (std::size_t i = 0; i < arm_count() && !decided_; ++i) {
    arm_link& link = link_at(i);
    if (link.state == arm_link::phase::completed) continue;
    if (asks_again_ && ask_again(i)) {
      note_completed(link);
    } else if (!broken()) {
      arm_at(i).belongs_to(link);
      link.state = arm_link::phase::armed;
      arm_at(i).link();
    }
  }
  busy_ = false;
  finish_if_decided();
}

void arms_wait::finish_if_decided() noexcept {
  if (!decided_ || ended_) return;
  if (!cancelled_) withdraw_armed(by::cancelling);
  if (leaving_ > 0) return;
  ended_ = true;
  scope* const losers = children_;
  complete();
  if (losers != nullptr) cancel_losers(*losers, loser_kind());
}

void arms_wait::arm_completed(arm_link& arm) noexcept {
  note_completed(arm);
  if (busy_) return;
  if (cancelled_ && leaving_ == 0 && !ended_) {
    ended_ = true;
    return complete();
  }
  finish_if_decided();
}

void arms_wait::blockers(blocker_list& list) const {
  auto& self = const_cast<arms_wait&>(*this);
  for (std::size_t i = 0; i < arm_count(); ++i)
    if (self.link_at(i).state == arm_link::phase::armed) self.arm_at(i).blockers(list);
}

void arms_wait::grace_over() noexcept {
  for (std::size_t i = 0; i < arm_count(); ++i)
    if (link_at(i).state == arm_link::phase::confirming) arm_at(i).grace_over();
}

cancel_result arms_wait::withdraw() noexcept {
  if (leaving_ > 0 && cancel_tree::forced(*waiting_strand()->top)) grace_over();
  if (decided_) return cancel_result::no;  // only waits for losers that must finish
  const bool refused = withdraw_armed(by::cancelling);
  cancelled_ = true;
  if (leaving_ > 0) {
    return refused && delivers_after_cancel() ? cancel_result::no : cancel_result::later;
  }
  if (!decided_ && !spent_) return cancel_result::done;
  ended_ = true;
  complete();
  // Either an arm completed while another was withdrawn, and its result is delivered, or an arm
  // confirmed its end inside the call.
  return decided_ ? cancel_result::no : cancel_result::later;
}

bool arms_wait::pausable() const noexcept {
  if (decided_) return false;  // only waits for losers that must finish
  auto& self = const_cast<arms_wait&>(*this);
  for (std::size_t i = 0; i < arm_count(); ++i)
    if (self.link_at(i).state == arm_link::phase::armed && !self.arm_at(i).pausable()) return false;
  return true;
}

bool arms_wait::in_line() const noexcept {
  auto& self = const_cast<arms_wait&>(*this);
  for (std::size_t i = 0; i < arm_count(); ++i)
    if (self.link_at(i).state == arm_link::phase::armed && self.arm_at(i).in_line()) return true;
  return false;
}

void arms_wait::arm_again() noexcept {
  busy_ = true;
  for (std::size_t i = 0; i < arm_count() && !decided_; ++i) {
    arm_link& link = link_at(i);
    if (link.state == arm_link::phase::leaving) {
      --leaving_;
      link.state = arm_link::phase::armed;
    } else if (link.state == arm_link::phase::idle) {
      link.state = arm_link::phase::armed;
      if (ask_again(i)) {
        note_completed(link);
      } else if (broken()) {
        link.state = arm_link::phase::idle;
      } else {
        arm_at(i).link();
      }
    }
  }
  busy_ = false;
}

// An arm that refuses has its result, or will have it soon: the others are armed again. No arm
// answers `later`, which could not be undone, because all are pausable.
cancel_result arms_wait::pause() noexcept {
  (void)withdraw_armed(by::pausing);
  if (spent_) fatal("a wait that can be paused must not confirm later");
  if (leaving_ == 0 && !decided_) return cancel_result::done;
  if (!decided_) arm_again();
  finish_if_decided();
  return cancel_result::no;
}

}  // namespace weir::detail
