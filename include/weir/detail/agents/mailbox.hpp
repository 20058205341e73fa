// SPDX-License-Identifier: MIT
// The mailbox of an agent: the list of queued messages, the places of a bounded mailbox, the line
// of senders that wait for a place, and the gate before them. It moves messages and answers none:
// what it gives out, the agent handles, answers or refuses.
//
// Thread safety:
// 1. The gate, `queued` and the places are atomic: any thread.
// 2. The list, the line and the calls set aside belong to the agent's loop (or to the holder of the
//    agent's lock while it has no home).
//
// Invariants:
// 3. A message is in the list, in the line, among the calls set aside, or not in the mailbox.
//    `queued` is the length of the list.
// 4. In a bounded mailbox with any policy but drop_oldest, each message in the list, in the line or
//    in flight to one of them occupies one place. Messages of the list and in flight to it are at
//    most `capacity`; those of the line come on top, so that a new sender finds no room while
//    others wait. Code that takes a message out of the list or the line gives the place back, or
//    keeps it when it moves the message from the line to the list.
// 5. With drop_oldest no places are counted: in a full list the oldest message makes room for the
//    one that arrives.
// 6. The line is first come, first served. A sender on the agent's loop that gives up withdraws its
//    message; one on another loop leaves it there, abandoned, until it is swept or its turn comes.
// 7. The stop mark is the last message queued before a stop. The mark is cleared when that message
//    leaves the list, or when the stop is forgotten.
// 8. Old mail is what was queued when the last life ended: the first `old_mail` messages of the
//    list. It is counted between two lives only.
// 9. A call set aside was handled, and its handler was unwound: it is answered when it is known
//    what follows the life.
// 10. The gate is open; or stop_posted, when a stop is on its way from another thread: senders are
//    refused, and messages in flight, which were sent earlier, still arrive; or stopped or crashed,
//    when all are refused.
#pragma once

#include <atomic>
#include <cstdint>

#include <weir/error.hpp>

namespace weir::detail {

class room_ticket;
struct envelope;

class agent_mailbox {
 public:
  /// The line, the places and the marks, which few agents need; the base of agent_extra, so that
  /// one pointer serves both.
  struct extra;

  explicit agent_mailbox(bool bounded) noexcept : bounded_(bounded) {}
  agent_mailbox(const agent_mailbox&) = delete;
  agent_mailbox& operator=(const agent_mailbox&) = delete;

  extra* get_extra() const noexcept { return extra_.load(std::memory_order_acquire); }
  /// REQUIRES: it has none. Owned by the caller.
  void set_extra(extra* x) noexcept { extra_.store(x, std::memory_order_release); }

  // ---- Any thread.

  bool is_bounded() const noexcept { return bounded_; }
  std::uint64_t queued() const noexcept { return queued_.load(std::memory_order_relaxed); }
  /// Senders may enter.
  bool is_open(std::memory_order order) const noexcept { return gate_.load(order) == gate::open; }
  /// On the agent's loop: it is open, and there is always room.
  bool takes_all() const noexcept { return is_open(std::memory_order_relaxed) && !bounded_; }
  /// The error of messages that it refuses.
  errc refusal_code() const noexcept {
    return gate_.load(std::memory_order_relaxed) == gate::crashed ? errc::agent_crashed
                                                                  : errc::agent_stopped;
  }
  /// Refuses senders from now on, but not what they sent earlier.
  void announce_stop() noexcept {
    gate open = gate::open;
    gate_.compare_exchange_strong(open, gate::stop_posted, std::memory_order_acq_rel);
  }
  /// Its policy is drop_oldest.
  bool drops_oldest() const noexcept;
  /// Takes a place; false: there is none. True also if it counts no places.
  bool reserve() noexcept;
  /// Takes a place in the line, whether or not there is room.
  void reserve_in_line() noexcept;
  void give_back_place() noexcept;

  // ---- The gate, on the agent's loop.

  /// Messages that arrive enter.
  bool accepts() const noexcept {
    return gate_.load(std::memory_order_relaxed) <= gate::stop_posted;
  }
  /// There was nothing to stop.
  void withdraw_stop() noexcept {
    if (accepts()) gate_.store(gate::open, std::memory_order_relaxed);
  }
  void open() noexcept { gate_.store(gate::open, std::memory_order_release); }
  void close(errc code) noexcept {
    gate_.store(code == errc::agent_crashed ? gate::crashed : gate::stopped,
                std::memory_order_release);
  }

  // ---- The list.

  bool empty() const noexcept { return head_ == nullptr; }
  /// Appends it and returns the new length.
  std::uint64_t append(envelope& e) noexcept;
  /// Takes out the first message, but does not give back its place. REQUIRES: not empty.
  envelope& pop() noexcept;
  /// As pop, if the policy is drop_oldest and the mailbox is full; otherwise null.
  envelope* pop_excess() noexcept;
  static constexpr std::uint64_t first_alarm = 10'000;
  /// Whether an unbounded mailbox of this length is to be reported: at `first_alarm` messages, and
  /// whenever that doubles, once until it is empty again.
  bool is_alarming(std::uint64_t length) noexcept;

  /// Sets the stop mark, unless the list is empty. REQUIRES: empty, or get_extra() is not null.
  void mark_stop() noexcept;
  bool is_marked() const noexcept { return marked_; }
  void forget_mark() noexcept { marked_ = false; }

  /// All of the list is old mail. REQUIRES: get_extra() is not null.
  void count_old() noexcept;
  /// Nothing is old mail any more.
  void forget_old() noexcept { counts_old_ = false; }
  /// Takes out old mail, or of it only the calls, gives back the places, and returns it, oldest
  /// first. REQUIRES: get_extra() is not null.
  envelope* take_old(bool calls_only) noexcept;

  /// REQUIRES: get_extra() is not null.
  void set_aside(envelope& e) noexcept;
  envelope* take_set_aside() noexcept;

  // ---- The line. REQUIRES: get_extra() is not null.

  bool has_line() const noexcept;
  void enter_line(envelope& e) noexcept;
  void leave_line(envelope& e) noexcept;
  /// Takes the first message out of the line, with its place, if there is room for it in the list.
  /// `ticket` receives its accepted ticket, if any, to be notified when the message is in the list.
  envelope* admit(room_ticket*& ticket) noexcept;
  /// Takes the first message out of the line and gives back its place. Null: the line is empty.
  envelope* take_from_line() noexcept;

 private:
  enum class gate : std::uint8_t { open, stop_posted, stopped, crashed };

  void link(envelope& e) noexcept;
  void leaves_marked_list(const envelope& e) noexcept;
  void sweep_line() noexcept;

  std::atomic<extra*> extra_{nullptr};
  envelope* head_ = nullptr;
  envelope* tail_ = nullptr;
  std::atomic<std::uint64_t> queued_{0};
  std::atomic<gate> gate_{gate::open};
  const bool bounded_;
  std::uint8_t alarms_ : 6 = 0;  // mailbox_high events since it was empty
  std::uint8_t marked_ : 1 = 0;
  std::uint8_t counts_old_ : 1 = 0;
};

/// The sender or caller no longer waits for it.
bool is_abandoned(const envelope& e) noexcept;
/// Destroys an abandoned message.
void discard(envelope& e) noexcept;
/// Takes the first message off a chain of messages that left a mailbox.
envelope& next_of(envelope*& chain) noexcept;

}  // namespace weir::detail
