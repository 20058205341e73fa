// SPDX-License-Identifier: MIT
// An agent from the outside: its home loop, its mailbox, and the ways into it.
#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/core/made_in_run.hpp>

#include <array>
#include <functional>
#include <string>
#include <thread>

#include "agents/agent_extra.hpp"
#include "core/cancel_tree.hpp"
#include "core/error_notes.hpp"

namespace weir {

agent_error::agent_error(errc code, const std::string& what, std::vector<std::string> chain)
    : error(code, what),
      chain_(std::make_shared<const std::vector<std::string>>(std::move(chain))) {}

namespace detail {

namespace {

constexpr std::uint64_t first_alarm = 10'000;  // messages in an unbounded mailbox

std::string quoted(std::string_view name) {
  std::string text = "'";
  text.append(name.empty() ? "unnamed" : name).append("'");
  return text;
}

}  // namespace

std::recursive_mutex& lock_of(const agent_core& a) noexcept {
  static std::array<std::recursive_mutex, 16> locks;
  return locks[std::hash<const void*>()(&a) / 64 % locks.size()];
}

void check_mailbox(const char* what, std::string_view name, std::int64_t capacity, overflow how) {
  if (capacity <= 0)
    raise(errc::invalid_argument, std::string(what) + " " + quoted(name) +
                                      ": capacity is not positive; give 1 or more, or unbounded");
  if (how == overflow::conflate || how == overflow::disconnect || how == overflow::fail_emitter ||
      how > overflow::stop)
    raise_overflow(what, how, "wait, reject, drop_oldest, drop_newest and stop");
}

void raise_not_copyable(std::string_view name) {
  raise(errc::invalid_argument,
        "agent " + quoted(name) +
            ": its arguments cannot be copied, so it cannot be restarted; make it temporary");
}

agent_core::agent_core(agent_setup&& setup)
    : supervised_(setup.supervised),
      revives_(setup.revives),
      crash_on_error_(setup.on_error == on_error::crash),
      keeps_mail_(setup.on_restart == mailbox::keep),
      keeps_(setup.keeps),
      bounded_(setup.capacity != std::int64_t{unbounded}) {
  require_no_run("agent", setup.name.view());
  check_mailbox("agent", setup.name.view(), setup.capacity, setup.overflow);
  loop* const here = loop::here();
  const bool elsewhere = setup.on.serial() != 0 && setup.on.serial() != current_loop_serial();
  if (elsewhere) {
    door_ = door_table::find(setup.on.index(), setup.on.serial());
    if (door_ == nullptr)
      throw agent_error(errc::loop_gone,
                        "agent " + quoted(setup.name.view()) + ": its loop has ended");
    if (here != nullptr && door_->simulated() != here->own_door().simulated())
      raise(errc::wrong_loop, "agent " + quoted(setup.name.view()) +
                                  ": one of the two loops is simulated and the other is not");
  } else if (here != nullptr) {
    door_ = here->shared_door();
  }
  if (door_ != nullptr) home_serial_.store(door_->serial(), std::memory_order_relaxed);
  owns_name_ = !setup.name.empty() && !setup.name.is_literal();
  name_ = setup.name.release();
  if (!bounded_ && !elsewhere && !supervised_ && setup.lives == 1) return;
  need_extra().site = setup.site;
  need_extra().capacity = setup.capacity;
  need_extra().overflow = setup.overflow;
  need_extra().on = setup.on;
  need_extra().elsewhere = elsewhere;
  need_extra().lives = setup.lives;
}

agent_core::~agent_core() {
  // No reference is left. Remaining messages were sent before its supervisor ran, if it ever did.
  flush(errc::agent_stopped);
  if (has_extra()) flush_line(errc::agent_stopped);
  delete extra_.load(std::memory_order_acquire);
  if (owns_name_) delete[] name_;
}

agent_extra& agent_core::need_extra() {
  if (!has_extra()) {
    const std::lock_guard lock(lock_of(*this));
    if (!has_extra()) extra_.store(new agent_extra, std::memory_order_release);
  }
  return extra();
}

void agent_core::settle_home() {
  if (has_home()) return;
  const std::lock_guard lock(lock_of(*this));
  door_ = loop::here()->shared_door();
  home_serial_.store(door_->serial(), std::memory_order_release);
}

loop_ref agent_core::where() const noexcept {
  return has_extra() && extra().elsewhere ? extra().on : loop_ref();
}

// A simulated loop accepts messages only from its own thread.
bool agent_core::may_be_reached() const noexcept {
  return !door_->simulated() || door_->thread == std::this_thread::get_id();
}

const void* agent_core::clock() const noexcept { return !has_home() ? nullptr : door_->clock(); }

agent_info agent_core::info() const {
  agent_info seen;
  seen.name = std::string(name());
  seen.state = state_.load(std::memory_order_relaxed);
  seen.generation = generation_.load(std::memory_order_relaxed);
  seen.restarts = seen.generation == 0 ? 0 : seen.generation - 1;
  seen.queued = queued_.load(std::memory_order_relaxed);
  seen.handled = handled_.load(std::memory_order_relaxed);
  seen.dropped = dropped_.load(std::memory_order_relaxed);
  seen.skipped = skipped_.load(std::memory_order_relaxed);
  return seen;
}

void agent_core::blame(const std::shared_ptr<takedown>& why) noexcept {
  if (why == nullptr && !has_extra()) return;
  agent_extra& mine = need_extra();
  const std::lock_guard lock(lock_of(*this));
  mine.why_ended = why;
}

std::exception_ptr agent_core::problem(errc code) const {
  takedown_ref why;
  if (has_extra() && (code == errc::agent_stopped || code == errc::agent_crashed)) {
    const std::lock_guard lock(lock_of(*this));
    why = extra().why_ended;
  }
  const char* text = ": its loop has ended";
  switch (code) {
    case errc::agent_stopped:
      text = " has ended";
      break;
    case errc::agent_restarted:
      text = " was restarted before it could answer; ask again if the call may be repeated";
      break;
    case errc::agent_crashed:
      text = " has crashed; its owner has the error";
      break;
    case errc::mailbox_full:
      text = " has a full mailbox; wait and send again, or raise the capacity";
      break;
    case errc::wrong_loop:
      text = " lives in a simulation, which takes messages of its own thread only";
      break;
    default:
      break;
  }
  std::string what = "agent " + quoted(name()) + text;
  if (why == nullptr) return std::make_exception_ptr(agent_error(code, what));
  // Its supervisor gave up: the error says so and links to the supervisor's error.
  if (code == errc::agent_stopped) what.append(": ").append(why->who).append(" gave up");
  std::exception_ptr error = std::make_exception_ptr(agent_error(code, what));
  note_takedown(error, std::move(why));
  return error;
}

std::exception_ptr agent_core::refusal() const {
  const bool settled = has_home();
  return problem(settled && !may_be_reached() ? errc::wrong_loop : ended_code());
}

// ------------------------------------------------------------------ sending

sent agent_core::cast(envelope* message) noexcept {
  envelope& e = *message;
  const room found = crashing ? room::gone : offer(e);
  switch (found) {
    case room::yes:
      return sent::enqueued;
    case room::lost:
      return sent::stopped;
    case room::wait:
    case room::full:
      break;
    case room::crashed:
    case room::gone:
      count_dropped(1);
      e.dispose();
      return sent::stopped;
  }
  const bool drops = extra().overflow == overflow::drop_newest;
  if (drops) count_dropped(1);
  e.dispose();
  return drops ? sent::dropped : sent::full;
}

// Messages that other threads sent earlier come first: while the loop's inbox is not empty,
// messages from the agent's own loop go through the inbox, too.
bool agent_core::is_next_door() const noexcept {
  return is_here() && !loop::here()->has_messages();
}

agent_core::room agent_core::offer(envelope& e) noexcept {
  envelope* oldest = nullptr;
  const room found = is_next_door() ? offer_here(e, oldest) : offer_away(e, oldest);
  if (oldest != nullptr) evict(*oldest);  // last: may run user code (destructors)
  return found;
}

bool agent_core::counts_places() const noexcept {
  return bounded_ && extra().overflow != overflow::drop_oldest;
}

bool agent_core::reserve() noexcept {
  std::atomic<std::int64_t>& occupied = extra().occupied;
  std::int64_t seen = occupied.load(std::memory_order_relaxed);
  while (seen < extra().capacity) {
    if (occupied.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void agent_core::give_back_place() noexcept {
  if (counts_places()) extra().occupied.fetch_sub(1, std::memory_order_relaxed);
}

agent_core::room agent_core::offer_here(envelope& e, envelope*& oldest) noexcept {
  if (gate_.load(std::memory_order_relaxed) != gate::open) return room::gone;
  if (bounded_) {
    if (extra().overflow == overflow::drop_oldest) {
      oldest = oldest_in_excess();
    } else if (!reserve()) {
      if (extra().overflow == overflow::wait) return room::wait;
      if (extra().overflow != overflow::stop) return room::full;
      crash_here();
      return room::crashed;
    }
  }
  push(e);
  return room::yes;
}

agent_core::room agent_core::offer_away(envelope& e, envelope*& oldest) noexcept {
  if (!has_home()) {
    const std::lock_guard lock(lock_of(*this));
    if (!has_home()) return offer_here(e, oldest);
  }
  if (gate_.load(std::memory_order_acquire) != gate::open || !may_be_reached()) return room::gone;
  if (counts_places() && !reserve()) {
    if (extra().overflow == overflow::wait) return room::wait;
    if (extra().overflow != overflow::stop) return room::full;
    ask_to_crash();
    return room::crashed;
  }
  return post(e) ? room::yes : room::lost;
}

// One request is enough, however many messages find no room before it arrives. It applies to the
// current life, or to the first one if none has begun.
void agent_core::ask_to_crash() noexcept {
  if (extra().crash_asked.exchange(true, std::memory_order_relaxed)) return;
  const std::uint32_t life = generation_.load(std::memory_order_relaxed);
  at_home([life](agent_core& a) {
    a.extra().crash_asked.store(false, std::memory_order_relaxed);
    if (life == 0 || life == a.generation_.load(std::memory_order_relaxed)) a.crash_here();
  });
}

bool agent_core::post(envelope& e) noexcept {
  const std::shared_ptr<door> there = door_;  // the message may own the last reference
  retain();
  e.to = this;
  return there->post(e);
}

void envelope::deliver(loop&) noexcept {
  const agent_handle keep(to);
  keep->arrived(*this);
}

void envelope::refuse() noexcept {
  const agent_handle keep(to);
  keep->refused(*this);
}

void agent_core::refused(envelope& e) noexcept { refuse_message(e, errc::loop_gone); }

void agent_core::arrived(envelope& e) noexcept {
  if (e.to_line) return enter_line_here(e);
  if (!accepts_) {
    give_back_place();
    return refuse_message(e, ended_code());
  }
  envelope* const oldest = oldest_in_excess();
  push(e);
  if (oldest != nullptr) evict(*oldest);
}

namespace {

/// The sender or caller no longer waits for it.
bool is_abandoned(const envelope& e) noexcept {
  if (e.ticket != nullptr) return e.ticket->is_abandoned();
  return e.is_call && static_cast<const call_envelope&>(e).is_given_up();
}

void discard(envelope& e) noexcept {
  if (e.ticket != nullptr) e.ticket->dispose();
  e.dispose();
}

}  // namespace

void agent_core::refuse_message(envelope& e, errc code) noexcept {
  if (e.is_call && is_abandoned(e)) {
    skipped_.fetch_add(1, std::memory_order_relaxed);
    return e.dispose();
  }
  if (e.is_call) return answer(static_cast<call_envelope&>(e), problem(code));
  if (e.ticket != nullptr) {
    if (e.ticket->decide(problem(code))) e.ticket->answer();
  } else {
    count_dropped(1);
  }
  e.dispose();
}

// ------------------------------------------------------------------ the mailbox

void agent_core::append(envelope& e) noexcept {
  e.next = nullptr;
  if (tail_ == nullptr) {
    head_ = &e;
  } else {
    tail_->next = &e;
  }
  tail_ = &e;
}

void agent_core::push(envelope& e) noexcept {
  append(e);
  const std::uint64_t now = queued_.load(std::memory_order_relaxed) + 1;
  queued_.store(now, std::memory_order_relaxed);
  if (now >= first_alarm) [[unlikely]]
    count_high();
  if (idle_ != nullptr) wake();
}

void agent_core::set_aside(envelope& e) noexcept {
  e.next = std::exchange(need_extra().set_aside, &e);
}

// These calls were handled, so they do not count as skipped, even if the caller no longer waits.
void agent_core::refuse_set_aside(errc code) noexcept {
  if (!has_extra()) return;
  envelope* all = std::exchange(extra().set_aside, nullptr);
  while (all != nullptr) {
    envelope& e = *all;
    all = static_cast<envelope*>(e.next);
    if (e.is_call) {
      answer(static_cast<call_envelope&>(e), problem(code));
    } else {
      refuse_message(e, code);
    }
  }
}

void agent_core::count_high() noexcept {
  const std::uint64_t now = queued_.load(std::memory_order_relaxed);
  if (bounded_ || now != first_alarm << alarms_) return;
  ++alarms_;
  if (loop* here = loop::here()) here->emit("mailbox_high", name(), now);
}

envelope* agent_core::unlink_head() noexcept {
  envelope* const e = head_;
  head_ = static_cast<envelope*>(e->next);
  if (head_ == nullptr) {
    tail_ = nullptr;
    alarms_ = 0;
  }
  if (lives_ == nullptr && has_extra() && extra().old_mail > 0) --extra().old_mail;
  if (stopping_ && e == extra().stop_after) {
    due_ = true;
    wake_all();
  }
  queued_.store(queued_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return e;
}

envelope* agent_core::take() noexcept {
  envelope* const e = unlink_head();
  if (bounded_) {
    give_back_place();
    if (extra().line_first != nullptr) admit_line();
  }
  return e;
}

// The message to drop if the policy is drop_oldest and the mailbox is full; otherwise null.
envelope* agent_core::oldest_in_excess() noexcept {
  if (!bounded_ || extra().overflow != overflow::drop_oldest) return nullptr;
  const auto queued = static_cast<std::int64_t>(queued_.load(std::memory_order_relaxed));
  return queued < extra().capacity ? nullptr : unlink_head();
}

void agent_core::evict(envelope& oldest) noexcept {
  if (oldest.is_call && !is_abandoned(oldest)) count_dropped(1);
  refuse_message(oldest, errc::mailbox_full);
}

void agent_core::wake() noexcept {
  agent_life* const first = idle_;
  idle_ = static_cast<agent_life*>(static_cast<fiber*>(first->next));
  first->mail_.wake();
}

void agent_core::wake_all() noexcept {
  while (idle_ != nullptr) wake();
}

// ------------------------------------------------------------------ the line of waiting senders

bool agent_core::enter_line(envelope& e) noexcept {
  extra().occupied.fetch_add(1, std::memory_order_relaxed);
  if (!has_home()) {
    const std::lock_guard lock(lock_of(*this));
    if (!has_home()) {
      enter_line_here(e);
      return false;
    }
  }
  if (is_next_door()) {
    enter_line_here(e);
    return true;
  }
  e.to_line = true;
  (void)post(e);
  return false;
}

void agent_core::enter_line_here(envelope& e) noexcept {
  e.to_line = false;
  if (!accepts_) {
    give_back_place();
    return refuse_message(e, ended_code());
  }
  agent_extra& x = extra();
  e.in_line = true;
  e.next = nullptr;
  e.before = x.line_last;
  if (x.line_last == nullptr) {
    x.line_first = &e;
  } else {
    x.line_last->next = &e;
  }
  x.line_last = &e;
  if (++x.line_size >= x.sweep_at) sweep_line();
  admit_line();
}

void agent_core::leave_line(envelope& e) noexcept {
  agent_extra& x = extra();
  auto* const after = static_cast<envelope*>(e.next);
  if (e.before == nullptr) {
    x.line_first = after;
  } else {
    e.before->next = after;
  }
  (after == nullptr ? x.line_last : after->before) = e.before;
  --x.line_size;
  e.in_line = false;
  e.to = nullptr;
}

// Posted messages already have a place. Messages posted to the line count in `occupied`, too,
// before they arrive; on arrival the line is checked again.
void agent_core::admit_line() noexcept {
  agent_extra& x = extra();
  while (x.line_first != nullptr &&
         x.occupied.load(std::memory_order_relaxed) - static_cast<std::int64_t>(x.line_size) <
             x.capacity) {
    envelope& e = *x.line_first;
    leave_line(e);
    if (is_abandoned(e)) {
      give_back_place();
      discard(e);
      continue;
    }
    room_ticket* const ticket = std::exchange(e.ticket, nullptr);
    if (ticket != nullptr && !ticket->decide(nullptr)) {
      give_back_place();  // the sender gave up concurrently
      e.dispose();
      continue;
    }
    push(e);
    if (ticket != nullptr) ticket->answer();
  }
}

// Senders on other loops that give up leave their messages in the line. They are swept whenever the
// line reaches 16 plus twice its size after the last sweep.
void agent_core::sweep_line() noexcept {
  agent_extra& x = extra();
  envelope* left = nullptr;
  for (envelope* e = x.line_first; e != nullptr;) {
    envelope& seen = *e;
    e = static_cast<envelope*>(e->next);
    if (!is_abandoned(seen)) continue;
    leave_line(seen);
    give_back_place();
    seen.next = std::exchange(left, &seen);
  }
  x.sweep_at = 16 + 2 * x.line_size;
  while (left != nullptr) {  // last: the destructors of their arguments may run user code
    envelope& e = *left;
    left = static_cast<envelope*>(e.next);
    discard(e);
  }
}

void agent_core::flush_line(errc code) noexcept {
  while (envelope* e = extra().line_first) {
    leave_line(*e);
    give_back_place();
    if (is_abandoned(*e)) {
      discard(*e);
    } else {
      refuse_message(*e, code);
    }
  }
}

void agent_core::flush(errc code) noexcept {
  refuse_set_aside(code);
  while (head_ != nullptr) {
    envelope& e = *unlink_head();
    give_back_place();
    refuse_message(e, code);
  }
}

// Messages that arrived after the last life ended wait for the next one.
void agent_core::flush_old(errc code) noexcept {
  std::uint64_t old = std::exchange(extra().old_mail, 0);
  envelope* all = std::exchange(head_, nullptr);
  envelope* left = nullptr;  // newest first
  tail_ = nullptr;
  queued_.store(0, std::memory_order_relaxed);
  while (all != nullptr) {
    envelope& e = *all;
    all = static_cast<envelope*>(e.next);
    if (old == 0 || (keeps_mail_ && !e.is_call)) {
      append(e);
      queued_.store(queued_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      give_back_place();
      e.next = std::exchange(left, &e);
    }
    if (old > 0) --old;
  }
  if (head_ == nullptr) alarms_ = 0;
  envelope* refused = nullptr;
  while (left != nullptr) {
    envelope& e = *left;
    left = static_cast<envelope*>(e.next);
    e.next = std::exchange(refused, &e);
  }
  while (refused != nullptr) {  // last: the destructors of their arguments may run user code
    envelope& e = *refused;
    refused = static_cast<envelope*>(e.next);
    refuse_message(e, code);
  }
}

}  // namespace detail
}  // namespace weir
