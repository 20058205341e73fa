// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <weir/detail/core/run_region.hpp>
#include <weir/detail/toolkit/remote.hpp>
#include <weir/local.hpp>

#include "core/door.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

class pool_core;

/// What an operation inherits in addition if its caller works for another loop or for a run, or has
/// locals in a simulation.
struct remote_origin {
  trail_ref trail;                 // the caller's, carried among the locals
  binding carried;                 // the first of the locals; the others are in the caller's frames
  std::vector<run_place> callers;  // of the operation that contains the caller
};

/// Holds a running operation, of `on` or of a pool; unless finish() has answered, the destructor
/// answers with errc::loop_gone.
class remote_run {
 public:
  remote_run() noexcept = default;
  explicit remote_run(remote_op& op, pool_core* pool = nullptr) noexcept : op_(&op), pool_(pool) {}
  remote_run(remote_run&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)), pool_(other.pool_) {}
  remote_run& operator=(remote_run&& other) noexcept {
    std::swap(op_, other.op_);
    std::swap(pool_, other.pool_);
    return *this;
  }
  ~remote_run();
  explicit operator bool() const noexcept { return op_ != nullptr; }
  remote_op& op() const noexcept { return *op_; }
  /// Answers with the operation's result; leaves that to the destructor if the loop is ending.
  void finish() noexcept;

 private:
  void conclude(bool may_go_on) noexcept;
  remote_op* op_ = nullptr;
  pool_core* pool_ = nullptr;
};

/// The region around the operation on the loop that runs it, with its caller's deadline and locals.
/// The caller enforces the deadline and then requests a cancellation.
struct remote_region final : limited_region {
  explicit remote_region(remote_op& op);
  ~remote_region();
  /// Whether no operation has left traces: it may become the region of another one.
  bool is_clean() const noexcept;
  /// REQUIRES: it is clean, and has ended or `release` was called.
  void reuse(remote_op& op) noexcept;
  /// Starts the operation inside: the frame to run, or null if it has ended. Never throws.
  std::coroutine_handle<> start() noexcept;
  /// Calls a plain callable. REQUIRES: it was entered.
  void call() noexcept;
  /// The operation has ended; the region stays entered for the next one.
  void release() noexcept { std::exchange(of, nullptr)->running = nullptr; }
  /// The operation has ended, and so have its defers: a failed one makes it fail.
  void end();
  remote_op* of;  // null after `end` and `release`
};

/// Runs the operation of a region and stores how it ended in its result: a catch edge.
class remote_await {
 public:
  explicit remote_await(remote_region& r) noexcept : r_(r) {}
  remote_await(const remote_await&) = delete;
  remote_await& operator=(const remote_await&) = delete;
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> me) {
    const auto frame = r_.start();
    if (!frame) return false;
    outcome_base& out = r_.of->result();
    out.own_frame(frame);
    return start_caught(me.promise(), out);
  }
  void await_resume() noexcept {
    r_.of->result().destroy_frame();
    r_.of->drop_operation();
  }

 private:
  remote_region& r_;
};
struct remote_call {
  remote_region* r;
  remote_await weir_await() && { return remote_await(*r); }
};

/// Runs the operation here; the body of a remote child.
task<> run_remote(remote_run run);

/// Its loop (`where`, if known) has ended: the operation ends with errc::loop_gone.
void lose(remote_op& op, const door* where) noexcept;
/// Stores what an operation inherits from `caller`. `limit`: the caller's own time limit directly
/// around it. `clock`: that of the loop that will run it.
void inherit(remote_op& op, const wait& caller, time_point limit, const void* clock);
/// The callers on other loops of the operation that contains `c`, nearest first.
std::vector<run_place> callers_of(const context& c);
/// Asks the side that runs it, on the loop `there`, to stop; `force`: without grace, even after an
/// earlier request. The reason is op.why.
void nudge(remote_op& op, door& there, bool force) noexcept;

}  // namespace weir::detail
