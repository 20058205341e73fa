// SPDX-License-Identifier: MIT
// What a supervisor does next: starts, stops, group restarts, its end.
#include <algorithm>
#include <string>
#include <utility>

#include <weir/error.hpp>

#include "agents/supervisor_core.hpp"
#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ the body

void supervisor_core::enter(supervisor_region& r, birth_listener* listener) {
  check_home(true);
  if (mode_ != mode::passive && mode_ != mode::resting)
    raise(
        errc::already_running,
        text() + (region_ != nullptr ? " runs already" : " has run before") + "; make another one");
  region_ = &r;
  listener_ = listener;
  mode_ = mode::starting;
  finish_ = finish::none;
  failure_ = nullptr;
  record_ = nullptr;
  awake_ = cancelled_ = stop_asked_ = false;
  window_.clear();
  for (slot* s = first_; s != nullptr; s = s->next) {
    if (s->agent) {
      s->agent->blame(nullptr);
      s->agent->settle_home();
    }
    s->delay.restart();
    shift(*s, slot::phase::none, slot::intent::start);
  }
  stage_ = stage::starting;
  cursor_ = first_;
}

task<> supervisor_core::supervise() {
  if (cancel_tree::parent(*region_)->cancel_requested()) cancelled_ = true;
  while (!advance()) co_await pending<wake_wait>(this);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

// Returns true at the end, when no child is left. Under a forced cancellation it decides nothing:
// all children are being unwound, and then the body is.
bool supervisor_core::advance() {
  if (region_->cancel_requested()) return false;
  if (cancelled_) begin_end(finish::cancelled, nullptr);
  if (stop_asked_) begin_end(finish::stopped, nullptr);
  do {
    while (slot* s = notes_.pop()) look_at(*s);
    drive();
  } while (!notes_.empty());
  return mode_ == mode::stopping && lives_.empty();
}

void supervisor_core::look_at(slot& s) {
  // A child that was asked to stop before it had begun did not fail to start.
  const bool left = s.is_gone && s.unmade == nullptr && s.life.get()->result().is_value();
  if (std::exchange(s.was_born, false) || left) {
    if (s.now == slot::phase::starting) started(s);
    // On another loop the stop request may have arrived before the life began: repeat it.
    if (s.now == slot::phase::stopping && s.agent && !s.cut_off && !s.is_gone) ask_to_stop(s);
  }
  if (s.is_gone) {
    if (waits_for_starts(s)) return held_.push(s);
    s.is_gone = false;
    return gone(s);
  }
  if (std::exchange(s.has_rung, false)) rung(s);
  start_if_due(s);
}

// While a group is being started, only the child being started can fail. Ends of the others are
// judged afterwards, with the whole group in place.
bool supervisor_core::waits_for_starts(const slot& s) const noexcept {
  if (stage_ != stage::starting || s.now != slot::phase::running) return false;
  return mode_ == mode::starting || is_group();
}

void supervisor_core::judge_held() noexcept {
  while (slot* s = held_.pop()) note(*s);
}

void supervisor_core::drive() {
  switch (stage_) {
    case stage::none:
      return;
    case stage::stopping:
      if (!stop_range(slot::cause::group)) return;
      stage_ = stage::pausing;
      [[fallthrough]];
    case stage::pausing:
      if (loop::here()->now() < not_before_) return pause_.set(not_before_);
      stage_ = stage::starting;
      cursor_ = cursor_ == nullptr ? first_ : cursor_->next;
      [[fallthrough]];
    case stage::starting:
      if (start_range()) all_started();
      return;
    case stage::closing:
      (void)stop_range(slot::cause::shutdown);
      return;
  }
}

// Stops children from the last down to the first of the plan, each after its successor is gone or a
// zombie. Returns true when done.
bool supervisor_core::stop_range(slot::cause why) noexcept {
  while (cursor_ != nullptr && cursor_->order >= from_) {
    slot& s = *cursor_;
    if (s.now == slot::phase::starting || s.now == slot::phase::running) begin_stop(s, why);
    if (s.now == slot::phase::stopping) return false;
    cursor_ = s.previous;
  }
  return true;
}

// Starts the children of the plan, each after its predecessor has started. Returns true when done.
bool supervisor_core::start_range() {
  while (cursor_ != nullptr) {
    slot& s = *cursor_;
    const bool its_own = s.then == slot::intent::restart && !is_group();  // it has its own delay
    if (s.then != slot::intent::none && s.now == slot::phase::none && !its_own) start_life(s);
    if (s.now == slot::phase::starting) return false;
    if (s.now == slot::phase::zombie && s.then != slot::intent::none) return false;
    cursor_ = s.next;
  }
  return true;
}

void supervisor_core::all_started() noexcept {
  stage_ = stage::none;
  judge_held();
  if (mode_ != mode::starting) return;
  mode_ = mode::running;
  if (listener_ != nullptr) listener_->born();
}

// ------------------------------------------------------------------ group restarts

// Stops and restarts the children from the trigger on (one_for_all: all children). A group restart
// under way is merged into this one, which sets the delay.
void supervisor_core::begin_group(slot& trigger, duration delay) {
  const std::uint64_t from = strategy_ == strategy::one_for_all ? 0 : trigger.order;
  const bool under_way = stage_ == stage::stopping || stage_ == stage::pausing;
  plan_starts(from, under_way ? from_ : last_order_ + 1);
  from_ = under_way ? std::min(from_, from) : from;
  not_before_ = saturating_add(loop::here()->now(), delay);
  judge_held();
  stage_ = stage::stopping;
  cursor_ = last_;
}

// A group restart also starts children that had finished or were terminated.
void supervisor_core::plan_starts(std::uint64_t from, std::uint64_t until) noexcept {
  for (slot* s = last_; s != nullptr && s->order >= from; s = s->previous) {
    if (s->order >= until || s->now != slot::phase::none || s->then != slot::intent::none) continue;
    shift(*s, slot::phase::none, slot::intent::start);
  }
}

// ------------------------------------------------------------------ lives

fiber* supervisor_core::make_life(slot& s) {
  spawn_options options;
  options.name = s.name();
  switch (s.what) {
    case slot::kind::agent:
      return s.agent->begin_life(*region_, scope::launch::ordinary, &s);
    case slot::kind::task:
      return region_->adopt(s.work->make(), options, s.site, scope::launch::ordinary);
    case slot::kind::supervisor:
      break;
  }
  if (s.name().empty()) options.name = s.nested->name();
  return region_->adopt(scope::make(run(s.nested, &s)), options, s.site, scope::launch::ordinary);
}

void supervisor_core::start_life(slot& s) {
  if (s.lives > 0 && !s.manual) ++s.restarts;
  ++s.lives;
  s.why = slot::cause::none;
  s.due = s.cut_off = s.was_born = s.is_gone = false;
  s.begun = loop::here()->now();
  shift(s, slot::phase::starting, s.then);
  try {
    s.life = core_ref::adopt(make_life(s));
  } catch (...) {
    s.unmade = std::current_exception();
    s.is_gone = true;
    return note(s);
  }
  auto& f = static_cast<fiber&>(*s.life.get());
  if (f.ended) {  // the scope was cancelled by force
    s.is_gone = true;
    return note(s);
  }
  lives_.emplace(&f, &s);
  if (s.what == slot::kind::task) started(s);
}

void supervisor_core::start_if_due(slot& s) {
  if (s.due && s.now == slot::phase::none && s.then != slot::intent::none) start_life(s);
}

void supervisor_core::started(slot& s) noexcept {
  s.manual = false;
  shift(s, slot::phase::running, slot::intent::none);
  s.requests.settle(request::aim::started);
}

// Cancels its alarm and discards one that has already rung.
void supervisor_core::quiet(slot& s) noexcept {
  s.cancel();
  s.has_rung = false;
}

cancel_kind supervisor_core::kind_of_stop(slot::cause why) const noexcept {
  if (why == slot::cause::group) return cancel_kind::restart;
  const reason_ref& outer = cancel_tree::reason(*cancel_tree::parent(*region_));
  const bool for_restart = why == slot::cause::shutdown && outer && parent_ != nullptr &&
                           outer->kind == cancel_kind::restart;
  return for_restart ? cancel_kind::restart : cancel_kind::shutdown;
}

void supervisor_core::cancel_life(slot& s) noexcept {
  s.cut_off = true;
  cancel_reason why(kind_of_stop(s.why), s.why == slot::cause::group ? "restarted with its group"
                                                                     : "stopped by its supervisor");
  cancel_tree::cancel(static_cast<fiber&>(*s.life.get()),
                      cancel_tree::signed_by(*region_, std::move(why)), false);
}

void supervisor_core::ask_to_stop(slot& s) noexcept {
  s.agent->cut_short(kind_of_stop(s.why) == cancel_kind::restart && !s.temporary());
}

// An agent may finish its current handler; a task or supervisor is cancelled at once.
void supervisor_core::begin_stop(slot& s, slot::cause why) noexcept {
  s.why = why;
  s.manual = s.due = false;
  quiet(s);
  shift(s, slot::phase::stopping, slot::intent::none);
  refuse_start(s, errc::never_started);
  if (s.is_gone) {  // it has ended by itself: process that next, even if it was held
    slot_queue::remove(s);
    return note(s);
  }
  if (s.agent && s.limit > duration::zero()) {
    ask_to_stop(s);
  } else {
    cancel_life(s);
  }
  if (s.limit != duration::max()) s.set(saturating_add(loop::here()->now(), s.limit));
}

// A shutdown limit or a restart delay has expired. A child cancelled at its limit becomes a zombie
// only after everything that is ready now has run.
void supervisor_core::rung(slot& s) {
  if (s.now == slot::phase::none && s.then == slot::intent::restart) {
    s.due = true;
    return;
  }
  if (s.now != slot::phase::stopping) return;
  if (!s.cut_off) {
    cancel_life(s);
    s.set(loop::here()->now());
    return;
  }
  const bool returns = s.why == slot::cause::group && !s.temporary();
  shift(s, slot::phase::zombie, returns ? slot::intent::start : slot::intent::none);
  loop::here()->emit("zombie", s.name(), 0, region_->id());
  s.requests.settle(request::aim::stopped);
}

// ------------------------------------------------------------------ the end

void supervisor_core::refuse_start(slot& s, errc why) noexcept {
  if (s.requests.empty()) return;
  s.requests.settle(
      request::aim::started,
      std::make_exception_ptr(error(why, text_of_child(s.name()) + " was stopped first")));
}

// Cancels a pending start.
void supervisor_core::forget_plans(slot& s, errc why) noexcept {
  const bool waits = s.now == slot::phase::none && s.then != slot::intent::none;
  s.due = s.manual = false;
  if (s.now != slot::phase::stopping) quiet(s);
  shift(s, s.now, slot::intent::none);
  refuse_start(s, why);
  if (!waits) return;
  if (s.lives > 0) s.ending = weir::ending::normal;  // its earlier crash was handled
  shut(s);
}

void supervisor_core::begin_end(finish why, std::exception_ptr failure) {
  if (mode_ == mode::stopping) return;
  mode_ = mode::stopping;
  finish_ = why;
  failure_ = std::move(failure);
  pause_.cancel();
  for (slot* s = first_; s != nullptr; s = s->next) {
    s->escalated =
        why == finish::gave_up && (s->now != slot::phase::none || s->then != slot::intent::none);
    forget_plans(*s, errc::not_running);
  }
  judge_held();
  stage_ = stage::closing;
  from_ = 0;
  cursor_ = last_;
  if (strategy_ != strategy::dynamic) return;
  for (; cursor_ != nullptr; cursor_ = cursor_->previous) {
    if (cursor_->now == slot::phase::starting || cursor_->now == slot::phase::running)
      begin_stop(*cursor_, slot::cause::shutdown);
  }
}

void supervisor_core::life_over() noexcept {
  region_ = nullptr;
  waiting_ = nullptr;
  stage_ = stage::none;
  cursor_ = nullptr;
  pause_.cancel();
  mode_ = parent_ == nullptr ? mode::over : mode::resting;
  for (slot* s = first_; s != nullptr;) {
    slot* const after = s->next;
    if (s->life.get() != nullptr || s->unmade != nullptr) (void)end_of(*s);
    slot_queue::remove(*s);
    s->is_gone = s->was_born = false;
    shift(*s, slot::phase::none, slot::intent::none);
    quiet(*s);
    s->requests.settle(request::aim::stopped);
    refuse_start(*s, errc::not_running);  // the body may have been unwound first
    if (s->escalated) s->ending = weir::ending::escalated;
    if (s->temporary() || (parent_ != nullptr && !s->is_static)) remove(*s);
    s = after;
  }
  lives_.clear();
  if (parent_ == nullptr) notify_all(news::ended);
  stops_.settle(request::aim::ended);
}

void supervisor_core::abandon() noexcept {
  region_ = nullptr;
  waiting_ = nullptr;
  stage_ = stage::none;
  mode_ = mode::over;
  pause_.cancel();
  for (slot* s = first_; s != nullptr; s = s->next) {
    quiet(*s);
    s->life = core_ref();
    s->ending = weir::ending::cancelled;
  }
  lives_.clear();
}

}  // namespace weir::detail
