// SPDX-License-Identifier: MIT
// The part of a loop that other threads may hold: its inbox, its bell and its counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/bell.hpp"
#include "core/inbox.hpp"

namespace weir::detail {

/// A number that the loop writes and any thread may read: single writer, relaxed.
class counter {
 public:
  void add(std::int64_t by) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  std::int64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// How other threads reach a loop: they hold its door instead of the loop. Outlives the loop.
///
/// Why a message wakes a loop that sleeps: `sleep` puts the mark `sleeping` into the inbox before
/// it sleeps on the bell, and removes it afterwards. A message that came before the mark prevents
/// the sleep. The post that replaces the mark rings, and the bell keeps a ring until the loop takes
/// it; so the loop wakes, or does not fall asleep, also if it has put the mark and not yet looked
/// at the bell. Between the marks of two sleeps at most one post rings. A ring that comes late,
/// when the loop was woken by something else, ends the next sleep early: a turn with nothing to do.
/// `wake` alone rings without a message, for what the loop looks at in every turn.
class door {
 public:
  door(std::string name, std::uint32_t serial, bool simulated, const void* clock = nullptr);
  door(const door&) = delete;
  door& operator=(const door&) = delete;

  /// Any thread. False if the loop has ended; the message was then refused.
  bool post(message& m) noexcept;
  /// How many messages this thread has posted: for tests that count.
  static long posted_by_this_thread() noexcept { return posted_by_thread_; }
  /// Any thread, and signal handlers: wakes a sleeping loop.
  void wake() noexcept { bell_.ring(); }
  /// For simulated loops: whether `wake` was called since the last call.
  bool rang() noexcept { return bell_.heard(); }
  /// The loop's thread: sleeps until a message or a `wake` comes, or `nanoseconds` have passed
  /// (negative: without limit), or earlier for no reason; in `where`, unless that is null.
  void sleep(std::int64_t nanoseconds, parker* where = nullptr) noexcept;
  /// For a loop that sleeps in the event loop of another library, which watches `descriptor()`:
  /// from now on a message or a `wake` writes to that. Stays in force until then; calling it again
  /// changes nothing. False: a message or a wake-up is already there.
  bool begin_watch() noexcept { return messages.begin_sleep() && bell_.park(); }
  /// See bell::descriptor.
  int descriptor() { return bell_.descriptor(); }

  const std::string& name() const noexcept { return name_; }
  std::uint32_t serial() const noexcept { return serial_; }
  bool simulated() const noexcept { return simulated_; }
  /// See environment::clock; only for comparison.
  const void* clock() const noexcept { return clock_; }

  inbox messages;
  counter scopes;
  counter fibers;
  counter timers;
  std::atomic<std::int64_t> kept_alive{0};       // keep_alive guards, any thread
  std::atomic<int> interrupts{0};                // SIGINT and SIGTERM received for this loop
  std::atomic<std::int64_t> remote_children{0};  // requested and not answered yet
  std::atomic<std::uint64_t> late{0};            // resumer answers that came too late
  const std::thread::id thread = std::this_thread::get_id();

 private:
  std::string name_;
  std::uint32_t serial_;
  bool simulated_;
  const void* clock_;
  bell bell_;

  static inline constinit thread_local long posted_by_thread_ = 0;
};

using door_ref = std::shared_ptr<door>;

/// All doors of the process.
struct door_table {
  static door_ref add(std::string name, bool simulated, const void* clock, std::uint32_t& index);
  static void remove(std::uint32_t index) noexcept;
  /// Null if that loop has ended. For an inner loop `find_serial` returns the door of its host.
  static door_ref find(std::uint32_t index, std::uint32_t serial) noexcept;
  static door_ref find_serial(std::uint32_t serial) noexcept;
  static std::vector<door_ref> all();
  /// Returns a serial number for an inner loop, which shares the door of its host.
  static std::uint32_t add_inner(const door_ref& host);
  static void remove_inner(std::uint32_t serial) noexcept;
  static bool is_inner(std::uint32_t serial) noexcept;
};

}  // namespace weir::detail
