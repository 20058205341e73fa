// SPDX-License-Identifier: MIT
// Timers: intrusive nodes in a hierarchical wheel that is exact to the nanosecond.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/duration.hpp>

namespace weir::detail {

class chooser;

/// One timer; embedded in the object that waits for it. Arming and cancelling allocate nothing.
struct timer_node {
  timer_node() = default;
  timer_node(const timer_node&) = delete;
  timer_node& operator=(const timer_node&) = delete;

  bool armed() const noexcept { return next != nullptr; }

  timer_node* previous = nullptr;
  timer_node* next = nullptr;
  std::uint64_t when = 0;  // nanoseconds of the steady clock
};

/// A timer that is not a wait: a time limit. Fires after everything else at its instant has run, so
/// that a value that arrives at the same time wins.
struct deadline_node : timer_node {
  virtual void expired() noexcept = 0;
  std::uint32_t order = 0;  // among equal times, the lower one fires first
  bool counted = true;      // in live().timers

 protected:
  ~deadline_node() = default;
};

/// Eleven levels of 64 slots: level k holds the timers whose time first differs from `elapsed_`
/// in the k-th group of six bits.
///
/// Invariants:
/// 1. Every armed timer has `when >= elapsed_` (an earlier one was rounded up when it was armed).
/// 2. The slot of an armed timer is a function of its time and `elapsed_`: when `elapsed_` moves
///    into a slot, that slot's timers are moved down, and other slots do not change. So a timer
///    need not remember its slot, and timers of one time are always in one slot, in order of
///    arming.
/// 3. Timers of a lower level are due before those of any higher level, and within a level before
///    those of any higher slot; a slot of level 0 covers a single nanosecond.
/// Costs: arm and cancel O(1); each timer moves down at most ten levels.
class timer_wheel {
 public:
  /// `by_order`: among equal times deadlines fire by their `order` instead of in order of arming.
  explicit timer_wheel(bool by_order) noexcept;
  timer_wheel(const timer_wheel&) = delete;
  timer_wheel& operator=(const timer_wheel&) = delete;

  void arm(timer_node& node, std::uint64_t when) noexcept;
  void cancel(timer_node& node) noexcept;
  /// Removes one timer that is due at `now`, in order of time; null if there is none. Among equal
  /// times `order` chooses.
  timer_node* pop_due(std::uint64_t now, chooser* order = nullptr) noexcept;
  /// When to check again: exact if few timers are near, never later than the first timer. All bits
  /// set if there is no timer.
  std::uint64_t next_look() const noexcept;
  std::size_t size() const noexcept { return size_; }
  static constexpr std::uint64_t never = ~std::uint64_t{0};

 private:
  static constexpr std::size_t levels = 11;
  static constexpr std::size_t slots = 64;
  static constexpr std::size_t choice_limit = 8;

  bool first_slot(std::size_t& level, std::size_t& slot) const noexcept;
  std::uint64_t start_of(std::size_t level, std::size_t slot) const noexcept;
  std::size_t slot_of(std::uint64_t when) const noexcept;
  void place(timer_node& node) noexcept;
  void unlink(timer_node& node) noexcept;
  static timer_node* choose(timer_node& head, chooser& order) noexcept;
  void move_down(std::size_t level, std::size_t slot) noexcept;

  std::uint64_t elapsed_ = 0;
  std::size_t size_ = 0;
  bool by_order_;
  std::uint64_t occupied_[levels] = {};
  timer_node heads_[levels * slots];
};

constexpr std::uint64_t ticks(time_point t) noexcept {
  const auto n = t.time_since_epoch().count();
  return n < 0 ? 0 : static_cast<std::uint64_t>(n);
}

}  // namespace weir::detail
