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

/// Numbers that the loop writes and anybody may read: single writer, relaxed.
class counter {
 public:
  void add(std::int64_t by) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  std::int64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// An eventfd that wakes a sleeping loop. A forked child gets one of its own under the same number:
/// what rings there, or is read there, is not its parent's.
class bell final : public fork_watch {
 public:
  explicit bell(const std::string& loop_name);
  bell(const bell&) = delete;
  bell& operator=(const bell&) = delete;
  ~bell();
  /// -1: in a child that could not have one.
  int number() const noexcept { return number_; }
  void in_child() noexcept override;

 private:
  int number_ = -1;
};

/// Outlives its loop: whoever wants to reach the loop holds the door, never the loop.
class door {
 public:
  door(std::string name, std::uint32_t serial, bool simulated, const void* clock = nullptr);
  door(const door&) = delete;
  door& operator=(const door&) = delete;
  ~door();

  /// Any thread. False if the loop has ended; the message was then refused.
  bool post(message& m) noexcept;
  /// Any thread, and signal handlers: makes a sleeping loop look round.
  void ring() noexcept;
  /// Of a simulated loop, which sleeps without a thread: whether it rang since this was last asked.
  bool rang() noexcept { return rang_.exchange(false, std::memory_order_acq_rel); }
  /// The loop's thread: sleeps until something is posted, it rings, or `nanoseconds` have passed
  /// (negative: without limit).
  void sleep(std::int64_t nanoseconds) noexcept;

  const std::string& name() const noexcept { return name_; }
  std::uint32_t serial() const noexcept { return serial_; }
  bool simulated() const noexcept { return simulated_; }
  /// See environment::clock; only to be compared.
  const void* clock() const noexcept { return clock_; }

  inbox messages;
  counter scopes;
  counter fibers;
  counter timers;
  std::atomic<std::int64_t> kept_alive{0};       // keep_alive guards, any thread
  std::atomic<int> interrupts{0};                // SIGINT and SIGTERM seen, for this loop
  std::atomic<std::int64_t> remote_children{0};  // asked for and not answered yet
  std::atomic<std::uint64_t> late{0};            // answers of resumers that came too late
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

/// The process's table of doors.
struct door_table {
  static door_ref add(std::string name, bool simulated, const void* clock, std::uint32_t& index);
  static void remove(std::uint32_t index) noexcept;
  /// Null if that loop has ended. Of an inner loop `find_serial` gives the door of its host.
  static door_ref find(std::uint32_t index, std::uint32_t serial) noexcept;
  static door_ref find_serial(std::uint32_t serial) noexcept;
  static std::vector<door_ref> all();
  /// The serial number of an inner loop, which has no door of its own but that of its host.
  static std::uint32_t add_inner(const door_ref& host);
  static void remove_inner(std::uint32_t serial) noexcept;
  static bool is_inner(std::uint32_t serial) noexcept;
};

}  // namespace weir::detail
