// SPDX-License-Identifier: MIT
// The type-independent part of a channel.
//
// A bounded ring, filled by any thread and emptied by one loop. Why it is correct:
// 1. A position is reserved by advancing `tail_`, which requires `tail - head < capacity`; so a
//    position has one writer, and its slot is free: the reader has left it, and the writer knows
//    that by acquiring `head_`, or `seen_head_`, which a sender stored after acquiring `head_`.
// 2. The closed flag is part of `tail_`, so no position is reserved after it is set; the reader has
//    reached the end when the flag is set and it has taken everything up to `tail_`.
// 3. No wake-up is lost: the reader sets `receiver_waits_` and then checks the ring, the writer
//    publishes and then checks whether the reader waits; likewise for the room that the reader
//    makes and `senders_wait_`. All four are sequentially consistent, so at least one side sees the
//    other. The thread that clears `receiver_waits_` owns the one message to the reader.
// 4. Senders that wait for room are in a list under a lock. While the list is not empty, no other
//    sender reserves; only the reader admits them, oldest first, by reserving for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>

#include <weir/detail/core/counted_ref.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>

namespace weir {

struct channel_options {
  weir::name name{};
};

namespace detail {

class channel_core;
class send_wait_base;
class send_envelope;
struct blocked_thread;

/// Tag: a thread waits, not a wait of a loop.
struct this_thread_t {};
/// Waits until `e` is admitted, and takes ownership of it; throws if it is refused, or after
/// `limit`.
void wait_for_room(send_envelope& e, duration limit);
[[noreturn]] void raise_send_closed(const channel_core* channel);
/// errc::would_deadlock if a loop runs on this thread.
void require_no_loop(const char* what, const char* instead);

/// A sender that waits for room: a wait, or a thread, which owns it when it was answered or left.
class send_envelope : public reply_to<send_wait_base>, public frame_allocated {
 public:
  explicit send_envelope(channel_core& to);
  send_envelope(channel_core& to, this_thread_t);
  virtual ~send_envelope();
  void dispose() noexcept override { delete this; }

 private:
  friend class channel_core;
  friend class send_wait_base;
  friend void wait_for_room(send_envelope& e, duration limit);
  channel_core* channel_;
  std::unique_ptr<blocked_thread> thread_;  // instead of a wait
  bool refused_ = false;                    // the answer; written before it is sent
  std::exception_ptr error_;                // its value could not be moved
  bool linked_ = false;                     // this and the following: under the channel's lock
  send_envelope* previous_ = nullptr;
  send_envelope* next_ = nullptr;
};

/// The type-independent part of a waiting send.
class send_wait_base : public wait {
 public:
  cancel_result withdraw() noexcept override;
  bool in_line() const noexcept override { return true; }
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return refused_ || error_ != nullptr; }
  void poll_failed(std::exception_ptr e) noexcept { error_ = std::move(e); }
  /// Called when the answer has arrived.
  void answered() noexcept;

 protected:
  send_wait_base() noexcept = default;
  ~send_wait_base();
  bool refuse() noexcept { return refused_ = true; }
  send_envelope* envelope() const noexcept { return envelope_; }
  void keep(send_envelope* made) noexcept { envelope_ = made; }
  void start_waiting() noexcept;
  [[noreturn]] void raise_problem(const channel_core* channel) const;

 private:
  send_envelope* envelope_ = nullptr;
  bool refused_ = false;
  std::exception_ptr error_;
};

/// Its owners: all senders together, the receiver, messages in flight, waiting senders.
class channel_core : public counted<channel_core> {
 public:
  enum class room : std::uint8_t { yes, full, closed };

  channel_core(std::int64_t capacity, const channel_options& options);

  // Any thread.

  void add_sender() noexcept { senders_.fetch_add(1, std::memory_order_relaxed); }
  void drop_sender() noexcept;
  /// Closes the channel for all senders.
  void end_sending() noexcept;
  bool is_closed() const noexcept { return (tail_.load(std::memory_order_acquire) & 1U) != 0; }

  // The receiver's loop.

  void add_consumer(linked_wait& w) noexcept;
  void remove_consumer(linked_wait& w) noexcept;
  void describe(dump_line& line, const char* what) const;
  std::string_view name() const noexcept { return name_.view(); }
  bool is_home() const noexcept { return home_.is_here(); }
  void settle_home();
  [[noreturn]] void raise_closed() const;

 protected:
  virtual ~channel_core();

  /// Reserves a position of the ring for a sender that is not waiting.
  room reserve(std::uint64_t& position) noexcept {
    if (senders_wait_.load(std::memory_order_relaxed)) [[unlikely]]
      return is_closed() ? room::closed : room::full;
    return reserve_first(position);
  }
  void publish(std::atomic<std::uint64_t>& turn, std::uint64_t value) noexcept {
    turn.store(value, std::memory_order_seq_cst);
    if (receiver_waits_.load(std::memory_order_seq_cst)) [[unlikely]]
      call_receiver();
  }
  /// Moves the value of a waiting sender into the ring; returns the error of the move, if any.
  virtual std::exception_ptr accept(send_envelope& from, std::uint64_t position) noexcept = 0;

  wait_list& consumers() noexcept { return consumers_; }
  /// The first position that is not reserved.
  std::uint64_t end_position() const noexcept { return tail_.load(std::memory_order_acquire) >> 1; }
  bool has_ended(std::uint64_t next) const noexcept {
    return tail_.load(std::memory_order_seq_cst) == next * 2 + 1;
  }
  /// The receiver has taken everything before `next`.
  void taken(std::uint64_t next) noexcept {
    head_.store(next, std::memory_order_seq_cst);
    if (senders_wait_.load(std::memory_order_seq_cst)) [[unlikely]]
      admit_waiting();
  }
  /// Requests a message when there is a value or the end. False if there is one now.
  bool will_be_called() noexcept;
  virtual bool has_something() const noexcept = 0;
  /// Delivers values to the waiting consumers.
  virtual void serve() noexcept = 0;
  /// Aborts if the receiver must not be destroyed now or on this thread.
  void check_end() const noexcept;
  static bool may_put_back() noexcept;
  /// Yields to other threads, not to other fibers.
  static void let_others_run() noexcept;

  std::uint64_t slot_count() const noexcept { return slots_; }
  object_name self() const noexcept { return {"channel", name_.view()}; }
  bool serving_ = false;  // prevents recursion: delivering makes room, which admits senders, which
                          // call for a receiver

 private:
  friend class counted<channel_core>;
  friend class send_wait_base;
  friend class send_envelope;
  friend void wait_for_room(send_envelope& e, duration limit);
  struct call_message;
  struct shared;

  room reserve_first(std::uint64_t& position) noexcept {
    std::uint64_t seen = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if ((seen & 1U) != 0) return room::closed;
      const std::uint64_t at = seen >> 1;
      if (is_full(at, seen_head_.load(std::memory_order_acquire))) {
        const std::uint64_t head = head_.load(std::memory_order_seq_cst);
        seen_head_.store(head, std::memory_order_release);
        if (is_full(at, head)) return room::full;
      }
      if (tail_.compare_exchange_weak(seen, seen + 2, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        position = at;
        return room::yes;
      }
    }
  }
  // `head` may be newer than `tail`, so their distance is signed.
  bool is_full(std::uint64_t tail, std::uint64_t head) const noexcept {
    return static_cast<std::int64_t>(tail - head) >= capacity_;
  }
  void call_receiver() noexcept;
  void call_refused() noexcept;
  void called() noexcept;
  void admit_waiting() noexcept;
  /// The next waiting sender that fits, with its position.
  send_envelope* admit_one(std::uint64_t& position) noexcept;
  room enter(send_envelope& e) noexcept;
  bool leave(send_envelope& e) noexcept;
  void link(send_envelope& e) noexcept;
  void unlink(send_envelope& e) noexcept;
  void answer(send_envelope& e) noexcept;

  // Written by senders.
  alignas(64) std::atomic<std::uint64_t> tail_{0};  // 2 * the first free position; odd: closed
  std::atomic<std::uint64_t> seen_head_{0};         // `head_`, as last seen by a sender
  // Written by the receiver.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  // Read by both, seldom written.
  alignas(64) std::atomic<bool> receiver_waits_{false};
  std::atomic<bool> senders_wait_{false};
  const std::int64_t capacity_;
  const std::uint64_t slots_;
  std::atomic<std::uint32_t> senders_{1};  // including waiting ones
  std::unique_ptr<shared> shared_;
  // The receiver's loop only.
  wait_list consumers_;
  home home_;
  answer_due due_;         // while a consumer waits
  bool call_due_ = false;  // it has requested a message, and neither cancelled nor received it
  kept_name name_;
};

/// The slow path of a receiver's check: it is empty (errc::invalid_argument) or on another loop.
void require_receiver(channel_core* channel);

}  // namespace detail
}  // namespace weir
