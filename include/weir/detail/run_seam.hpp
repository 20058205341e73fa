// SPDX-License-Identifier: MIT
// Where the scheduler meets a durable run: what is journaled goes through here, on every engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::detail {

struct fiber;
struct timer_node;

/// A durable run, as its inner loop and the code in it see it. Everything that a run does is
/// repeated when it is replayed; what could come out otherwise is asked here.
///
/// Threads: that of its loop.
class run_seam {
 public:
  run_seam(const run_seam&) = delete;
  run_seam& operator=(const run_seam&) = delete;

  virtual std::string_view run_id() const noexcept = 0;

  // For the scheduler.
  /// A fiber was spawned by the running one; it has not begun.
  virtual void fiber_begins(fiber& f) = 0;
  virtual void fiber_ended(fiber& f) noexcept = 0;
  /// Arms a timer, as a command of the running fiber; `limit`: it is a deadline_node.
  virtual void arm_timer(timer_node& node, std::uint64_t when, bool limit) noexcept = 0;
  virtual void cancel_timer(timer_node& node) noexcept = 0;

 protected:
  run_seam() = default;
  ~run_seam() = default;
};

/// errc::not_journaled: `what` is shared with others, and a durable run uses it outside of a step.
/// REQUIRES: run_here.
[[noreturn]] void refuse_in_run(const char* what);
/// The file and line where the running code is.
std::string running_place();

}  // namespace weir::detail
