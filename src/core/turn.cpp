// SPDX-License-Identifier: MIT
// A strand's turn: the only place where the loop resumes strands and unwinds cancelled ones.
#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/wait.hpp>

#include <algorithm>
#include <string>

#include "core/cancel_tree.hpp"
#include "core/error_notes.hpp"
#include "core/fatal.hpp"
#include "core/fiber_end.hpp"
#include "core/loop.hpp"

namespace weir::detail {

// The first step of a fiber. False: it never began, or ended at once.
inline bool loop::begin(fiber& f) {
  f.begun = true;
  if (f.budget == 0 && cancel_tree::cancelled(f)) [[unlikely]] {
    f.result().set_cancelled(cancel_tree::reason(f));
    return false;
  }
  return f.begin();
}

// What else a strand may need before its leaf is resumed: it is unwound, or starts its wait.
[[gnu::noinline]] loop::next_step loop::prepare_step(strand& s) {
  if (s.unwinding) {
    if (!cancel_tree::unwind(s)) return next_step::stop;
    if (s.leaf == nullptr) {
      if (s.special) return next_step::stop;
      auto& f = static_cast<fiber&>(s);
      f.result().set_cancelled(cancel_tree::reason(f));
      return finish_base(s) ? next_step::again : next_step::stop;
    }
  } else {
    s.needs_start = false;
    if (!start_parked(s)) return s.unwinding && !s.queued ? next_step::again : next_step::stop;
  }
  return next_step::resume;
}

// One step of the trampoline. False: the strand gave up its turn or has ended.
[[gnu::always_inline]] inline bool loop::step(strand& s) {
  if (!s.begun) {
    if (!begin(static_cast<fiber&>(s))) return finish_base(s);
  } else if (s.unwinding || s.needs_start) [[unlikely]] {
    const next_step how = prepare_step(s);
    if (how != next_step::resume) return how == next_step::again;
  }
  if (s.leaf == nullptr) [[unlikely]]
    return finish_base(s);  // a driven fiber
  s.leaf->handle().resume();
  if (s.parked != nullptr || s.queued || s.unwinding) return s.unwinding && !s.queued;
  return s.leaf != nullptr || finish_base(s);
}

inline void loop::begin_turn(strand& s) noexcept {
  current = &s;
  s.queued = false;
  s.preempted = false;
  s.budget = cancel_tree::cancelled(s) ? std::int16_t{0} : budget_;
  now_read_ = false;
}

// Inlined into the loop over the ready queue. Leaves `current` as it is, for the next strand.
[[gnu::always_inline]] inline void loop::run_one(strand& s) {
  ++steps_;
  if (s.special) [[unlikely]]
    return run_special(static_cast<special_strand&>(s));
  begin_turn(s);
  while (step(s)) {
  }
}

void loop::run_strand(strand& s) {
  run_one(s);
  current = nullptr;
}

void loop::run_ready() {
  for (int i = 0; i < turn_limit_ && head_ != nullptr; ++i) {
    if (!stops_.empty()) [[unlikely]] {
      current = nullptr;
      request_stops();  // before the cancelled strands are unwound
    }
    run_one(*take_ready());
    if (deep_ != nullptr) run_deep();
  }
  current = nullptr;
  now_read_ = false;
}

bool loop::drain(int limit) {
  for (int i = 0; i < limit && head_ != nullptr; ++i) {
    if (!stops_.empty()) request_stops();
    run_strand(*take_ready());
  }
  now_read_ = false;
  if (!stops_.empty()) request_stops();
  return head_ == nullptr;
}

/// A depth-first list whose budget was used up, in the ready queue; goes on with it on its turn.
struct loop::put_off_list final : special_strand, frame_allocated {
  put_off_list(loop& l, strand& first) noexcept : on(l), rest(&first) { top = l.root_scope_; }
  bool begin_turn() noexcept override {
    on.deep_ = rest;
    return false;
  }
  void end_turn() noexcept override { delete this; }
  void dispose() noexcept override { delete this; }
  loop& on;
  strand* rest;
};

// Empties the depth-first list that the strand which has just run began, or puts it off.
void loop::run_deep() {
  current = nullptr;
  deep_at_ = &deep_;
  deep_run_ = true;
  while (deep_ != nullptr && budget_ > 0) {
    if (!stops_.empty()) request_stops();
    auto& f = static_cast<fiber&>(*deep_);
    deep_ = f.next;
    ++deep_steps_;
    --budget_;
    const bool runs = !cancel_tree::cancelled(f);
    f.retain();  // it may end, and what is left of its budget is read then
    run_strand(f);
    if (runs) {
      const std::int16_t left = std::max(f.budget, std::int16_t{0});
      f.rank = static_cast<std::uint16_t>(f.rank + budget_ - left);
      budget_ = left;
    }
    f.release();
    deep_at_ = &deep_;
  }
  deep_run_ = false;
  budget_ = full_budget_;
  if (deep_ == nullptr) return;
  push(*new put_off_list(*this, *deep_));
  deep_ = nullptr;
}

void loop::free(special_strand& s) noexcept {
  loop* const here = loop::here();
  if (s.queued && here != nullptr && !here->dead()) {
    here->let_stray(s);
  } else {
    s.dispose();
  }
}

void loop::let_stray(special_strand& s) noexcept {
  s.stray = true;
  s.next_stray = strays_;
  s.at_stray = &strays_;
  if (strays_ != nullptr) strays_->at_stray = &s.next_stray;
  strays_ = &s;
}

void loop::free_stray(special_strand& s) noexcept {
  *s.at_stray = s.next_stray;
  if (s.next_stray != nullptr) s.next_stray->at_stray = s.at_stray;
  s.dispose();
}

void loop::run_special(special_strand& s) {
  current = nullptr;
  if (s.stray) [[unlikely]]
    return free_stray(s);
  begin_turn(s);
  s.nesting = 0;  // otherwise balanced; a generator that was pulled has the one of its consumer
  if (s.begin_turn()) {
    while (step(s)) {
    }
  }
  current = nullptr;
  s.end_turn();
}

// Starts the wait for which the strand gave up its turn. True: it is complete.
bool loop::start_parked(strand& s) {
  wait& pending = *s.parked;  // NOLINT(clang-analyzer-core.*): needs_start implies it
  const bool refused = cancel_tree::cancelled(s);
  if (!refused && pending.poll()) {
    s.parked = nullptr;
    return true;
  }
  if (refused || cancel_tree::may_not_park(s)) {
    s.parked = nullptr;
    s.unwinding = true;
    return false;
  }
  pending.link();
  cancel_if_asked(s);
  return false;
}

bool loop::finish_base(strand& s) {
  if (s.special) return false;
  auto& f = static_cast<fiber&>(s);
  if (f.driven && !f.cleaning) {
    const auto next = static_cast<driven_fiber&>(f).drive();
    if (next != driven_fiber::next_step::end) return next == driven_fiber::next_step::run;
  }
  return fiber_ended(f);
}

// ------------------------------------------------------------------ called by awaiting frames

void raise_nothing_wakes() {
  raise(errc::would_deadlock,
        "a generator that is pulled outside of any loop would have to wait, and nothing could wake "
        "it; pull it inside weir::run");
}

bool give_up_turn(strand& s, frame& me, frame& child) {
  if (s.destroying) fatal_destructor(s);
  if (s.special && loop::here() == nullptr) {  // no other strand needs a turn
    s.budget = 1;
    return enter_child(s, me, child);
  }
  s.leaf = &me;
  if (cancel_tree::cancelled(s)) {
    s.unwinding = true;
    return true;
  }
  s.leaf = &child;
  s.preempted = true;
  cancel_tree::arm_deadlines(s);
  loop::here()->push_again(s);
  return true;
}

bool give_up_turn_quietly(strand& s, frame& me, frame& child) {
  if (cancel_tree::cancelled(s)) return enter_child(s, me, child);
  return give_up_turn(s, me, child);
}

void give_up_turn(strand& s, wait& w) {
  if (s.destroying) fatal_destructor(s);
  if (s.special && loop::here() == nullptr) raise_nothing_wakes();
  require_fits_run(w);
  if (cancel_tree::cancelled(s)) {
    s.unwinding = true;
    return;
  }
  w.belongs_to(s);
  s.parked = &w;
  s.needs_start = true;
  s.preempted = true;
  cancel_tree::arm_deadlines(s);
  loop::here()->push_again(s);
}

namespace {

[[gnu::noinline]] bool prepare_park_slowly(strand& s, wait& w) {
  if (s.destroying) fatal_destructor(s);
  if (s.special && loop::here() == nullptr) raise_nothing_wakes();
  require_fits_run(w);
  if (cancel_tree::may_not_park(s)) {
    s.unwinding = true;
    return false;
  }
  cancel_tree::arm_deadlines(s);
  w.belongs_to(s);
  s.parked = &w;
  return true;
}

}  // namespace

bool prepare_park(strand& s, wait& w) {
  if (s.destroying || s.unarmed_deadlines || s.special || current_run != nullptr ||
      cancel_tree::may_not_park(s)) [[unlikely]]
    return prepare_park_slowly(s, w);
  w.belongs_to(s);
  s.parked = &w;
  return true;
}

void park_quietly(strand& s, wait& w) {
  w.belongs_to(s);
  s.parked = &w;
  cancel_tree::arm_deadlines(s);
}

void cancel_if_asked(strand& s) {
  if (s.parked != nullptr && cancel_tree::cancelled(s)) cancel_tree::withdraw_parked(s);
}

void withdraw_if_asked(strand& s) {
  if (s.destroying) fatal_destructor(s);
  if (s.parked != nullptr && cancel_tree::may_not_park(s)) cancel_tree::withdraw_parked(s);
}

void wait::complete() noexcept {
  if ((target_ & 1U) != 0) {
    auto& link = *reinterpret_cast<arm_link*>(target_ & ~std::uintptr_t{1});
    link.owner->arm_completed(link);
    return;
  }
  auto& s = *reinterpret_cast<strand*>(target_);
  s.parked = nullptr;
  if (s.unwind_when_done) {
    s.unwind_when_done = false;
    s.unwinding = true;
  }
  loop::here()->push(s);
}

strand* wait::waiting_strand() const noexcept {
  const wait* at = this;
  while ((at->target_ & 1U) != 0)
    at = reinterpret_cast<arm_link*>(at->target_ & ~std::uintptr_t{1})->owner;
  return reinterpret_cast<strand*>(at->target_);
}

fiber* current_fiber() noexcept {
  return current == nullptr ? nullptr : cancel_tree::fiber_of(*current->top);
}

// ------------------------------------------------------------------ failing frames

void frame_failed(frame& me) noexcept {
  strand& s = *current;
  if (s.destroying) fatal_destructor(s);
  me.out->set_error(std::current_exception());
  if (loop* here = loop::here()) here->env().frame_failed(me.out->error());
  note_frame(me.out->error(), me);
}

void fatal_destructor(strand& s) noexcept {
  // The leaf is the frame being destroyed; its await is where it was cancelled.
  const auto& at = s.leaf->awaiting;
  s.destroying = false;
  const fiber* f = cancel_tree::fiber_of(*s.top);
  std::string text = "destructor threw while '";
  text.append(f == nullptr || f->name == nullptr ? "fiber" : f->name);
  text.append("' was being cancelled at ").append(at.file_name()).append(":");
  text.append(std::to_string(at.line()));
  text.append("; destructors that run during cancellation must not throw");
  fatal(text);
}

const cancel_reason* unwinding_reason() noexcept {
  if (current == nullptr || !current->destroying) return nullptr;
  return cancel_tree::unwinding(*current).get();
}

}  // namespace weir::detail
