// SPDX-License-Identifier: MIT
#include <weir/detail/composite.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"

namespace weir::detail {

bool arms_wait::decides(std::size_t) noexcept { return true; }

void arms_wait::emit_discarded(std::size_t count) noexcept {
  for (; count > 0; --count) loop::here()->emit("value_discarded", "race");
}

void arms_wait::note_completed(arm_link& arm) noexcept {
  if (arm.state == arm_link::phase::leaving) --leaving_;
  arm.state = arm_link::phase::completed;
  ++completed_;
  if (decided_ || !decides(arm.index)) return;
  decided_ = true;
  winner_ = arm.index;
}

void arms_wait::withdraw_rest() noexcept {
  for (std::size_t i = 0; i < arm_count(); ++i) {
    arm_link& link = link_at(i);
    if (link.state != arm_link::phase::armed) continue;
    if (arm_at(i).withdraw() == cancel_result::done) {
      link.state = arm_link::phase::idle;
    } else {
      link.state = arm_link::phase::leaving;
      ++leaving_;
    }
  }
}

void cancel_losers(scope& s) noexcept {
  if (region::first_child(s) == nullptr || s.cancel_requested()) return;
  cancel_reason why(cancel_kind::race_lost);
  why.source = s.id();
  why.when = loop::here()->now();
  region::cancel(s, make_reason(std::move(why)), false);
}

// Arms start in order, and none after the one that decides: the lowest index wins a tie, and what
// is not needed is never started.
bool arms_wait::start_arms() {
  winner_ = completed_ = leaving_ = 0;
  decided_ = cancelled_ = false;
  if (!is_arm() && region::kind(*current->top) == region_kind::arms)
    children_ = static_cast<scope*>(current->top);
  starting_ = true;
  for (std::size_t i = 0; i < arm_count() && !decided_; ++i) {
    arm_link& link = link_at(i);
    arm_at(i).belongs_to(link);
    link.state = arm_link::phase::armed;
    if (arm_at(i).start() && link.state == arm_link::phase::armed) note_completed(link);
  }
  starting_ = false;
  if (!decided_) return false;
  withdraw_rest();
  return leaving_ == 0;
}

void arms_wait::arm_completed(arm_link& arm) noexcept {
  const bool was_decided = decided_;
  note_completed(arm);
  if (cancelled_) {
    if (!decided_) {
      decided_ = true;
      winner_ = arm.index;
    }
    if (leaving_ == 0) complete();
    return;
  }
  if (starting_ || !decided_) return;
  if (!was_decided) withdraw_rest();
  scope* const losers = was_decided ? nullptr : children_;
  if (leaving_ == 0) complete();
  if (losers != nullptr) cancel_losers(*losers);
}

cancel_result arms_wait::withdraw() noexcept {
  if (decided_) return cancel_result::no;  // only waits for losers that confirm
  bool refused = false;
  for (std::size_t i = 0; i < arm_count(); ++i) {
    arm_link& link = link_at(i);
    if (link.state != arm_link::phase::armed) continue;
    const cancel_result answer = arm_at(i).withdraw();
    if (answer == cancel_result::done) {
      link.state = arm_link::phase::idle;
      continue;
    }
    refused = refused || answer == cancel_result::no;
    link.state = arm_link::phase::leaving;
    ++leaving_;
  }
  if (leaving_ == 0) return cancel_result::done;
  // Whoever confirms last completes the whole.
  cancelled_ = true;
  return refused ? cancel_result::no : cancel_result::later;
}

}  // namespace weir::detail
