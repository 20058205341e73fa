// SPDX-License-Identifier: MIT
#include <weir/detail/agents/mailbox.hpp>

#include <utility>

#include "agents/agent_extra.hpp"

namespace weir::detail {

bool is_abandoned(const envelope& e) noexcept {
  if (e.ticket != nullptr) return e.ticket->is_abandoned();
  return e.is_call && static_cast<const call_envelope&>(e).is_given_up();
}

void discard(envelope& e) noexcept {
  if (e.ticket != nullptr) e.ticket->dispose();
  e.dispose();
}

// ------------------------------------------------------------------ the list

bool agent_mailbox::is_alarming(std::uint64_t length) noexcept {
  if (bounded_ || length != first_alarm << alarms_) return false;
  ++alarms_;
  return true;
}

void agent_mailbox::leaves_marked_list(const envelope& e) noexcept {
  extra& x = *get_extra();
  if (counts_old_ && x.old_mail > 0) --x.old_mail;
  if (marked_ && &e == x.stop_after) marked_ = false;
}

void agent_mailbox::count_old() noexcept {
  get_extra()->old_mail = queued();
  counts_old_ = true;
}

envelope* agent_mailbox::take_old(bool calls_only) noexcept {
  std::uint64_t old = counts_old_ ? std::exchange(get_extra()->old_mail, 0) : 0;
  counts_old_ = false;
  envelope* all = std::exchange(head_, nullptr);
  message* taken = nullptr;
  message** end = &taken;
  tail_ = nullptr;
  queued_.store(0, std::memory_order_relaxed);
  while (all != nullptr) {
    envelope& e = next_of(all);
    if (old == 0 || (calls_only && !e.is_call)) {
      append(e);
    } else {
      give_back_place();
      *end = &e;
      end = &e.next;
    }
    if (old > 0) --old;
  }
  *end = nullptr;
  if (head_ == nullptr) alarms_ = 0;
  return static_cast<envelope*>(taken);
}

void agent_mailbox::set_aside(envelope& e) noexcept {
  e.next = std::exchange(get_extra()->set_aside, &e);
}

// ------------------------------------------------------------------ the line of waiting senders

void agent_mailbox::enter_line(envelope& e) noexcept {
  extra& x = *get_extra();
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
}

void agent_mailbox::leave_line(envelope& e) noexcept {
  extra& x = *get_extra();
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
envelope* agent_mailbox::admit(room_ticket*& ticket) noexcept {
  extra& x = *get_extra();
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
    ticket = std::exchange(e.ticket, nullptr);
    if (ticket == nullptr || ticket->decide(nullptr)) return &e;
    give_back_place();  // the sender gave up concurrently
    e.dispose();
  }
  return nullptr;
}

envelope* agent_mailbox::take_from_line() noexcept {
  envelope* const e = get_extra()->line_first;
  if (e == nullptr) return nullptr;
  leave_line(*e);
  give_back_place();
  return e;
}

// Senders on other loops that give up leave their messages in the line. They are swept whenever the
// line reaches 16 plus twice its size after the last sweep.
void agent_mailbox::sweep_line() noexcept {
  extra& x = *get_extra();
  envelope* left = nullptr;
  for (envelope* e = x.line_first; e != nullptr;) {
    envelope& seen = next_of(e);
    if (!is_abandoned(seen)) continue;
    leave_line(seen);
    give_back_place();
    seen.next = std::exchange(left, &seen);
  }
  x.sweep_at = 16 + 2 * x.line_size;
  while (left != nullptr) discard(next_of(left));  // last: destructors may run user code
}

}  // namespace weir::detail
