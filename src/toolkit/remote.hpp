// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include <weir/detail/core/run_region.hpp>
#include <weir/detail/toolkit/remote.hpp>
#include <weir/local.hpp>

#include "core/door.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

struct remote_message final : message {
  enum class kind : std::uint8_t { start, cancel, force };
  remote_message(remote_op& o, kind k) noexcept : of(&o), what(k) {}
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override;
  remote_op* of;
  kind what;
};

/// The caller's wait for the answer. The caller never abandons it: it asks the other side to stop,
/// and waits for the confirmation.
struct remote_answer final : reply_to<remote_wait_base> {
  explicit remote_answer(remote_op& o) noexcept : of(&o) {}
  /// Drops the reference of the answer.
  void dispose() noexcept override { of->release(); }
  remote_op* of;
};

/// Shared by the two sides of a remote operation, besides its result.
struct remote_extra {
  explicit remote_extra(remote_op& of) noexcept
      : start(of, remote_message::kind::start),
        cancel(of, remote_message::kind::cancel),
        force(of, remote_message::kind::force),
        answer(of) {}

  remote_message start;
  remote_message cancel;
  remote_message force;  // the grace is over
  remote_answer answer;  // not asked: no answer is sent

  // Written before the message that needs it is posted.
  door_ref there;  // the loop that runs it
  binding* locals = nullptr;
  trail_ref trail;  // the caller's, carried among the locals
  binding carried;
  std::optional<time_point> deadline;
  std::source_location site;
  scope_id caller = 0;             // the scope around the caller
  std::vector<run_place> callers;  // of the operation that contains the caller
  reason_ref why;                  // the reason of the cancellation
  bool forced = false;

  // Used on the running loop only.
  context* running = nullptr;
  const fiber* runs_in = nullptr;
  reason_ref heard;  // the reason of the caller's cancellation, once received
};

/// Holds a running operation; unless finish() has answered, the destructor sends errc::loop_gone.
class remote_run {
 public:
  explicit remote_run(remote_ref op) noexcept : op_(std::move(op)) {}
  remote_run(remote_run&& other) noexcept = default;
  remote_run& operator=(remote_run&&) = delete;
  ~remote_run();
  remote_op& op() const noexcept { return *op_.get(); }
  /// Answers with `how`; a value is already in the operation's result. Empties `how`.
  void finish(outcome<void>& how);

 private:
  remote_ref op_;
};

/// The region around the operation on the loop that runs it, with its caller's deadline and locals.
/// The caller enforces the deadline and then requests a cancellation.
struct remote_region final : limited_region {
  explicit remote_region(remote_op& op);
  ~remote_region();
  remote_op& of;
};

/// Runs the operation here; the body of a remote child.
task<> run_remote(remote_run run);

/// Sends the answer to the caller's loop, or drops it without a caller.
void answer(remote_ref op) noexcept;
/// Stores what an operation inherits from `caller`. `limit`: the caller's own time limit directly
/// around it. `clock`: that of the loop that will run it.
void inherit(remote_extra& extra, const wait& caller, time_point limit, const void* clock);
/// The callers on other loops of the operation that contains `c`, nearest first.
std::vector<run_place> callers_of(const context& c);
/// Cancels the running side; `force`: without grace, even after an earlier request.
void request_cancel(remote_op& op, reason_ref why, bool force) noexcept;
/// Emits the event for a result whose caller was cancelled meanwhile.
void emit_unseen(const outcome_base& result, std::string_view object) noexcept;

}  // namespace weir::detail
