// SPDX-License-Identifier: MIT
// An agent from the outside: its home loop, its mailbox, and the ways into it.
#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/core/run_rules.hpp>

#include <array>
#include <functional>
#include <string>
#include <thread>

#include "agents/agent_extra.hpp"
#include "core/cancel_tree.hpp"
#include "core/error_notes.hpp"
#include "core/home.hpp"

namespace weir {

agent_error::agent_error(errc code, const std::string& what, std::vector<std::string> chain)
    : error(code, what),
      chain_(std::make_shared<const std::vector<std::string>>(std::move(chain))) {}

namespace detail {

std::recursive_mutex& lock_of(const agent_core& a) noexcept {
  static std::array<std::recursive_mutex, 16> locks;
  return locks[std::hash<const void*>()(&a) / 64 % locks.size()];
}

void check_mailbox(const char* what, std::string_view name, std::int64_t capacity, overflow how) {
  if (capacity <= 0)
    raise(errc::invalid_argument,
          text_of({what, name}) + ": capacity is not positive; give 1 or more, or unbounded");
  if (how == overflow::conflate || how == overflow::disconnect || how == overflow::fail_emitter ||
      how > overflow::stop)
    raise_overflow(what, how, "wait, reject, drop_oldest, drop_newest and stop");
}

void raise_not_copyable(std::string_view name) {
  raise(errc::invalid_argument,
        text_of({"agent", name}) +
            ": its arguments cannot be copied, so it cannot be restarted; make it temporary");
}

agent_core::agent_core(agent_setup&& setup)
    : mail_(setup.capacity != std::int64_t{unbounded}),
      supervised_(setup.supervised),
      revives_(setup.revives),
      crash_on_error_(setup.on_error == on_error::crash),
      keeps_mail_(setup.on_restart == weir::mailbox::keep),
      keeps_(setup.keeps) {
  require_no_run("agent", setup.name.view());
  check_mailbox("agent", setup.name.view(), setup.capacity, setup.overflow);
  loop* const here = loop::here();
  const bool elsewhere = setup.on.serial() != 0 && setup.on.serial() != current_loop_serial();
  if (elsewhere) {
    door_ = door_table::find(setup.on.index(), setup.on.serial());
    if (door_ == nullptr)
      throw agent_error(errc::loop_gone,
                        text_of({"agent", setup.name.view()}) + ": its loop has ended");
    if (here != nullptr && door_->simulated() != here->own_door().simulated())
      raise(errc::wrong_loop, text_of({"agent", setup.name.view()}) +
                                  ": one of the two loops is simulated and the other is not");
  } else if (here != nullptr) {
    door_ = here->shared_door();
  }
  if (door_ != nullptr) home_serial_.store(door_->serial(), std::memory_order_relaxed);
  owns_name_ = !setup.name.empty() && !setup.name.is_literal();
  name_ = setup.name.release();
  if (!mail_.is_bounded() && !elsewhere && !supervised_ && setup.lives == 1) return;
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
  if (has_extra()) {
    flush_line(errc::agent_stopped);
    delete &extra();
  }
  if (owns_name_) delete[] name_;
}

agent_extra& agent_core::need_extra() {
  if (!has_extra()) {
    const std::lock_guard lock(lock_of(*this));
    if (!has_extra()) mail_.set_extra(new agent_extra);
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

namespace {

agent_state state_of(agent_phase p, std::uint32_t generation) noexcept {
  switch (p) {
    case agent_phase::unborn:
    case agent_phase::starting:
      return agent_state::starting;
    case agent_phase::coming:
      return generation == 0 ? agent_state::starting : agent_state::restarting;
    case agent_phase::idle:
      return agent_state::idle;
    case agent_phase::running:
      return agent_state::running;
    case agent_phase::unborn_stopped:
    case agent_phase::coming_stopped:
    case agent_phase::coming_cut:
    case agent_phase::ending:
    case agent_phase::draining:
    case agent_phase::drained:
    case agent_phase::cut:
      return agent_state::stopping;
    case agent_phase::between:
      return agent_state::restarting;
    case agent_phase::shut:
    case agent_phase::over:
      break;
  }
  return agent_state::ended;
}

}  // namespace

agent_info agent_core::info() const {
  agent_info seen;
  seen.name = std::string(name());
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  seen.state = state_of(cycle_.phase(), generation);
  seen.generation = generation;
  seen.restarts = seen.generation == 0 ? 0 : seen.generation - 1;
  seen.queued = mail_.queued();
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
  std::string what = text_of({"agent", name()}) + text;
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
  const bool next_door = is_next_door();
  if (next_door && mail_.takes_all()) [[likely]] {  // as offer_here, but without its other cases
    push(e);
    return room::yes;
  }
  envelope* oldest = nullptr;
  const room found = next_door ? offer_here(e, oldest) : offer_away(e, oldest);
  if (oldest != nullptr) evict(*oldest);  // last: may run user code (destructors)
  return found;
}

agent_core::room agent_core::no_room() const noexcept {
  switch (extra().overflow) {
    case overflow::wait:
      return room::wait;
    case overflow::stop:
      return room::crashed;
    default:
      return room::full;
  }
}

agent_core::room agent_core::offer_here(envelope& e, envelope*& oldest) noexcept {
  if (!mail_.is_open(std::memory_order_relaxed)) return room::gone;
  if (mail_.is_bounded()) {
    oldest = take_excess();
    if (!mail_.reserve()) {
      const room found = no_room();
      if (found == room::crashed) crash_here();
      return found;
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
  if (!mail_.is_open(std::memory_order_acquire) || !may_be_reached()) return room::gone;
  if (!mail_.reserve()) {
    const room found = no_room();
    if (found == room::crashed) ask_to_crash();
    return found;
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
  if (!mail_.accepts()) {
    mail_.give_back_place();
    return refuse_message(e, ended_code());
  }
  envelope* const oldest = take_excess();
  push(e);
  if (oldest != nullptr) evict(*oldest);
}

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

// Declared inline, because otherwise g++ does not inline it: every message passes it.
inline void agent_core::push(envelope& e) noexcept {
  const std::uint64_t length = mail_.append(e);
  if (length >= agent_mailbox::first_alarm) [[unlikely]]
    report_length(length);
  if (idle_ != nullptr) wake();
}

void agent_core::report_length(std::uint64_t length) noexcept {
  if (mail_.is_alarming(length) && loop::here() != nullptr)
    loop::here()->emit("mailbox_high", name(), length);
}

envelope* agent_core::take_excess() noexcept {
  envelope* const oldest = mail_.pop_excess();
  if (oldest != nullptr) check_drained();
  return oldest;
}

// A message has left the mailbox: perhaps the last one from before a stop.
void agent_core::check_drained() noexcept {
  if (cycle_.phase() != agent_phase::draining || mail_.is_marked()) return;
  cycle_.on(life_event::drained);
  wake_all();
}

void agent_core::set_aside(envelope& e) noexcept {
  need_extra();
  mail_.set_aside(e);
}

// These calls were handled, so they do not count as skipped, even if the caller no longer waits.
void agent_core::refuse_set_aside(errc code) noexcept {
  for (envelope* all = mail_.take_set_aside(); all != nullptr;) {
    envelope& e = next_of(all);
    if (e.is_call) {
      answer(static_cast<call_envelope&>(e), problem(code));
    } else {
      refuse_message(e, code);
    }
  }
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
  mail_.reserve_in_line();
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
  if (!mail_.accepts()) {
    mail_.give_back_place();
    return refuse_message(e, ended_code());
  }
  mail_.enter_line(e);
  admit_line();
}

void agent_core::leave_line(envelope& e) noexcept {
  mail_.leave_line(e);
  mail_.give_back_place();
}

void agent_core::admit_line() noexcept {
  room_ticket* ticket = nullptr;
  while (envelope* e = mail_.admit(ticket)) {
    push(*e);
    if (ticket != nullptr) ticket->answer();
  }
}

// ------------------------------------------------------------------ refusing queued messages

void agent_core::flush_line(errc code) noexcept {
  while (envelope* e = mail_.take_from_line()) {
    if (is_abandoned(*e)) {
      discard(*e);
    } else {
      refuse_message(*e, code);
    }
  }
}

void agent_core::flush(errc code) noexcept {
  refuse_set_aside(code);
  while (!mail_.empty()) {
    envelope& e = mail_.pop();
    mail_.give_back_place();
    refuse_message(e, code);
  }
}

// Messages that arrived after the last life ended wait for the next one.
void agent_core::flush_old(errc code) noexcept {
  envelope* old = mail_.take_old(keeps_mail_);
  while (old != nullptr) refuse_message(next_of(old), code);  // may run user code (destructors)
}

}  // namespace detail
}  // namespace weir
