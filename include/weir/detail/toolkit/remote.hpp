// SPDX-License-Identifier: MIT
// Operations that run on another loop: the common part of `on`, `spawn_on` and `pool`.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weir/detail/core/counted_ref.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/loop_ref.hpp>
#include <weir/outcome.hpp>

namespace weir::detail {

class remote_wait_base;
struct remote_extra;

/// A plain callable or an operation, run as a task that stores its value in `out`. The task owns
/// the operation.
template <class T, class Op>
task<> leave_result(Op op, outcome<T>& out, context& c) {
  if constexpr (operation<Op>) {
    if constexpr (std::is_void_v<T>) {
      co_await detail::as_task(op, c);
      out.emplace();
    } else {
      out.emplace(co_await detail::as_task(op, c));
    }
  } else if constexpr (std::is_void_v<T>) {
    op();
    out.emplace();
  } else {
    out.emplace(op());
  }
  co_return;
}

/// An operation to run on another loop, shared by the caller and by the message or fiber that
/// carries or runs it there.
///
/// Invariants:
/// 1. Its messages (start, cancel, force) and its reply are parts of it and posted at most once
/// each.
/// 2. The side that takes it over to run it answers exactly once in every case: with its outcome,
///    or with errc::loop_gone if it was not run to its end.
/// 3. The outcome and the operation belong to the running side until the answer is posted, then to
///    the caller. The caller's wait is used on the caller's loop only.
class remote_op : public counted<remote_op> {
 public:
  using caller = task<> (*)(remote_op& self, context& c);
  explicit remote_op(caller how);
  virtual ~remote_op();

  /// The operation itself; on the loop that runs it.
  task<> call(context& c) { return call_(*this, c); }
  virtual outcome_base& result() noexcept = 0;
  /// Destroys the operation; what it holds must not outlive its run.
  virtual void drop_operation() noexcept = 0;
  /// Destroys the result.
  virtual void drop_result() noexcept = 0;

  remote_extra& extra() noexcept { return *extra_; }

 private:
  // Not a virtual function: g++-12 warns about every coroutine created in one.
  caller call_;
  std::unique_ptr<remote_extra> extra_;
};

using remote_ref = counted_ref<remote_op>;

template <class T, class Op>
class remote_op_of final : public remote_op {
 public:
  template <class G>
  explicit remote_op_of(G&& op) : remote_op(&run), op_(std::in_place, std::forward<G>(op)) {}
  outcome_base& result() noexcept override { return out_; }
  void drop_operation() noexcept override { op_.reset(); }
  void drop_result() noexcept override { out_.reset(); }

 private:
  static task<> run(remote_op& self, context& c) {
    auto& me = static_cast<remote_op_of&>(self);
    return detail::leave_result<T, Op>(std::move(*me.op_), me.out_, c);
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

/// The caller's side: waits for the answer. When cancelled, it asks the other side to stop and
/// waits for the confirmation.
class remote_wait_base : public wait {
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
  bool pausable() const noexcept override { return false; }
  void grace_over() noexcept override;
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  bool failed() const noexcept { return !op_->result().is_value(); }
  /// It was asked to stop and answered with a value or an error nevertheless.
  bool ended_by_itself() const noexcept;
  /// A time limit directly around it.
  void limit_to(time_point at) noexcept { limit_ = at; }
  /// Called when the answer has arrived.
  void answered() noexcept;

 protected:
  explicit remote_wait_base(args&& a) noexcept : op_(std::move(a.op)), there_(a.there) {}
  ~remote_wait_base();
  /// The result; marks it as taken.
  outcome_base& taken() noexcept {
    cancelling_ = false;
    return op_->result();
  }

 private:
  void fail_now(errc code, const char* what);
  remote_ref op_;
  loop_ref there_;
  time_point limit_ = time_point::max();
  bool cancelling_ = false;  // asked to stop; the result is not taken
};

template <class T>
class remote_wait : public remote_wait_base {
 public:
  using result = T;
  explicit remote_wait(args&& a) noexcept : remote_wait_base(std::move(a)) {}
  T take() { return static_cast<outcome<T>&>(taken()).take(); }
};

}  // namespace weir::detail
