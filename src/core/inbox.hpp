// SPDX-License-Identifier: MIT
// The inbox of a loop: messages from any thread, taken by the loop's thread.
//
// An inbox is one atomic pointer: null (empty, the loop is awake), the newest of a list of
// messages, `sleeping` (empty, the loop is about to sleep or asleep) or `closed` (final).
//
// Why the memory orders suffice:
// - post() publishes a message with a release CAS; take() acquires with its exchange. Every message
//   in the taken list was pushed by a CAS of the same variable, and each CAS that put a newer
//   message on top continues the release sequence (they are read-modify-writes), so the one acquire
//   of the head makes all of them visible.
// - begin_sleep() replaces null by `sleeping`. If a message came first, the CAS fails and the loop
//   takes the message. If `sleeping` came first, the post that replaces it (exactly one, because it
//   is a CAS on that value) makes the one wake-up; so no wake-up is lost and there is no second
//   flag, hence no store-load reordering between two variables to fence against.
// - close() exchanges in `closed` with acq_rel: acquire for the messages it takes over, release so
//   that a refused sender sees everything the loop did before it ended.
// - Order: the list is newest first; take() reverses it, so messages of one thread arrive in the
//   order in which that thread posted them.
#pragma once

#include <atomic>
#include <cstdint>

#include <weir/detail/core/message.hpp>

namespace weir::detail {

class inbox {
 public:
  enum class posted : std::uint8_t { awake, was_sleeping, closed };

  inbox() noexcept = default;
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  /// Any thread. `closed`: the message was not taken and still belongs to the caller.
  posted post(message& m) noexcept {
    message* seen = head_.load(std::memory_order_relaxed);
    do {
      if (seen == closed_mark()) {
        head_.load(std::memory_order_acquire);  // pairs with close(): what the loop did is visible
        return posted::closed;
      }
      m.next = seen == sleeping_mark() ? nullptr : seen;
    } while (!head_.compare_exchange_weak(seen, &m, std::memory_order_release,
                                          std::memory_order_relaxed));
    return seen == sleeping_mark() ? posted::was_sleeping : posted::awake;
  }

  /// Any thread; final once true.
  bool is_closed() const noexcept { return head_.load(std::memory_order_acquire) == closed_mark(); }

  // The rest is for the loop's thread only.

  bool has_messages() const noexcept {
    const message* seen = head_.load(std::memory_order_relaxed);
    return seen != nullptr && seen != sleeping_mark();
  }
  /// All posted messages, oldest first.
  message* take() noexcept {
    if (!has_messages()) return nullptr;
    return in_order(head_.exchange(nullptr, std::memory_order_acquire));
  }
  /// Announces sleep, also if that was announced before. False if there is a message.
  bool begin_sleep() noexcept {
    message* seen = head_.load(std::memory_order_relaxed);
    if (seen == sleeping_mark()) return true;
    return seen == nullptr &&
           head_.compare_exchange_strong(seen, sleeping_mark(), std::memory_order_acquire);
  }
  /// Awake again, whatever the reason.
  void end_sleep() noexcept {
    message* asleep = sleeping_mark();
    head_.compare_exchange_strong(asleep, nullptr, std::memory_order_acquire);
  }
  /// Accepts no further message. Returns the remaining ones.
  message* close() noexcept {
    return in_order(head_.exchange(closed_mark(), std::memory_order_acq_rel));
  }

 private:
  // The marks are addresses that no message has.
  message* sleeping_mark() const noexcept {
    return reinterpret_cast<message*>(reinterpret_cast<std::uintptr_t>(this) + 1);
  }
  message* closed_mark() const noexcept {
    return reinterpret_cast<message*>(reinterpret_cast<std::uintptr_t>(this) + 2);
  }
  message* in_order(message* newest) const noexcept {
    message* ordered = nullptr;
    while (newest != nullptr && newest != sleeping_mark() && newest != closed_mark()) {
      message* older = newest->next;
      newest->next = ordered;
      ordered = newest;
      newest = older;
    }
    return ordered;
  }

  alignas(64) std::atomic<message*> head_{nullptr};
};

}  // namespace weir::detail
