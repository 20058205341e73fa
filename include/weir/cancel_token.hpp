// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

#include <weir/cancel_reason.hpp>
#include <weir/detail/core/cancel_token.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/policy/settle.hpp>

namespace weir {

/// Carries a cancellation request and its reason. Copyable; any thread; safe after every loop has
/// ended. A durable run may use only tokens of a source that it created itself, outside of steps,
/// and only that run may use them: errc::not_journaled.
class cancel_token {
 public:
  /// Never fires.
  cancel_token() noexcept = default;
  explicit cancel_token(detail::state_list states) noexcept : states_(std::move(states)) {}

  bool cancel_requested() const;
  /// Fires when either does.
  static cancel_token any(const cancel_token& a, const cancel_token& b);

  const detail::state_list& states() const noexcept { return states_; }

 private:
  detail::state_list states_;
};

/// Fires tokens. Copies share one state; a token that has not fired when its last source is
/// destroyed never fires.
class cancel_source {
 public:
  cancel_source();
  cancel_source(const cancel_source& other) noexcept;
  cancel_source(cancel_source&& other) noexcept = default;
  cancel_source& operator=(cancel_source other) noexcept;
  ~cancel_source();

  /// Fires; the first reason wins. Any thread; runs no user code on the calling thread.
  void cancel(cancel_reason reason);
  void cancel(std::string_view text) { cancel(cancel_reason(cancel_kind::user, text)); }
  void cancel(const char* text) { cancel(std::string_view(text)); }
  void cancel() { cancel(cancel_reason()); }
  bool cancel_requested() const;
  cancel_token token() const;

 private:
  std::shared_ptr<detail::cancel_state> state_;
};

/// A token that fires when `stop` is requested.
cancel_token link(std::stop_token stop);

/// Runs `op` until the token fires: then `op` is cancelled and joined, and cancelled_error with the
/// token's reason is thrown (`settle` of it gives cancelled). If the token has already fired, `op`
/// never starts.
template <detail::operation Op>
auto with_token(const cancel_token& token, Op&& op) {
  using plain = detail::held_t<Op>;
  return detail::run_region<detail::result_t<plain>, detail::token_region, plain>(
      token.states(), std::forward<Op>(op));
}

}  // namespace weir
