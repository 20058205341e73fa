// SPDX-License-Identifier: MIT
// The parts of a supervisor: slots, notes, requests, the restart window.
#include <utility>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "agents/supervisor_core.hpp"
#include "core/loop.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ requests

request::request(request_list& list, aim what, std::string_view whose) noexcept
    : list_(&list), what_(what), whose_(whose), next_(list.first_) {
  if (next_ != nullptr) next_->previous_ = this;
  list.first_ = this;
}

request::~request() {
  if (list_ == nullptr) return;
  (previous_ == nullptr ? list_->first_ : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void request::settle(const std::exception_ptr& error) noexcept {
  (previous_ == nullptr ? list_->first_ : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  list_ = nullptr;
  error_ = error;
  if (request_wait* w = std::exchange(waiting_, nullptr)) w->complete();
}

void request_list::settle(request::aim what, const std::exception_ptr& error) noexcept {
  for (request* r = first_; r != nullptr;) {
    request* const after = r->next_;
    if (r->what_ == what) r->settle(error);
    r = after;
  }
}

cancel_result request_wait::withdraw() noexcept {
  of_->waiting_ = nullptr;
  return cancel_result::done;
}

void request_wait::describe(dump_line& line) const {
  constexpr const char* words[] = {"start of child", "stop of child", "end of supervisor"};
  line.add(words[static_cast<std::size_t>(of_->what_)]).add_name(of_->whose_);
}

void request_wait::take() const {
  if (of_->error_ != nullptr) std::rethrow_exception(of_->error_);
}

// ------------------------------------------------------------------ the body's wait

bool wake_wait::try_now() noexcept { return std::exchange(of_->awake_, false); }

void wake_wait::arm() noexcept { of_->waiting_ = this; }

cancel_result wake_wait::withdraw() noexcept {
  of_->waiting_ = nullptr;
  return cancel_result::done;
}

void wake_wait::describe(dump_line& line) const {
  line.add("children of supervisor").add_name(of_->name());
}

// In the order of the children, so that a report does not depend on addresses.
void wake_wait::blockers(blocker_list& list) const {
  for (const slot* s = of_->first_; s != nullptr; s = s->next) {
    const auto* const life = static_cast<const fiber*>(s->life.get());
    if (of_->lives_.contains(life)) list.fibers.push_back(life);
  }
}

void supervisor_core::wake() noexcept {
  if (wake_wait* w = std::exchange(waiting_, nullptr)) return w->complete();
  awake_ = true;
}

void supervisor_core::note(slot& s) noexcept {
  notes_.push(s);
  wake();
}

// ------------------------------------------------------------------ slots

namespace {

constexpr duration default_limit = std::chrono::seconds(5);

}  // namespace

slot::slot(supervisor_core& owner, const child_options& options, kind k)
    : of(owner),
      what(k),
      restart(options.restart),
      significant(options.significant),
      limit(options.shutdown.value_or(k == kind::supervisor ? duration::max() : default_limit)),
      delays{options.backoff.base, options.backoff.factor, options.backoff.ceiling,
             options.backoff.jitter},
      reset_after(options.backoff.reset_after),
      site(options.site),
      name_(options.name) {}

void slot::born() noexcept {
  if (in_dead_world()) return;
  was_born = true;
  of.note(*this);
}

void slot::rang() noexcept {
  has_rung = true;
  of.note(*this);
}

void slot_queue::push(slot& s) noexcept {
  if (s.queue_ != nullptr) return;
  s.queue_ = this;
  s.queued_before_ = last_;
  s.queued_after_ = nullptr;
  (last_ == nullptr ? first_ : last_->queued_after_) = &s;
  last_ = &s;
}

slot* slot_queue::pop() noexcept {
  slot* const s = first_;
  if (s != nullptr) remove(*s);
  return s;
}

void slot_queue::remove(slot& s) noexcept {
  slot_queue* const queue = std::exchange(s.queue_, nullptr);
  if (queue == nullptr) return;
  (s.queued_before_ == nullptr ? queue->first_ : s.queued_before_->queued_after_) = s.queued_after_;
  (s.queued_after_ == nullptr ? queue->last_ : s.queued_after_->queued_before_) = s.queued_before_;
}

// ------------------------------------------------------------------ the list of children

void supervisor_core::link(slot& s) noexcept {
  s.order = ++last_order_;
  s.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &s;
  last_ = &s;
  ++size_;
  if (s.what == slot::kind::supervisor) ++supervisors_;
}

void supervisor_core::remove(slot& s) noexcept {
  quiet(s);
  shift(s, slot::phase::none, slot::intent::none);
  s.requests.settle(request::aim::stopped);
  notify(s, s.escalated ? news::escalated : news::ended);
  if (s.nested != nullptr) s.nested->parent_ = nullptr;
  if (cursor_ == &s) cursor_ = stage_ == stage::starting ? s.next : s.previous;
  slot_queue::remove(s);
  if (const auto at = names_.find(s.name()); at != names_.end() && at->second == &s)
    names_.erase(at);
  (s.previous == nullptr ? first_ : s.previous->next) = s.next;
  (s.next == nullptr ? last_ : s.next->previous) = s.previous;
  --size_;
  if (s.what == slot::kind::supervisor) --supervisors_;
  delete &s;
}

bool supervisor_core::is_active(const slot& s) noexcept {
  switch (s.now) {
    case slot::phase::starting:
      return s.then != slot::intent::restart;
    case slot::phase::running:
    case slot::phase::stopping:
      return true;
    default:
      return false;
  }
}

bool supervisor_core::keeps_running(const slot& s) noexcept {
  if (!s.significant) return false;
  return s.then != slot::intent::none ||
         (s.now != slot::phase::none && s.now != slot::phase::zombie);
}

void supervisor_core::shift(slot& s, slot::phase now, slot::intent then) noexcept {
  active_ -= is_active(s) ? 1 : 0;
  significant_ -= keeps_running(s) ? 1 : 0;
  s.now = now;
  s.then = then;
  active_ += is_active(s) ? 1 : 0;
  significant_ += keeps_running(s) ? 1 : 0;
}

child_state supervisor_core::state_of(const slot& s) noexcept {
  if (s.now == slot::phase::zombie) return child_state::zombie;
  if (s.then == slot::intent::restart) return child_state::restarting;
  return s.now == slot::phase::none ? child_state::stopped : child_state::running;
}

// ------------------------------------------------------------------ the restart window

bool restart_window::has_room(time_point now, std::int64_t most, duration within) noexcept {
  while (!stamps_.empty() && now - stamps_.front() >= within) stamps_.pop_front();
  return most == std::int64_t{unbounded} || static_cast<std::int64_t>(stamps_.size()) < most;
}

bool restart_window::charge(time_point now, const std::exception_ptr& error, std::int64_t most,
                            duration within) {
  if (most == std::int64_t{unbounded}) return true;  // unlimited: the window is never read
  const bool room = has_room(now, most, within);
  while (!failed_.empty() &&
         (now - failed_.front().when >= within || failed_.size() == most_errors))
    forget_first();
  failed_.push_back({now, error});
  if (!room) return false;
  stamps_.push_back(now);
  return true;
}

std::vector<std::exception_ptr> restart_window::errors() const {
  std::vector<std::exception_ptr> all;
  all.reserve(failed_.size());
  for (const failed_life& life : failed_) all.push_back(life.error);
  return all;
}

void restart_window::clear() noexcept {
  stamps_.clear();
  while (!failed_.empty()) forget_first();
}

// An error's destructor is user code and may re-enter the window.
void restart_window::forget_first() noexcept {
  const failed_life gone = std::move(failed_.front());
  failed_.pop_front();
}

}  // namespace weir::detail
