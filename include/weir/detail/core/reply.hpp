// SPDX-License-Identifier: MIT
// A wait for an answer that another thread gives.
//
// Two sides share a reply. The *asker* is a wait or a future; it lives on one loop, its home. The
// *answerer* is whatever holds the request: a queue, another loop, a thread; one party at a time.
// The phase says who owns the reply, so it needs no count of owners:
//
//   idle ---ask---> waiting ---claim----> answered ---arrive---> idle
//     ^                |  \---abandon---> abandoned
//     `----decline-----'
//
//   idle       the asker: nothing was asked, or it was taken back, or the answer has arrived
//   waiting    both sides
//   answered   the message in flight to the home loop
//   abandoned  the answerer: the asker has left
//
// Invariants:
// 1. `waiting` ends once: claim, abandon and decline are compare-exchanges from it. A side that
//    loses does not touch what the other side owns now. (`take_back` is a plain store: the asker
//    has removed the request from the answerer, by its lock or on its loop.)
// 2. The answerer writes the answer between `claim` and `answer`, and does not touch the reply
//    afterwards.
// 3. `asker_` and `due_` are used on the home loop only.
// 4. The loop is not deadlocked while an answer of another loop or thread is due: `ask` announces
//    it, and arrival, abandonment and detachment end it.
//
// Why it is freed exactly once, by `dispose`:
// - In `idle` only the asker refers to it; `leave` frees it.
// - `leave` and `abandon` in `waiting`: the answerer is the only owner. It learns that from `claim`
//   or `decline`, which return false once, and frees it.
// - In `answered` the message owns it. The asker may leave (`detach`) before it arrives; all of
//   that happens on the home loop, so either the arrival finds an asker, which owns the reply from
//   then on, or it finds none and frees it. If the home loop has ended, the message is refused, and
//   frees it: a wait does not outlive its loop.
// - Where that is not enough the object is counted, the reply is one of its owners, and `dispose`
//   releases: a future may outlive its loop (`stop`), several resumers share one suspend, and other
//   messages of a remote operation may be in flight.
//
// Why the memory orders suffice: the compare-exchanges are acq_rel. Whatever the asker wrote before
// `ask` or `abandon` is visible to the answerer that reads the phase; what the answerer wrote
// before `decline` is visible to the asker that finds `idle`; the answer itself is published by the
// inbox.
//
// Costs: one compare-exchange for an answer, one for an asker that leaves early, none for an asker
// that gets its answer. An answerer whose asker never abandons, but only detaches, may skip
// `claim`. A reply is a part of the request: it allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/message.hpp>

namespace weir::detail {

class door;

/// An answer that a loop expects from another loop or thread: while one is due, an idle loop is not
/// deadlocked. On that loop only.
class answer_due {
 public:
  answer_due() noexcept = default;
  answer_due(const answer_due&) = delete;
  answer_due& operator=(const answer_due&) = delete;
  ~answer_due() { settle(); }
  explicit operator bool() const noexcept { return at_ != nullptr; }
  /// On the running loop, or on `at`. Once is enough, however many answers are due.
  void expect() noexcept;
  void expect(loop& at) noexcept;
  /// The answer has arrived, or is no longer awaited.
  void settle() noexcept;
  /// The loop has ended. Any thread.
  void forget() noexcept { at_ = nullptr; }

 private:
  loop* at_ = nullptr;
};

/// The type-independent part of a reply. See the top of this file.
class reply {
 public:
  enum class phase : std::uint8_t { idle, waiting, answered, abandoned };

  reply(const reply&) = delete;
  reply& operator=(const reply&) = delete;

  // ---- The answerer, on any thread.

  /// Decides that it will be answered. False: it is abandoned, and now belongs to the caller.
  bool claim() noexcept { return leave_waiting(phase::answered); }
  /// Gives it back to the asker without an answer. False: as `claim`.
  bool decline() noexcept { return leave_waiting(phase::idle); }
  bool is_waiting() const noexcept {
    return phase_.load(std::memory_order_acquire) == phase::waiting;
  }
  bool is_abandoned() const noexcept {
    return phase_.load(std::memory_order_acquire) == phase::abandoned;
  }

  // ---- The asker, on its loop.

  /// Whether it belongs to the asker alone.
  bool is_idle() const noexcept { return phase_.load(std::memory_order_acquire) == phase::idle; }
  /// Whether the answer was given and has not arrived.
  bool in_flight() const noexcept {
    return phase_.load(std::memory_order_acquire) == phase::answered;
  }
  /// The door of the asker's loop; null: nothing was asked.
  const std::shared_ptr<door>& home() const noexcept { return home_; }
  /// Whether this thread runs the asker's loop.
  bool is_home() const noexcept { return serial_ == current_loop_serial(); }

 protected:
  reply() noexcept = default;
  ~reply() = default;

  /// `elsewhere`: another loop or thread may answer.
  void open(bool elsewhere) noexcept;
  void settle() noexcept {
    if (due_) [[unlikely]]
      settle_now();
  }
  bool leave_waiting(phase next) noexcept {
    phase seen = phase::waiting;
    return phase_.compare_exchange_strong(seen, next, std::memory_order_acq_rel,
                                          std::memory_order_acquire);
  }
  /// The asker leaves. Returns the phase before.
  phase forsake() noexcept;
  void set_phase(phase now) noexcept { phase_.store(now, std::memory_order_relaxed); }
  void post_home(message& carrier) noexcept;
  bool is_due_here() const noexcept { return due_ && is_home(); }
  /// This loop expects one answer less.
  static void no_longer_due() noexcept;

 private:
  void settle_now() noexcept;

  std::shared_ptr<door> home_;
  std::uint32_t serial_ = 0;  // of the asker's loop; that of an inner loop differs from its door's
  std::atomic<phase> phase_{phase::idle};
  bool due_ = false;
};

/// A message that frees itself.
struct reply_carrier : message {
  virtual void dispose() noexcept = 0;

 protected:
  ~reply_carrier() = default;
};

/// A reply to `Asker`, whose `answered()` is called when the answer has arrived. `Carrier` is the
/// message that brings it home; before that it may be another message, e.g. one to an agent.
template <class Asker, class Carrier = reply_carrier>
class reply_to : public Carrier, public reply {
 public:
  // ---- The asker, on its loop.

  /// REQUIRES: it is idle.
  void ask(Asker& who, bool elsewhere = true) noexcept {
    asker_ = &who;
    open(elsewhere);
  }
  /// Leaves it to the answerer. False: the answer is in flight, and the asker stays.
  bool abandon() noexcept {
    const bool was_due = is_due_here();  // read now: once abandoned, the answerer may free it
    if (!leave_waiting(phase::abandoned)) return false;
    if (was_due) no_longer_due();
    return true;
  }
  /// The asker has removed the request from the answerer.
  void take_back() noexcept {
    detach();
    set_phase(phase::idle);
  }
  /// The asker leaves; what the answerer sends is freed on arrival.
  void detach() noexcept {
    asker_ = nullptr;
    settle();
  }
  /// Whether the answer is still awaited.
  bool is_asked() const noexcept { return asker_ != nullptr; }
  /// The end of the asker, in any phase. Returns the phase before.
  phase leave() noexcept {
    detach();
    const phase left = forsake();
    if (left == phase::idle) this->dispose();
    return left;
  }

  // ---- The answerer, on any thread.

  /// REQUIRES: it was claimed. At home the answer arrives at once, elsewhere by a message.
  void answer() noexcept {
    if (is_home()) return arrive();
    post_home(*this);
  }
  /// The same, always by a message, and without `claim` if the asker never abandons it.
  void answer_by_message() noexcept {
    set_phase(phase::answered);
    post_home(*this);
  }

  void deliver(loop& here) noexcept override {
    if constexpr (!std::is_same_v<Carrier, reply_carrier>) {
      if (!in_flight()) return Carrier::deliver(here);
    }
    arrive();
  }
  void refuse() noexcept override {
    if constexpr (!std::is_same_v<Carrier, reply_carrier>) {
      if (!in_flight()) return Carrier::refuse();
    }
    this->dispose();
  }

 protected:
  using Carrier::Carrier;
  ~reply_to() = default;

 private:
  void arrive() noexcept {
    settle();
    set_phase(phase::idle);
    if (Asker* const who = std::exchange(asker_, nullptr)) return who->answered();
    this->dispose();
  }

  Asker* asker_ = nullptr;
};

}  // namespace weir::detail
