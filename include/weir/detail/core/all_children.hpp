// SPDX-License-Identifier: MIT
// `all` of tasks and callables: each input is a child fiber, and nothing else is waited for.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/arms.hpp>
#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/future.hpp>
#include <weir/scope.hpp>

namespace weir::detail {

class all_wait;

/// The region of an `all`, with its arms in input order.
///
/// The arms begin depth first (see loop). The first one that does not end with a value decides: it
/// cancels the others at once, also those that have not begun. Until then the parent waits for the
/// last one.
class all_scope final : public scope {
 public:
  explicit all_scope(bool of_range) noexcept;
  /// Starts `op` as a child.
  template <class Op>
  core_ref start(Op&& op, std::source_location site) {
    return core_ref::adopt(adopt(make(std::forward<Op>(op)), {}, site, launch::arm));
  }
  /// Moving an input threw, and those before it are started. In its catch block.
  void start_failed();
  /// All arms are started, unless that failed. The array must outlive the region.
  void set_arms(const core_ref* first, std::size_t count) noexcept {
    if (decided_by_ != none) [[unlikely]]
      return;
    arms_ = first;
    count_ = count;
  }
  /// What decided: the error of an arm, or of its start; null if all have a value.
  std::exception_ptr problem() { return decided_by_ == none ? nullptr : take_problem(); }
  /// The error to report for `error`: see cancel_tree::cause_of.
  std::exception_ptr problem_of(const std::exception_ptr& error);
  void cancel_rest() noexcept;
  /// Waits until no child is left; not a cancellation point.
  quiet_wait_op<join_wait> joined() {
    return quiet_wait_op<join_wait>({this, join_wait::use::end});
  }
  /// Counts results that are discarded: values, and errors after the reported one.
  void count_unseen();

  /// Called by the tree: an arm ended without a value. It is still among the children.
  void arm_failed(const fiber& f) noexcept;
  /// Called by the tree: no child is left.
  void arms_ended() noexcept { wake(); }

 private:
  friend class all_wait;
  std::exception_ptr take_problem();
  void wake() noexcept;
  fiber& arm(std::size_t i) const noexcept { return static_cast<fiber&>(*arms_[i].get()); }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::size_t its_start = none - 1;
  const core_ref* arms_ = nullptr;
  std::size_t count_ = 0;
  std::size_t decided_by_ = none;
  all_wait* waiting_ = nullptr;  // the parent is parked on it
  bool some_failed_ = false;
  bool of_range_;
};

/// What the parent waits on.
class all_wait : public simple_wait<all_wait, local_wait> {
 public:
  using args = all_scope*;
  using result = void;

  explicit all_wait(args&& of) noexcept : of_(of) {}
  bool try_now() noexcept;
  void arm() noexcept { of_->waiting_ = this; }
  cancel_result withdraw() noexcept override {
    of_->waiting_ = nullptr;
    return cancel_result::done;
  }
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  void take() const noexcept {}

 protected:
  ~all_wait() = default;

 private:
  all_scope* of_;
};

/// Moves the value of an arm out.
template <class T>
unit_or<T> take_arm(const core_ref& arm) {
  auto& out = static_cast<fiber_of<T>&>(static_cast<fiber&>(*arm.get())).out;
  if constexpr (std::is_void_v<T>) {
    out.take();
    return unit{};
  } else {
    return out.take();
  }
}

/// The argument of a coroutine. When moving one into the frame throws, code of clang-19 reads the
/// frame after it was freed, so what may throw stays outside.
template <class T>
struct boxed {
  template <class... Args>
  explicit boxed(std::in_place_t, Args&&... args)
      : held(std::make_unique<T>(std::in_place, std::forward<Args>(args)...)) {}
  std::unique_ptr<T> held;
};
template <class T>
using argument = std::conditional_t<std::is_nothrow_move_constructible_v<T>, T, boxed<T>>;
template <class T>
T& unboxed(T& plain) noexcept {
  return plain;
}
template <class T>
T& unboxed(boxed<T>& box) noexcept {
  return *box.held;
}

/// Starts the inputs. Inlined, because g++ would not do so, for 20 instructions of every `all`.
template <class Inputs>
[[gnu::always_inline]] inline typename Inputs::arms start_arms(Inputs& inputs, all_scope& s) {
  try {
    return inputs.start(s);
  } catch (...) {
    s.start_failed();
    return {};
  }
}

/// Runs the inputs. `Inputs` starts them, keeps their references, and collects their values.
template <class Inputs>
task<typename Inputs::result> run_all(argument<Inputs> inputs) {
  detail::unboxed(inputs).check();
  all_scope s(Inputs::of_range);
  enter_region(s);
  const auto arms = detail::start_arms(detail::unboxed(inputs), s);
  s.set_arms(arms.data(), arms.size());
  co_await pending<all_wait>(&s);
  std::exception_ptr problem = s.problem();
  if (problem == nullptr) {
    try {
      auto values = Inputs::take(arms);
      leave_region(s);
      co_return values;
    } catch (...) {  // moving a value threw
      problem = s.problem_of(std::current_exception());
    }
  }
  s.cancel_rest();
  co_await s.joined();
  s.count_unseen();
  leave_region(s);
  outcome<typename Inputs::result> out;
  out.set_error(std::move(problem));
  co_await detail::finish_as(out);
  co_return out.take();
}

}  // namespace weir::detail
