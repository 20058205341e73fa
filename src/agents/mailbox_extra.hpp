// SPDX-License-Identifier: MIT
// What few mailboxes need, and the parts of a mailbox that each message or each agent passes, to be
// inlined.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/agents/mailbox.hpp>
#include <weir/overflow.hpp>

namespace weir::detail {

struct agent_mailbox::extra {
  std::int64_t capacity = unbounded;
  weir::overflow overflow = weir::overflow::reject;
  /// Messages that have a place in the mailbox or stand in line for one.
  std::atomic<std::int64_t> occupied{0};
  // Messages waiting for room, first come, first served.
  envelope* line_first = nullptr;
  envelope* line_last = nullptr;
  std::size_t line_size = 0;
  std::size_t sweep_at = 16;
  envelope* stop_after = nullptr;  // the stop mark, if there is one
  std::uint64_t old_mail = 0;      // if it is counted
  envelope* set_aside = nullptr;   // newest first
};

inline bool agent_mailbox::drops_oldest() const noexcept {
  return bounded_ && get_extra()->overflow == overflow::drop_oldest;
}

inline bool agent_mailbox::reserve() noexcept {
  if (!bounded_ || drops_oldest()) return true;
  extra& x = *get_extra();
  std::int64_t seen = x.occupied.load(std::memory_order_relaxed);
  while (seen < x.capacity) {
    if (x.occupied.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

inline void agent_mailbox::reserve_in_line() noexcept {
  get_extra()->occupied.fetch_add(1, std::memory_order_relaxed);
}

inline void agent_mailbox::give_back_place() noexcept {
  if (bounded_ && !drops_oldest()) get_extra()->occupied.fetch_sub(1, std::memory_order_relaxed);
}

inline void agent_mailbox::link(envelope& e) noexcept {
  e.next = nullptr;
  if (tail_ == nullptr) {
    head_ = &e;
  } else {
    tail_->next = &e;
  }
  tail_ = &e;
}

inline std::uint64_t agent_mailbox::append(envelope& e) noexcept {
  link(e);
  const std::uint64_t length = queued() + 1;
  queued_.store(length, std::memory_order_relaxed);
  return length;
}

inline envelope& agent_mailbox::pop() noexcept {
  envelope& e = *head_;
  head_ = static_cast<envelope*>(e.next);
  if (head_ == nullptr) {
    tail_ = nullptr;
    alarms_ = 0;
  }
  if (marked_ || counts_old_) [[unlikely]]
    leaves_marked_list(e);
  queued_.store(queued() - 1, std::memory_order_relaxed);
  return e;
}

inline envelope* agent_mailbox::pop_excess() noexcept {
  if (!drops_oldest()) return nullptr;
  return static_cast<std::int64_t>(queued()) < get_extra()->capacity ? nullptr : &pop();
}

inline void agent_mailbox::mark_stop() noexcept {
  marked_ = tail_ != nullptr;
  if (marked_) get_extra()->stop_after = tail_;
}

inline envelope* agent_mailbox::take_set_aside() noexcept {
  extra* const x = get_extra();
  return x == nullptr ? nullptr : std::exchange(x->set_aside, nullptr);
}

inline bool agent_mailbox::has_line() const noexcept { return get_extra()->line_first != nullptr; }

inline envelope& next_of(envelope*& chain) noexcept {
  envelope& e = *chain;
  chain = static_cast<envelope*>(e.next);
  return e;
}

}  // namespace weir::detail
