// SPDX-License-Identifier: MIT
#include <weir/scope.hpp>

#include <cstring>
#include <string>
#include <utility>

#include <weir/detail/core/all_children.hpp>
#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "core/cleanup.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

namespace {

std::string quoted(std::string_view name) {
  std::string text = "'";
  text.append(name.empty() ? "unnamed" : name).append("'");
  return text;
}

std::string_view name_of(const fiber& f) noexcept { return f.name == nullptr ? "" : f.name; }

void set_name(fiber& f, const name& given) {
  const std::string_view text = given.view();
  if (given.is_literal()) {
    f.name = text.data();
    return;
  }
  char* copy = nullptr;
  try {
    copy = new char[text.size() + 1];
  } catch (...) {
    const core_ref freed(&f);
    throw;
  }
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  f.name = copy;
  f.name_copied = true;
}

}  // namespace

scope_setup::scope_setup(const scope_options& o, std::source_location where)
    : options(o), name(o.name), site(where) {
  options.name = {};
  if (o.max_children < 0)
    raise(errc::invalid_argument, "scope " + quoted(o.name.view()) +
                                      ": max_children is negative; give 0 or more, or unbounded");
  if (o.grace && *o.grace < duration::zero())
    raise(errc::invalid_argument,
          "scope " + quoted(o.name.view()) + ": grace is negative; give 0 or more");
}

}  // namespace detail

// ------------------------------------------------------------------ construction and destruction

scope::scope(detail::scope_setup&& setup, detail::region_kind kind)
    : context(kind),
      loop_(detail::loop::here()),
      id_(loop_->next_scope_id()),
      name_(std::move(setup.name)),
      site_(setup.site),
      max_children_(setup.options.max_children),
      grace_(
          setup.options.grace.value_or(loop_->seam() == nullptr ? usual_grace : duration::max())),
      failure_(setup.options.failure),
      errors_(setup.options.errors) {
  loop_->own_door().scopes.add(1);
}

scope::scope(detail::region_kind kind, const char* name)
    : context(kind),
      loop_(detail::loop::here()),
      id_(loop_->next_scope_id()),
      name_(detail::kept_name::of_literal(name)) {}

scope::~scope() {
  if (live_ > 0) detail::fatal("scope destroyed while children run in it");
  if (watch_.armed()) loop_->cancel_deadline(watch_);
  if (entered_) detail::cancel_tree::leave(*strand_, *this);
  while (unobserved_ != nullptr) detail::cancel_tree::remove_unobserved(*unobserved_);
  detail::cancel_tree::delete_entries(*this);
  if (kind_ == detail::region_kind::scope) loop_->own_door().scopes.add(-1);
}

// ------------------------------------------------------------------ spawning

void scope::raise_no_task() {
  detail::raise(errc::already_taken, "spawn of a task that was awaited or moved from before");
}

void scope::require_open(const char* what) const {
  if (detail::in_dead_world()) return;  // adopt() returns a cancelled child
  require_home(what);
  if (closed_)
    detail::raise(errc::scope_closed, std::string(what) + " on closed scope " +
                                          detail::quoted(name_.view()) +
                                          ": its children are joined; spawn earlier, or into an "
                                          "outer scope");
}

bool scope::full() const {
  require_open("try_spawn");
  return static_cast<std::int64_t>(size()) >= max_children_;
}

void scope::refuse(const char* what) const {
  require_open(what);
  if (static_cast<std::int64_t>(size()) >= max_children_ && !detail::in_dead_world())
    detail::raise(errc::scope_full,
                  "scope full: " + detail::quoted(name_.view()) + " holds " +
                      std::to_string(size()) + " of " + std::to_string(max_children_) +
                      " children; wait for one, use try_spawn, or raise max_children");
}

// The child never starts.
detail::fiber* scope::adopt_cancelled(detail::fiber* f) {
  f->result().set_cancelled(reason_ ? reason_ : detail::cancel_tree::unwinding(*detail::current));
  f->drop_operation();
  f->ended = true;
  f->set_done();
  f->retain();  // the caller's reference
  return f;
}

// A child that is spawned now never starts, unless it is a service of a cancelled scope.
inline bool scope::accepts_none() const noexcept {
  return reason_ || (detail::current != nullptr && detail::current->destroying);
}

inline void scope::place(detail::fiber& f, std::source_location site) noexcept {
  f.home = loop_->serial();
  f.site = site;
  f.parent_ = this;
  f.top = &f;
}

detail::fiber* scope::adopt_unnamed(detail::fiber* f, std::source_location site) {
  if (accepts_none() || loop_->seam() != nullptr) [[unlikely]]
    return adopt(f, {}, site, launch::ordinary);
  place(*f, site);
  detail::cancel_tree::add_child(*this, *f);
  f->retain(2);  // the references of the scope and of the caller
  loop_->own_door().fibers.add(1);
  loop_->push(*f);
  return f;
}

void scope::register_service(detail::fiber* f, detail::polite_service* polite,
                             detail::fiber* until) {
  const detail::core_ref guard(f);  // freed if this throws
  context& holder = until == nullptr ? static_cast<context&>(*this) : *until;
  detail::entry* const place =
      f->driven ? static_cast<detail::driven_fiber*>(f)
                : static_cast<detail::entry*>(new detail::background_entry(*f, holder, polite));
  f->background = true;
  f->registration = place;
  holder.own(place);
  f->retain();  // the scope's reference
}

detail::fiber* scope::adopt(detail::fiber* f, const spawn_options& options,
                            std::source_location site, launch how, detail::polite_service* polite,
                            detail::fiber* until) {
  place(*f, site);
  if (!options.name.empty()) detail::set_name(*f, options.name);
  const bool dying = detail::current != nullptr && detail::current->destroying;
  if ((reason_ && how != launch::background) || dying) [[unlikely]]
    return adopt_cancelled(f);
  if (how == launch::background) [[unlikely]] {
    register_service(f, polite, until);
  } else {
    f->starting = how == launch::starting;
    f->hidden = how == launch::hidden || how == launch::arm;
    detail::cancel_tree::add_child(*this, *f);
    f->retain();  // the scope's reference
  }
  f->retain();  // the caller's reference
  loop_->own_door().fibers.add(1);
  if (detail::run_seam* run = loop_->seam()) [[unlikely]]
    run->fiber_begins(*f);
  if (how >= launch::next && loop_->starts_deep()) {
    loop_->push_deep(*f);
  } else {
    loop_->push(*f);
  }
  return f;
}

// ------------------------------------------------------------------ cancelling and joining

void scope::cancel(cancel_reason reason) {
  require_home("cancel");
  if (reason_) return;
  detail::cancel_tree::cancel(*this, detail::cancel_tree::signed_by(*this, std::move(reason)),
                              false);
}

namespace {

// A child that joined its own scope would wait for itself.
void refuse_own_child(const scope& s, const char* what) {
  if (detail::current == nullptr) detail::raise_no_current_fiber(what);
  if (detail::cancel_tree::runs_in_child_of(s))
    detail::raise(errc::would_deadlock,
                  std::string(what) + " of scope " + detail::quoted(s.name()) +
                      " called from one of its own children, which would wait for itself");
}

}  // namespace

detail::pending<detail::join_wait> scope::join() {
  require_home("join");
  refuse_own_child(*this, "join");
  return detail::pending<detail::join_wait>({this, detail::join_wait::use::join});
}

detail::pending<detail::join_wait> scope::idle() {
  require_home("idle");
  refuse_own_child(*this, "idle");
  return detail::pending<detail::join_wait>({this, detail::join_wait::use::idle});
}

namespace detail {

bool join_wait::is_home() const noexcept { return scope_->loop_ == loop::here(); }

// On another loop the wait touches nothing; take() reports the error.
bool join_wait::try_now() noexcept {
  if (!is_home()) return true;
  if ((use_ == use::end ? scope_->live_ : scope_->size()) > 0) return false;
  if (use_ == use::join) scope_->closed_ = true;
  return true;
}

void join_wait::arm() noexcept {
  if (use_ == use::end && scope_->size() == 0) cancel_tree::stop_streams(*scope_);
  join_wait*& first = scope_->joiners_;
  if (first == nullptr) {
    first = previous_ = next_ = this;
    return;
  }
  next_ = first;
  previous_ = first->previous_;
  previous_->next_ = next_->previous_ = this;
}

void join_wait::unlink() noexcept {
  join_wait*& first = scope_->joiners_;
  if (next_ == this) {
    first = nullptr;
  } else {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    if (first == this) first = next_;
  }
}

void join_wait::blockers(blocker_list& list) const {
  for (const fiber* f = scope_->first_; f != nullptr; f = f->following) list.fibers.push_back(f);
}

cancel_result join_wait::withdraw() noexcept {
  if (use_ == use::end) return cancel_result::no;
  unlink();
  return cancel_result::done;
}

void join_wait::describe(dump_line& line) const {
  constexpr const char* words[] = {"join of scope", "idle of scope", "children of scope"};
  line.add(words[static_cast<std::size_t>(use_)]).add_name(scope_->name());
}

void join_wait::take() {
  if (!is_home()) scope_->require_home("wait");
  if (use_ != use::join || scope_->failure_ == failure::cancel_siblings) return;
  cancel_tree::collect_unobserved(*scope_);
  const std::exception_ptr error = cancel_tree::raised_error(*scope_);
  if (error == nullptr) return;
  const auto gone = std::exchange(scope_->failures_->raised, {});
  std::rethrow_exception(error);
}

// ------------------------------------------------------------------ children

reason_ref cancel_tree::signed_by(const scope& s, cancel_reason why) {
  why.scope_name = s.name_.view();
  return make_reason(std::move(why), s.id_, s.loop_->now());
}

bool cancel_tree::runs_in_child_of(const scope& s) noexcept {
  for (const context* c = current->top; c != nullptr; c = c->parent_)
    if (c->kind_ == region_kind::fiber && c->parent_ == &s) return true;
  return false;
}

void cancel_tree::drained(scope& s) noexcept {
  if (s.is_all_) static_cast<all_scope&>(s).arms_ended();
  if (s.watch_.armed()) s.loop_->cancel_deadline(s.watch_);
  while (join_wait* w = s.joiners_) {  // one by one: completing one may withdraw another
    w->unlink();
    if (w->use_ == join_wait::use::join) s.closed_ = true;
    w->complete();
  }
  if (strand* held = std::exchange(s.held_, nullptr)) s.loop_->push(*held);
}

// Only stream children are left: the body and the children they worked for have ended.
void cancel_tree::stop_streams(scope& s) noexcept {
  if (s.kind_ != region_kind::scope || s.cancel_requested()) return;
  const reason_ref reason = make_reason(cancel_kind::scope_ended, s.id_, s.loop_->now());
  for (fiber* f = s.first_; f != nullptr; f = f->following)
    if (f->hidden && mark(*f, reason, false)) spread(*f, false);
}

void cancel_tree::only_streams_left(scope& s) noexcept {
  bool ends = false;
  std::size_t waiting = 0;
  for (join_wait* w = s.joiners_; w != nullptr && (waiting == 0 || w != s.joiners_); w = w->next_)
    ++waiting;
  while (waiting-- > 0 && s.joiners_ != nullptr) {
    join_wait* w = s.joiners_;
    w->unlink();
    if (w->use_ == join_wait::use::end) {
      ends = true;
      w->arm();
      continue;
    }
    if (w->use_ == join_wait::use::join) s.closed_ = true;
    w->complete();
  }
  if (ends) stop_streams(s);
}

void overdue_watch::expired() noexcept {
  reported = true;
  for (fiber* f = of->first_; f != nullptr; f = f->following)
    of->loop_->emit("cancel_overdue", name_of(*f), of->live_, of->id_);
}

void cancel_tree::child_failed(scope& s, fiber& f) {
  if (!f.starting && s.kind_ == region_kind::scope) {
    if (s.guided_) {
      static_cast<guided_scope&>(s).child_failed(f);
    } else if (s.failure_ != failure::isolate && !f.isolated) {
      fail(s, f.result().error(), name_of(f));
    } else if (!f.observed && !f.awaited_by_user()) {
      f.unobserved = true;
    }
  }
}

void cancel_tree::ended_late(scope& s, const fiber& f) {
  if (s.watch_.reported || s.kind_ != region_kind::scope || f.background) return;
  if (s.loop_->now() > saturating_add(s.reason_->when, s.grace_)) s.watch_.expired();
}

void cancel_tree::remove_service(fiber& f) noexcept {
  entry* const place = std::exchange(f.registration, nullptr);
  if (place == nullptr) return;
  const bool is_its_own_entry = f.driven || f.carries;
  unlink_entry(is_its_own_entry ? *f.parent_ : static_cast<background_entry*>(place)->holder,
               *place);
  place->discard();
}

void cancel_tree::add_unobserved(scope& s, fiber& f) noexcept {
  f.retain();
  f.following = s.unobserved_;
  if (s.unobserved_ != nullptr) s.unobserved_->previous = &f;
  s.unobserved_ = &f;
}

// The child failed or was cancelled, or its scope was.
void cancel_tree::child_ended_badly(scope& s, fiber& f, const outcome_base& result) {
  if (result.is_error()) child_failed(s, f);
  if (s.reason_) ended_late(s, f);
  if (f.starting && result.is_error() && f.reason_)
    s.loop_->emit("suppressed", name_of(f), 0, s.id_,
                  result.error());  // its starter is being unwound
  f.settle_now();
  if (s.is_all_ && !result.is_value()) static_cast<all_scope&>(s).arm_failed(f);
}

void cancel_tree::remove_unobserved(fiber& f) noexcept {
  scope& s = scope_of(f);
  f.unobserved = false;
  (f.previous == nullptr ? s.unobserved_ : f.previous->following) = f.following;
  if (f.following != nullptr) f.following->previous = f.previous;
  f.previous = f.following = nullptr;
  f.release();
}

void cancel_tree::keep_error(scope& s, const std::exception_ptr& given, std::string_view who) {
  const bool too_late = s.parent_ != nullptr && s.parent_->reason_ && !s.parent_->lenient_;
  const std::exception_ptr error = too_late ? given : cause_of(s, given, who);
  failures& f = problems(s);
  if (f.has_cause && is_raised(f, error)) return;
  if (too_late || (s.errors_ == errors::first && !f.raised.empty())) {
    f.suppressed.push_back(error);
    s.loop_->emit("suppressed", who, 0, s.id_, error);
  } else {
    f.raised.push_back(error);
  }
}

cancel_reason cancel_tree::blame(const std::exception_ptr& error, std::string_view who) {
  cancel_reason why(cancel_kind::sibling_failed, quoted(who) + " failed");
  why.cause = error;
  return why;
}

// A child or the body failed.
void cancel_tree::fail(scope& s, const std::exception_ptr& error, std::string_view who) {
  keep_error(s, error, who);
  if (s.failure_ != failure::cancel_siblings || s.reason_) return;
  const failures& f = problems(s);
  s.cancel(blame(f.raised.empty() ? error : f.raised.back(), who));
}

void cancel_tree::collect_unobserved(scope& s) {
  // The list is newest first; errors are raised in the order in which they occurred.
  std::vector<std::exception_ptr> found;
  while (fiber* f = s.unobserved_) {
    found.push_back(f->result().error());
    remove_unobserved(*f);
  }
  if (found.empty()) return;
  failures& f = problems(s);
  for (auto e = found.rbegin(); e != found.rend(); ++e) {
    const std::exception_ptr error = cause_of(s, *e, s.name());
    if (f.has_cause && is_raised(f, error)) continue;
    if (s.errors_ == errors::all || f.raised.empty()) {
      f.raised.push_back(error);
    } else {
      f.suppressed.push_back(error);
      s.loop_->emit("suppressed", s.name(), 0, s.id_, error);
    }
  }
}

std::exception_ptr cancel_tree::raised_error(scope& s) {
  if (s.failures_ == nullptr || s.failures_->raised.empty()) return nullptr;
  if (s.errors_ == errors::first) return s.failures_->raised.front();
  return std::make_exception_ptr(error_group(s.failures_->raised));
}

void cancel_tree::unlink_entry(context& c, entry& e) noexcept {
  (e.above == nullptr ? c.entries_ : e.above->below) = e.below;
  if (e.below != nullptr) e.below->above = e.above;
  e.above = e.below = nullptr;
}

void cancel_tree::delete_entries(context& c) noexcept {
  while (entry* rest = c.entries_) {
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): unlinked before it is deleted
    unlink_entry(c, *rest);
    rest->discard();
  }
}

// ------------------------------------------------------------------ the end of a scope

bool has_loose_ends(const scope& s) noexcept {
  return s.size() > 0 || cancel_tree::first_child(s) != nullptr ||
         cancel_tree::entries(const_cast<scope&>(s)) != nullptr;
}

void body_ended(scope& s, outcome_base& out) {
  cancel_tree::note_body_end(s);
  if (out.is_error()) cancel_tree::fail(s, out.error(), "body");
}

task<> cancel_tree::end(scope& s, outcome_base& out) {
  // A service may spawn between the end of the last child and this strand's turn.
  while (s.live_ > 0) co_await quiet_wait_op<join_wait>({&s, join_wait::use::end});
  s.closed_ = true;
  if (cancel_tree::entries(s) == nullptr) co_return;
  // Defers see the error of the scope, whatever its origin, or else how the body ended.
  cancel_tree::collect_unobserved(s);
  outcome<void> shown;
  if (const std::exception_ptr error = cancel_tree::raised_error(s)) {
    shown.set_error(error);
  } else if (s.reason_ && !out.is_value()) {
    shown.set_cancelled(s.reason_);
  } else {
    shown.emplace();
  }
  std::vector<std::exception_ptr> errors;
  co_await quietly(pop_entries(s, shown, errors));
  if (!errors.empty()) cancel_tree::problems(s).cleanup = std::move(errors);
}

namespace {

void copy_notes(const failures& from, outcome_base& out) {
  if (from.suppressed.empty() && from.cleanup.empty()) return;
  outcome_notes& notes = out.notes();
  notes.suppressed.insert(notes.suppressed.end(), from.suppressed.begin(), from.suppressed.end());
  notes.cleanup.insert(notes.cleanup.end(), from.cleanup.begin(), from.cleanup.end());
}

std::exception_ptr first_or_group(const std::vector<std::exception_ptr>& errors, weir::errors how) {
  if (errors.empty()) return nullptr;
  return how == errors::first ? errors.front() : std::make_exception_ptr(error_group(errors));
}

}  // namespace

verdict cancel_tree::judge(scope& s, outcome_base& out) {
  s.closed_ = true;
  cancel_tree::collect_unobserved(s);
  cancel_tree::leave(*s.strand_, s);
  std::exception_ptr error = cancel_tree::raised_error(s);
  if (s.failures_ != nullptr) copy_notes(*s.failures_, out);
  if (error != nullptr) return {verdict::action::fail, std::move(error)};
  const bool caller_cancelled = s.parent_->reason_ && !s.parent_->lenient_;
  // A cancelled caller gets a value only if the scope had nothing to wait for after the body's end.
  const bool waited = s.body_end_ != s.loop_->steps();
  if (caller_cancelled && (!out.is_value() || waited)) return {verdict::action::unwind, nullptr};
  if (s.failures_ != nullptr && out.is_value()) {
    error = first_or_group(s.failures_->cleanup, s.errors_);
    if (error != nullptr) return {verdict::action::fail, std::move(error)};
  }
  return {};
}

task<> end_scope(scope& s, outcome_base& out) { return cancel_tree::end(s, out); }
verdict judge_scope(scope& s, outcome_base& out) { return cancel_tree::judge(s, out); }

}  // namespace detail
}  // namespace weir
