// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include <weir/detail/remote.hpp>
#include <weir/detail/run_region.hpp>
#include <weir/local.hpp>

#include "core/door.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

struct remote_message final : message {
  enum class sort : std::uint8_t { start, cancel, force, answer };
  remote_message(remote_op& o, sort what) noexcept : of(&o), kind(what) {}
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override;
  remote_op* of;
  sort kind;
};

/// What the two sides of a remote operation share besides its result.
struct remote_parts {
  explicit remote_parts(remote_op& of) noexcept
      : start(of, remote_message::sort::start),
        cancel(of, remote_message::sort::cancel),
        force(of, remote_message::sort::force),
        answer(of, remote_message::sort::answer) {}

  remote_message start;
  remote_message cancel;
  remote_message force;  // the grace is over
  remote_message answer;

  // Written by the caller before it posts.
  door_ref home;   // the caller's; null: nobody waits for an answer
  door_ref there;  // the loop that runs it
  binding* locals = nullptr;
  trail_ref trail;  // what the caller works for, and its place among the locals
  binding carried;
  std::optional<time_point> deadline;
  std::source_location site;
  scope_id caller = 0;             // the scope around the caller
  std::vector<run_place> callers;  // of the operation that the caller is part of
  reason_ref why;                  // of the cancellation
  bool forced = false;

  // The caller's loop only.
  remote_wait_base* waiter = nullptr;

  // The running loop only.
  context* running = nullptr;
  const fiber* runs_in = nullptr;
  reason_ref heard;  // why the caller asked for it to end
};

/// Holds an operation that was taken over for running: it is answered, whatever happens.
class remote_run {
 public:
  explicit remote_run(remote_ref op) noexcept : op_(std::move(op)) {}
  remote_run(remote_run&& other) noexcept = default;
  remote_run& operator=(remote_run&&) = delete;
  ~remote_run();
  remote_op& op() const noexcept { return *op_.get(); }
  /// It has ended as `how` says, and its value is in its result. Empties `how`.
  void finish(outcome<void>& how);

 private:
  remote_ref op_;
};

/// Around the operation on the loop that runs it: its caller's deadline and locals. The deadline is
/// enforced by the caller, who then asks for a cancellation.
struct remote_region final : limited_region {
  explicit remote_region(remote_op& op);
  ~remote_region();
  remote_op& of;
};

/// Runs it here; the whole life of a remote child.
task<> run_remote(remote_run run);

/// Sends the answer home, or drops it if nobody waits.
void answer(remote_ref op) noexcept;
/// Notes what an operation inherits of `caller`, which has a time limit of its own directly around
/// it. `clock`: that of the loop which will run it.
void inherit(remote_parts& parts, const wait& caller, time_point limit, const void* clock);
/// Who waits on other loops for the operation that `c` is part of: the nearest first.
std::vector<run_place> callers_of(const context& c);
/// Asks the running side to stop; `force`: without grace, also if it was asked before.
void request_cancel(remote_op& op, reason_ref why, bool force) noexcept;
/// Counts what arrived for somebody who was cancelled meanwhile.
void emit_unseen(const outcome_base& result, std::string_view object) noexcept;

}  // namespace weir::detail
