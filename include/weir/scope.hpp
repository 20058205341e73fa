// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string_view>
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

/// Failure policy: what a failing child (or body) does to the others.
enum class failure : std::uint8_t {
  cancel_siblings,  ///< the first failure cancels the rest; the scope fails
  wait_for_all,     ///< nothing is cancelled; the scope fails at the end
  isolate,          ///< stays in its future; raised at the end only if never awaited
};

/// What a failed scope throws.
enum class errors : std::uint8_t {
  first,  ///< the first error, unchanged
  all,    ///< always an error_group, in completion order
};

struct scope_options {
  weir::name name{};
  weir::failure failure = weir::failure::cancel_siblings;
  weir::errors errors = weir::errors::first;
  /// How long cleanup may take; default: 30 s, in a durable run unlimited.
  std::optional<duration> grace{};
  std::int64_t max_children = unbounded;
};

struct spawn_options {
  weir::name name{};
};

template <class U = void>
class started;

}  // namespace weir

#include <weir/detail/core/scope_state.hpp>

namespace weir {

/// Owns children and cleanup; it ends only when all of them have finished.
///
/// Requires: made by `with_scope`, used on its home loop only (elsewhere: errc::wrong_loop).
/// Ensures: execution cannot pass the end of `with_scope` until the body and every child have ended
/// and all cleanup has run. Nothing that was spawned here outlives it. Cancels: `cancel()` asks
/// every live child, in spawn order, then the body; the children are unwound and joined first, the
/// body last. Costs: `spawn` is one record and one frame from the thread's cache; a finished child
/// is released at once.
class scope : public context {
 public:
  /// Starts `op` as a child on a later turn. The handle may be dropped: the scope still owns the
  /// child. errc::scope_closed after the children were joined, errc::scope_full at `max_children`.
  /// On a cancelled scope the child never starts and its future is cancelled.
  template <detail::operation Op>
  child<detail::result_t<Op>> spawn(Op&& op, spawn_options options = {},
                                    std::source_location site = std::source_location::current()) {
    admit("spawn");
    detail::fiber* const made = make(std::forward<Op>(op));
    return child<detail::result_t<Op>>(options.name.empty()
                                           ? adopt_unnamed(made, site)
                                           : adopt(made, options, site, launch::ordinary));
  }

  /// A remote child: runs `op` on another loop, see weir/on.hpp.
  template <detail::operation Op>
  child<detail::result_t<Op>> spawn_on(loop_ref there, Op&& op, spawn_options options = {},
                                       std::source_location site = std::source_location::current());

  /// As spawn, but empty at `max_children`.
  template <detail::operation Op>
  std::optional<child<detail::result_t<Op>>> try_spawn(
      Op&& op, spawn_options options = {},
      std::source_location site = std::source_location::current()) {
    if (full()) return std::nullopt;
    return spawn(std::forward<Op>(op), options, site);
  }

  /// A service: cancelled (scope_ended) and joined when the scope unwinds its LIFO stack of
  /// services and defers, after the body and the ordinary children. It sees no cancellation until
  /// then; its failure counts like any child's.
  template <detail::operation Op>
  child<detail::result_t<Op>> background(
      Op&& op, spawn_options options = {},
      std::source_location site = std::source_location::current()) {
    require_open("background");
    return child<detail::result_t<Op>>(
        adopt(make(std::forward<Op>(op)), options, site, launch::background));
  }

  /// Starts a child and waits until it calls `up(value)`; then it is an ordinary child. If the
  /// child ends first: its error, which then does not fail the scope, or errc::never_started.
  template <class F>
  auto start(F&& fn, spawn_options options = {},
             std::source_location site = std::source_location::current());

  /// Requests cancellation of every live child and the body and returns without waiting; the first
  /// reason wins. O(live descendants), runs no user code.
  void cancel(cancel_reason reason);
  void cancel(std::string_view text) { cancel(cancel_reason(cancel_kind::user, text)); }
  void cancel(const char* text) { cancel(std::string_view(text == nullptr ? "" : text)); }
  void cancel() { cancel(cancel_reason()); }

  /// Waits until no ordinary child is left and closes the scope; errors: see
  /// docs/reference/core.md.
  detail::pending<detail::join_wait> join();
  /// Waits until no ordinary child is left, leaves the scope open, never throws a child's error.
  detail::pending<detail::join_wait> idle();

  weir::scope_id id() const noexcept { return id_; }
  std::string_view name() const noexcept { return name_.view(); }
  /// Live ordinary children.
  std::size_t size() const noexcept { return live_ - hidden_; }

  // Below: for the library.
  scope(detail::scope_setup&& setup, detail::region_kind kind);
  scope(detail::region_kind kind, const char* name);
  ~scope();
  /// errc::scope_closed.
  void require_open(const char* what) const;
  /// errc::scope_closed, errc::scope_full.
  void admit(const char* what) const {
    if (loop_ == detail::current_loop && !closed_ &&
        static_cast<std::int64_t>(size()) < max_children_) [[likely]]
      return;
    refuse(what);
  }
  /// The last two begin depth first, see loop: `next` is an ordinary child, `arm` a hidden one.
  enum class launch : std::uint8_t { ordinary, background, starting, hidden, next, arm };
  /// `polite`: how a service is asked to stop, instead of being cancelled; null: it is cancelled.
  /// `until`: the child of this scope with which a service ends; null: it ends with the scope.
  detail::fiber* adopt(detail::fiber* f, const spawn_options& options, std::source_location site,
                       launch how, detail::polite_service* polite = nullptr,
                       detail::fiber* until = nullptr);
  /// The same for an ordinary child without a name.
  detail::fiber* adopt_unnamed(detail::fiber* f, std::source_location site);
  template <class Op>
  static auto* make(Op&& op) {
    using plain = detail::held_t<Op>;
    using value = detail::result_t<plain>;
    if constexpr (detail::is_task<plain>) {
      static_assert(std::is_rvalue_reference_v<Op&&>, "spawn an rvalue task: std::move(t)");
      if (!op) [[unlikely]]
        raise_no_task();
      return new detail::task_fiber<value>(std::move(op));
    } else {
      if (detail::is_empty_callable(op)) detail::raise_empty_job();
      return new detail::call_fiber<value, plain, detail::make_task>(std::forward<Op>(op));
    }
  }

 private:
  friend struct detail::cancel_tree;
  friend class context;
  friend class detail::join_wait;
  friend struct detail::overdue_watch;
  friend struct detail::guided_scope;
  friend class detail::all_scope;

  [[noreturn]] static void raise_no_task();
  bool full() const;
  void refuse(const char* what) const;
  bool accepts_none() const noexcept;
  void place(detail::fiber& f, std::source_location site) noexcept;
  detail::fiber* adopt_cancelled(detail::fiber* f);
  void register_service(detail::fiber* f, detail::polite_service* polite, detail::fiber* until);

  detail::loop* loop_;
  weir::scope_id id_;
  detail::kept_name name_;
  std::source_location site_;
  detail::strand* strand_ = nullptr;  // runs the body
  detail::binding* locals_ = nullptr;
  detail::fiber* first_ = nullptr;  // ordinary children in spawn order
  detail::fiber* last_ = nullptr;
  detail::fiber* unobserved_ = nullptr;  // isolate: failures never awaited, newest first
  detail::join_wait* joiners_ = nullptr;
  detail::strand* held_ = nullptr;  // to be unwound once no child is left
  std::unique_ptr<detail::failures> failures_;
  detail::overdue_watch watch_{*this};
  std::size_t live_ = 0;
  std::size_t hidden_ = 0;
  std::uint64_t body_end_ = 0;  // the loop's step in which the body ended
  std::int64_t max_children_ = unbounded;
  static constexpr duration usual_grace = std::chrono::seconds(30);
  duration grace_ = usual_grace;
  weir::failure failure_ = failure::cancel_siblings;
  weir::errors errors_ = errors::first;
  bool guided_ = false;  // it is a guided_scope
  bool is_all_ = false;  // it is an all_scope
  bool closed_ = false;
  bool joined_for_good_ = false;  // cancelled and without children: accepts no new ones
};

/// The scope of the running operation, read-only. Outside a fiber: errc::no_current_fiber.
const scope& this_scope();

}  // namespace weir

#include <weir/detail/core/run_scope.hpp>

namespace weir {

/// Runs `fn(scope&)` in the calling fiber, inside a new scope, and returns its value when the body
/// and every child have finished and all cleanup has run.
template <class F>
auto with_scope(scope_options options, F fn,
                std::source_location site = std::source_location::current()) {
  static_assert(detail::scope_body<F>, "the body of with_scope takes a weir::scope&");
  using result = detail::body_result<F>;
  static_assert(detail::is_task<result>,
                "the body of with_scope must return weir::task<T> (make it a coroutine)");
  if constexpr (detail::is_task<result>) {
    if (detail::is_empty_callable(fn)) detail::raise_empty_job();
    return detail::run_scope<typename result::value_type>(detail::scope_setup(options, site),
                                                          std::move(fn));
  } else {
    return detail::refused();
  }
}
template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, scope_options>)
auto with_scope(F fn, std::source_location site = std::source_location::current()) {
  return with_scope(scope_options{}, std::move(fn), site);
}

}  // namespace weir

#include <weir/start.hpp>
