// SPDX-License-Identifier: MIT
// Ends of lives: what they mean, and who is notified.
#include <string>
#include <utility>
#include <vector>

#include <weir/error.hpp>
#include <weir/policy/supervise.hpp>

#include "agents/supervisor_core.hpp"
#include "core/cancel_tree.hpp"
#include "core/loop.hpp"
#include "toolkit/remote.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ notes

void supervisor_core::child_gone(fiber& f) noexcept {
  const auto at = lives_.find(&f);
  if (at == lives_.end()) return;
  slot& s = *at->second;
  lives_.erase(at);
  if (in_dead_world()) return;
  s.is_gone = true;
  note(s);
}

void supervisor_core::asked_to_end() noexcept {
  if (in_dead_world()) return;
  cancelled_ = true;
  wake();
}

// ------------------------------------------------------------------ the end of a life

// Releases the life and keeps how it ended.
life_end supervisor_core::end_of(slot& s) {
  life_end end;
  if (s.unmade != nullptr) {
    end = {life_end::kind::error, std::exchange(s.unmade, nullptr)};
  } else {
    outcome_base& out = s.life.get()->result();
    if (out.is_error()) end = {life_end::kind::error, out.error()};
    if (out.is_cancelled()) {
      end.how = life_end::kind::cancelled;
      if (out.reason_reference())
        end.error = std::make_exception_ptr(cancelled_error(out.reason()));
    }
  }
  s.life = core_ref();
  s.ending = end.how == life_end::kind::value       ? weir::ending::normal
             : end.how == life_end::kind::cancelled ? weir::ending::cancelled
                                                    : weir::ending::crashed;
  return end;
}

void supervisor_core::gone(slot& s) {
  const life_end end = end_of(s);
  const slot::cause why = std::exchange(s.why, slot::cause::none);
  const bool had_started = s.now != slot::phase::starting;
  const slot::intent then = s.then;
  quiet(s);
  if (end.how == life_end::kind::error) notify_crash(s, end, will_restart(s, end, why, then));
  if (why == slot::cause::none && mode_ != mode::stopping) return judge(s, end, had_started);
  const bool ended_by_hand = why == slot::cause::terminated && then == slot::intent::none;
  if (s.temporary() || (ended_by_hand && forgets(s))) return remove(s);
  if (why == slot::cause::group && mode_ != mode::stopping) {
    shift(s, slot::phase::none, slot::intent::start);
    notify(s, news::restarts);
  } else {
    shift(s, slot::phase::none, then);
    if (then == slot::intent::none) shut(s);
  }
  s.requests.settle(request::aim::stopped);
  start_if_due(s);
}

// A nested supervisor that gave up counts as one that was shut down.
bool supervisor_core::is_clean(const slot& s, const life_end& end) noexcept {
  const bool gave_up = s.nested != nullptr && s.nested->finish_ == finish::gave_up;
  return end.how == life_end::kind::value || gave_up;
}

// Predicts the decision of gone() and judge().
bool supervisor_core::will_restart(const slot& s, const life_end& end, slot::cause why,
                                   slot::intent then) {
  if (mode_ == mode::stopping || s.temporary()) return false;
  if (why != slot::cause::none) return why == slot::cause::group || then != slot::intent::none;
  if (s.manual || mode_ == mode::starting) return false;
  if (s.restart == restart::transient && is_clean(s, end)) return false;
  const bool stopping = stage_ == stage::stopping || stage_ == stage::pausing;
  if (is_group() && stopping && s.order >= from_) return true;
  return window_.has_room(loop::here()->now(), max_restarts_, within_);
}

// By index: a listener may add another listener.
void supervisor_core::notify_crash(const slot& s, const life_end& end, bool restarts) noexcept {
  const crash_info crash{s.name(), end.error, s.restarts, restarts};
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    try {
      listeners_[i]->call(crash);
    } catch (...) {
      loop::here()->emit("observer_failed", name(), 0, region_->id(), std::current_exception());
    }
  }
}

// Decides what an unexpected end means.
void supervisor_core::judge(slot& s, const life_end& end, bool had_started) {
  if (s.manual) {  // restart_child: its caller gets the error, and nothing else happens
    s.manual = false;
    shift(s, slot::phase::none, slot::intent::none);
    s.requests.settle(request::aim::started, error_of(s, end));
    return shut(s);
  }
  if (mode_ == mode::starting) {  // the first start is not retried
    shift(s, slot::phase::none, slot::intent::none);
    return begin_end(finish::no_start, error_of(s, end));
  }
  if (s.temporary() || (s.restart == restart::transient && is_clean(s, end))) return leave(s);
  shift(s, slot::phase::none, slot::intent::restart);
  const bool stopping = stage_ == stage::stopping || stage_ == stage::pausing;
  if (is_group() && stopping && s.order >= from_) {  // restarted with its group
    return notify(s, news::restarts);
  }
  const time_point now = loop::here()->now();
  if (!window_.charge(now, error_of(s, end), max_restarts_, within_)) return give_up();
  notify(s, news::restarts, !had_started || end.how == life_end::kind::value);
  loop::here()->emit("restart", s.name(), s.restarts + 1, region_->id(), end.error);
  if (had_started && s.reset_after != duration::max() && now - s.begun >= s.reset_after)
    s.delay.restart();
  const duration pause = s.delay.next(s.delays);
  if (is_group()) return begin_group(s, pause);
  if (pause > duration::zero()) return s.set(saturating_add(now, pause));
  s.due = true;
  start_if_due(s);
}

// The child is not restarted.
void supervisor_core::leave(slot& s) {
  const bool counts = s.significant;
  if (forgets(s)) {
    remove(s);
  } else {
    shift(s, slot::phase::none, slot::intent::none);
    shut(s);
  }
  if (!counts || auto_shutdown_ == auto_shutdown::never) return;
  if (auto_shutdown_ == auto_shutdown::any_significant || significant_ == 0)
    begin_end(finish::stopped, nullptr);
}

// From now on, errors from its agents say why they are gone.
void supervisor_core::give_up() {
  const restart_limit_error limit(text(), max_restarts_, within_, window_.errors());
  const std::exception_ptr why = std::make_exception_ptr(limit);
  loop::here()->emit("escalated", name(), window_.size(), region_->id(), why);
  record()->give_up([limit] { return std::make_exception_ptr(limit); });
  blame_all(record());
  begin_end(finish::gave_up, why);
}

const takedown_ref& supervisor_core::record() {
  if (record_ != nullptr) return record_;
  record_ = std::make_shared<takedown>();
  record_->who = text();
  if (parent_ != nullptr && parent_->region_ != nullptr) {
    record_->outer = parent_->record();
    return record_;
  }
  const std::uint32_t here = loop::here()->serial();
  for (const context* at = cancel_tree::parent(*region_); at != nullptr;
       at = cancel_tree::parent(*at))
    if (!cancel_tree::is_base(*at))
      record_->around.push_back({here, static_cast<const scope*>(at)->id(), false});
  const std::vector<run_place> callers = callers_of(*region_);
  record_->around.insert(record_->around.end(), callers.begin(), callers.end());
  return record_;
}

// Includes the agents of all nested supervisors.
void supervisor_core::blame_all(const takedown_ref& why) noexcept {
  std::vector<supervisor_core*> below{this};
  while (!below.empty()) {
    const supervisor_core& core = *below.back();
    below.pop_back();
    for (slot* s = core.first_; s != nullptr; s = s->next) {
      if (s->nested != nullptr) below.push_back(s->nested.get());
      if (s->agent && !s->end_notified) s->agent->blame(why);
    }
  }
}

// The error that run() throws or the window keeps, also for an end that was no error.
std::exception_ptr supervisor_core::error_of(const slot& s, const life_end& end) const {
  if (end.error != nullptr) return end.error;
  return std::make_exception_ptr(
      error(errc::agent_stopped, text_of_child(s.name()) + " ended, and is to be restarted"));
}

// ------------------------------------------------------------------ notifying agents

// `keeps`: the mailbox is kept for the next life, because the last one ended normally or never
// started.
void supervisor_core::notify(slot& s, news what, bool keeps) noexcept {
  if (s.nested != nullptr) return s.nested->notify_all(what);
  if (!s.agent || s.end_notified) return;
  switch (what) {
    case news::restarts:
      s.agent->blame(nullptr);
      if (s.lives > 0) s.agent->expect_life(keeps);
      return;
    case news::rests:
      return s.agent->shut(s.ending == weir::ending::crashed ? errc::agent_crashed
                                                             : errc::agent_stopped);
    case news::ended:
    case news::escalated:
      s.end_notified = true;
      return s.agent->finish(what == news::escalated ? weir::ending::escalated : s.ending);
  }
}

// Notifies all agents below a supervisor that does not run. Iterative, so that deep nesting cannot
// overflow the stack.
void supervisor_core::notify_all(news what) noexcept {
  std::vector<std::pair<supervisor_core*, news>> below{{this, what}};
  while (!below.empty()) {
    const auto [core, news_of_it] = below.back();
    below.pop_back();
    if (core->region_ != nullptr) continue;  // it runs, and will notify its agents itself
    if (news_of_it == news::ended || news_of_it == news::escalated) core->mode_ = mode::over;
    for (slot* s = core->first_; s != nullptr; s = s->next) {
      const bool escalates = news_of_it == news::ended && s->escalated;
      const news heard = escalates ? news::escalated : news_of_it;
      if (s->nested != nullptr) {
        below.emplace_back(s->nested.get(), heard);
      } else {
        notify(*s, heard);
      }
    }
  }
}

// The child has no life and gets none until a user restarts it. A nested supervisor that is
// stopping leaves the notification to its parent, which decides what follows.
void supervisor_core::shut(slot& s) noexcept {
  if (mode_ == mode::stopping && parent_ != nullptr) return;
  notify(s, news::rests);
}

}  // namespace weir::detail
