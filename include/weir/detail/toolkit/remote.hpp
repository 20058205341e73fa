// SPDX-License-Identifier: MIT
// Operations that run on another loop: the common part of `on`, `spawn_on` and `pool`.
//
// One block from the frame cache holds everything about an operation: the function or task, its
// outcome, the reply to its caller, its place in the lists of a pool, and what it inherits from
// its caller.
//
// Who owns the block, and what in it:
// - The caller's wait and the reply share one reference. While the reply is asked, the block stays:
//   the running side needs no reference of its own. If the caller leaves early (its loop crashes),
//   the reference is left to the answer, which frees the block on arrival or when it is refused.
// - A pool has its own reference to an accepted job without a waiter, and none to the others: see
//   pool_core.
// - A request to stop (remote_nudge) has its own reference while it is on its way.
// - Operation and outcome belong to the running side until it answers, then to the caller. Each
//   side destroys what is user code before it lets go: the running side the operation and, if no
//   caller waits for the result, the outcome; the caller's side the rest. So the last release, on
//   whichever thread, only frees memory.
// - What is inherited is written by the caller before the message, or under the pool's mutex.
//
// Exactly one answer: the running side takes the operation over once (remote_run), and answers with
// its outcome, or with errc::loop_gone if it was not run to its end. For a job whose caller waits
// for room only, the pool answers when it accepts or refuses the job, and the worker does not.
//
// The start message and the answer are the same message: it is posted home only after it was
// delivered or refused over there, or never was posted.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/core/counted_ref.hpp>
#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/loop_ref.hpp>
#include <weir/outcome.hpp>

namespace weir::detail {

class remote_asker;
class remote_op;
struct binding;
struct fiber;
struct pool_seat;
struct remote_origin;
using remote_ref = counted_ref<remote_op>;

/// Starts the operation on its loop; the same message then brings the answer home.
struct remote_start : reply_carrier {
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override;

 protected:
  ~remote_start() = default;
};

/// Asks the running side to stop. It is posted while it is not on its way already; the requests
/// themselves stay, so a second one is seen by the first delivery, or posts again.
struct remote_nudge : message {
  enum request : std::uint8_t { cancel = 1, force = 2, on_its_way = 4 };
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override;
  std::atomic<std::uint8_t> requests{0};

 protected:
  ~remote_nudge() = default;
};

/// An operation to run on another loop. See the top of this file.
class remote_op : public counted<remote_op>,
                  public reply_to<remote_asker, remote_start>,
                  public remote_nudge {
 public:
  /// Starts the operation: the frame to run, or null if it has ended.
  using starter = std::coroutine_handle<> (*)(remote_op& self, context& c);
  explicit remote_op(starter how, bool plain) noexcept;
  virtual ~remote_op();

  virtual outcome_base& result() noexcept = 0;
  /// Destroys the operation; what it holds must not outlive its run.
  virtual void drop_operation() noexcept = 0;
  /// Destroys the result.
  virtual void drop_result() noexcept = 0;
  /// The reply's reference, without a caller.
  void dispose() noexcept override;

  // Not a virtual function: g++-12 warns about every coroutine created in one.
  const starter start;
  const bool is_plain;       // a plain callable: `start` runs it to its end
  bool wants_result = true;  // the answer is its outcome, not that it was accepted

  /// Where it is in its pool. Guarded by the pool's mutex, as all up to `why`.
  enum class place : std::uint8_t { nowhere, waiting, queued, running };
  place where = place::nowhere;
  bool refused = false;  // the answer to a waiting caller
  remote_op* previous = nullptr;
  remote_op* following = nullptr;
  pool_seat* worker = nullptr;  // the one that runs it
  reason_ref why;               // of the cancellation; written once, before the first nudge

  // Inherited from the caller.
  std::shared_ptr<door> there;  // `on`: the loop that runs it
  binding* locals = nullptr;
  time_point deadline = time_point::max();
  std::source_location site;
  scope_id caller = 0;                    // the scope around the caller
  std::unique_ptr<remote_origin> origin;  // null: the caller is not a remote operation itself

  // Used on the running loop only.
  context* running = nullptr;
  const fiber* runs_in = nullptr;
  reason_ref heard;  // the reason of the caller's cancellation, once received
};

/// Memory for a block: over-aligned ones do not come from the frame cache.
struct remote_heap {};

template <class T, class Op>
class remote_op_of final : public remote_op,
                           public std::conditional_t<(alignof(Op) > 16 || alignof(outcome<T>) > 16),
                                                     remote_heap, frame_allocated> {
 public:
  template <class G>
  explicit remote_op_of(G&& op)
      : remote_op(&run, !operation<Op>), op_(std::in_place, std::forward<G>(op)) {}
  outcome_base& result() noexcept override { return out_; }
  void drop_operation() noexcept override { op_.reset(); }
  void drop_result() noexcept override { out_.reset(); }

 private:
  static std::coroutine_handle<> run(remote_op& self, [[maybe_unused]] context& c) {
    auto& me = static_cast<remote_op_of&>(self);
    if constexpr (operation<Op>) {
      return detail::as_task(*me.op_, c).release();
    } else if constexpr (std::is_void_v<T>) {
      (*me.op_)();
      me.out_.emplace();
    } else {
      me.out_.emplace((*me.op_)());
    }
    return nullptr;
  }
  std::optional<Op> op_;
  outcome<T> out_;
};

template <class Op>
inline constexpr bool stays_home = is_future<Op>;
template <class W>
inline constexpr bool stays_home<pending<W>> = is_home_bound<W>;

/// `Op`, with result `T`, as an operation that can run on another loop.
template <class T, class Op, class G>
remote_ref make_remote(G&& op) {
  static_assert(
      !stays_home<Op>,
      "weir::on, weir::pool: a future never leaves its loop, nor does a wait for something "
      "of that loop (scope, group, lock, ...); give a task, or a callable");
  return remote_ref(new remote_op_of<T, Op>(std::forward<G>(op)));
}

/// The caller's side: waits for the answer.
class remote_asker : public wait {
 public:
  void link() override = 0;
  bool pausable() const noexcept override { return false; }
  /// A time limit directly around it.
  void limit_to(time_point at) noexcept { limit_ = at; }
  /// Called when the answer has arrived.
  virtual void answered() noexcept = 0;
  /// It was asked to stop and answered with a value or an error nevertheless.
  bool ended_by_itself() const noexcept;

 protected:
  explicit remote_asker(remote_ref op) noexcept : op_(std::move(op)) {}
  ~remote_asker() = default;
  bool is_asked() const noexcept { return op_ && op_->is_asked(); }
  /// The end of the wait. `object`: the name in the event about a result that was not taken.
  void leave(std::string_view object) noexcept {
    if (op_) leave_operation(object);
  }
  /// The result; marks it as taken.
  outcome_base& taken() noexcept {
    cancelling_ = false;
    return op_->result();
  }

  remote_ref op_;
  time_point limit_ = time_point::max();
  bool cancelling_ = false;  // asked to stop; the result is not taken

 private:
  void leave_operation(std::string_view object) noexcept;
};

/// The caller's side of `on`. When cancelled, it asks the other side to stop and waits for the
/// confirmation.
class remote_wait_base : public remote_asker {
 public:
  struct args {
    args(remote_ref what, loop_ref where) noexcept : op(std::move(what)), there(where) {}
    remote_ref op;
    loop_ref there;
  };

  bool poll() override { return false; }
  bool try_now() const noexcept { return false; }
  void link() override { arm(); }
  void arm();
  cancel_result withdraw() noexcept override;
  void grace_over() noexcept override;
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  bool failed() const noexcept { return !op_->result().is_value(); }
  void answered() noexcept override;

 protected:
  explicit remote_wait_base(args&& a) noexcept : remote_asker(std::move(a.op)), there_(a.there) {}
  ~remote_wait_base() { leave("on"); }

 private:
  void fail_now(errc code, const char* what);
  loop_ref there_;
};

template <class T>
class remote_wait : public remote_wait_base {
 public:
  using result = T;
  explicit remote_wait(args&& a) noexcept : remote_wait_base(std::move(a)) {}
  T take() { return static_cast<outcome<T>&>(taken()).take(); }
};

}  // namespace weir::detail
