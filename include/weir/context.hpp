// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/cancel_reason.hpp>
#include <weir/detail/core/context.hpp>
#include <weir/detail/core/frame.hpp>
#include <weir/duration.hpp>
#include <weir/task.hpp>

namespace weir {

/// The environment of a running operation: the innermost cancel region.
///
/// Passed to every operation that takes a `weir::context&`; `weir::this_context()` returns that of
/// the running code. Threads: home loop only. It ends with its operation.
class context {
 public:
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  /// True once cancellation of this operation was requested; it is unwound at its next await.
  bool cancel_requested() const noexcept { return static_cast<bool>(reason_); }
  /// Why it was cancelled; null if it was not.
  const cancel_reason* reason() const noexcept { return reason_.get(); }
  /// The earliest enclosing deadline, up to a shield; empty if there is none.
  std::optional<time_point> deadline() const noexcept;
  /// The id of the scope that this operation belongs to.
  weir::scope_id scope_id() const noexcept;
  /// The name of the fiber or scope.
  std::string_view name() const noexcept;
  /// A std::stop_token; stop is requested in the loop's turn after a cancellation.
  std::stop_token stop_token();

  /// Runs `fn` when this operation ends, on every exit: last registered first, after its children
  /// are joined, shielded, within the scope's grace. `fn` is `void()`, `void(const
  /// outcome_view&)`, or returns `task<>`.
  template <class F>
  void defer(F&& fn) {
    using stored = std::decay_t<F>;
    static_assert(detail::takes_view<stored> || std::is_invocable_v<stored&>,
                  "a defer is called with nothing or with const weir::outcome_view&");
    require_home("defer");
    own(new detail::defer_entry<stored>(std::forward<F>(fn)));
  }

 protected:
  explicit context(detail::region_kind kind) noexcept : kind_(kind) {}
  ~context() = default;
  void own(detail::entry* adopted);
  void require_home(const char* what) const;

 private:
  friend struct detail::cancel_tree;
  friend struct detail::generator_base;
  friend class scope;

  context* parent_ = nullptr;         // the enclosing region; of a fiber: its scope
  context* inner_ = nullptr;          // the region inside this one, in the same strand
  detail::reason_ref reason_;         // set once cancelled
  detail::entry* entries_ = nullptr;  // the top of the LIFO stack
  detail::region_kind kind_;
  bool entered_ : 1 = false;
  bool shield_ : 1 = false;   // outer cancellation does not pass
  bool forced_ : 1 = false;   // grace expired: shields inside no longer apply
  bool lenient_ : 1 = false;  // cancelled only where it would park
};

/// The context of the running operation. Outside a fiber: errc::no_current_fiber.
context& this_context();

namespace detail {

/// The result of `weir::unwinding()`.
const cancel_reason* unwinding_reason() noexcept;

}  // namespace detail

/// Non-null inside destructors that run because the fiber is being cancelled: its reason.
/// (`std::uncaught_exceptions()` is 0 there.) In a generator that is destroyed early: the reason of
/// its consumer, or kind `abandoned`.
inline const cancel_reason* unwinding() noexcept { return detail::unwinding_reason(); }

}  // namespace weir
