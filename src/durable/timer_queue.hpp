// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::detail {

/// A time at which the engine does something for a run: a run_timer or, while the run is not in
/// memory, the alarm of a durable_run.
struct queued_timer {
  std::uint64_t due = 0;    // the wall time in nanoseconds
  std::uint64_t order = 0;  // among equal times: the place of its command in the journal
  std::uint32_t place = 0;  // in the queue, from 1; 0: it is not in it
  bool limit = false;       // of an operation: it fires after the others of its time
  bool is_alarm = false;    // of a durable_run
  bool queued() const noexcept { return place != 0; }
};

/// The timers of all runs, in order: a binary heap. Of a timer it keeps one pointer, so that a
/// suspended run pays little for its alarm. Adding and removing are O(log n) and allocate only when
/// the heap grows.
class timer_queue {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  /// REQUIRES: !empty().
  queued_timer& first() const noexcept { return *heap_.front(); }
  void add(queued_timer& t);
  /// REQUIRES: t.queued().
  void remove(queued_timer& t) noexcept;
  void clear() noexcept;
  static bool before(const queued_timer& a, const queued_timer& b) noexcept;

 private:
  void put(queued_timer& t, std::size_t at) noexcept;
  void move_up(queued_timer& t, std::size_t at) noexcept;
  void move_down(queued_timer& t, std::size_t at) noexcept;

  std::vector<queued_timer*> heap_;
};

}  // namespace weir::detail
