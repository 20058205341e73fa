// SPDX-License-Identifier: MIT
// Part of <weir/scope.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <weir/context.hpp>
#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/duration.hpp>
#include <weir/future.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>

namespace weir {

namespace detail {

/// Waits until a scope has no ordinary child.
class join_wait : public simple_wait<join_wait, local_wait> {
 public:
  static constexpr bool home_bound = true;
  enum class use : std::uint8_t { join, idle, end };
  struct args {
    scope* of;
    use how;
  };
  using result = void;

  explicit join_wait(args&& a) noexcept : scope_(a.of), use_(a.how) {}
  bool try_now() noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  void take();

 protected:
  bool is_home() const noexcept;

 private:
  friend struct cancel_tree;
  void unlink() noexcept;
  scope* scope_;
  use use_;
  join_wait* previous_ = nullptr;
  join_wait* next_ = nullptr;
};

template <class F>
concept scope_body = requires(F& f, scope& s) { f(s); };

template <class F>
using body_result = std::remove_cvref_t<std::invoke_result_t<F&, scope&>>;

/// Joins the children and unwinds the LIFO stack: the second half of with_scope.
task<> end_scope(scope& s, outcome_base& out);
bool has_loose_ends(const scope& s) noexcept;
/// A failing body counts as the first child.
void body_ended(scope& s, outcome_base& out);

/// What happens to an operation that ran in its own region.
struct verdict {
  enum class action : std::uint8_t { keep, fail, unwind } what = action::keep;
  std::exception_ptr error;
};
/// Leaves the scope; its suppressed and cleanup errors go to the notes of `out`.
verdict judge_scope(scope& s, outcome_base& out);

/// Applies a verdict. False: the caller continues unwinding.
template <class T>
bool apply_verdict(const verdict& v, outcome<T>& out) {
  if (v.what == verdict::action::fail) {
    out.drop_value();
    out.set_error(v.error);
  }
  return v.what != verdict::action::unwind;
}

/// A scope whose owner decides what a failing child means, instead of `failure`: a group, a
/// supervisor.
struct guided_scope : scope {
  guided_scope(scope_setup&& setup, region_kind kind) : scope(std::move(setup), kind) {
    guided_ = true;
  }
  virtual void child_failed(fiber& f) = 0;
  /// A child has ended, in any way, and was removed.
  virtual void child_gone(fiber&) noexcept {}
  /// For a shielded one: the enclosing region was cancelled, and this scope must end itself.
  virtual void asked_to_end() noexcept {}

 protected:
  ~guided_scope() = default;
};

template <class T, class Scope = scope, class Setup, class F>
task<T> run_scope(Setup setup, F fn) {
  Scope s(std::move(setup), region_kind::scope);
  outcome<T> out;
  auto body = [&] { return fn(s); };
  co_await detail::inside(s, out, body);
  body_ended(s, out);
  if (has_loose_ends(s)) co_await detail::quietly(end_scope(s, out));
  if (!detail::apply_verdict(judge_scope(s, out), out)) co_await keep_unwinding{};
  co_await detail::finish_as(out);
  co_return out.take();
}

}  // namespace detail
}  // namespace weir
