// SPDX-License-Identifier: MIT
// The part of a loop that other threads may hold: its inbox, its bell and its counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/fork_watch.hpp"
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

/// An eventfd that wakes a sleeping loop. A forked child gets its own under the same number, so it
/// neither sends nor consumes the wake-ups of its parent.
class bell final : public fork_watch {
 public:
  explicit bell(const std::string& loop_name);
  bell(const bell&) = delete;
  bell& operator=(const bell&) = delete;
  ~bell();
  /// -1: a forked child that could not create one.
  int number() const noexcept { return number_; }
  void in_child() noexcept override;

 private:
  int number_ = -1;
};

/// How other threads reach a loop: they hold its door instead of the loop. Outlives the loop.
class door {
 public:
  door(std::string name, std::uint32_t serial, bool simulated, const void* clock = nullptr);
  door(const door&) = delete;
  door& operator=(const door&) = delete;
  ~door();

  /// Any thread. False if the loop has ended; the message was then refused.
  bool post(message& m) noexcept;
  /// Any thread, and signal handlers: wakes a sleeping loop.
  void wake() noexcept;
  /// For simulated loops: whether `wake` was called since the last call.
  bool rang() noexcept { return rang_.exchange(false, std::memory_order_acq_rel); }
  /// The loop's thread: sleeps until a message or a `wake` comes, or `nanoseconds` have passed
  /// (negative: without limit).
  void sleep(std::int64_t nanoseconds) noexcept;

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
  std::atomic<bool> rang_{false};
  std::optional<bell> bell_;  // a simulated loop never sleeps, so it needs none
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
