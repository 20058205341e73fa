// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <weir/detail/core/suspend.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// Answers a pending `suspend<T>`: copyable, usable on any thread, also after the loop has ended.
/// Only the first answer counts; when the last copy is destroyed unanswered, the wait ends with
/// errc::abandoned.
template <class T = void>
class resumer {
 public:
  /// Without a pending suspend: answers are ignored.
  resumer() noexcept = default;
  resumer(const resumer& other) noexcept : state_(other.state_) { hold(); }
  resumer(resumer&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  resumer& operator=(resumer other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~resumer() {
    if (state_ != nullptr) state_->drop_resumer();
  }

  /// Ends the wait with a value (`complete()` for void).
  template <class... Args>
    requires std::is_constructible_v<detail::stored_t<T>, Args...>
  void complete(Args&&... args) {
    if (state_ == nullptr || !state_->claim()) return;
    try {
      state_->value.emplace(std::forward<Args>(args)...);
    } catch (...) {
      state_->error = std::current_exception();
    }
    state_->answer();
  }
  /// Ends the wait with an error.
  void fail(std::exception_ptr error) {
    if (state_ == nullptr || !state_->claim()) return;
    state_->error = std::move(error);
    state_->answer();
  }

  // Below: for the library.
  explicit resumer(detail::suspend_state<T>* state) noexcept : state_(state) { hold(); }

 private:
  void hold() noexcept {
    if (state_ != nullptr) state_->add_resumer();
  }
  detail::suspend_state<T>* state_ = nullptr;
};

}  // namespace weir

#include <weir/detail/core/suspend_wait.hpp>

namespace weir {

/// Turns any callback interface into a wait. `start(resumer<T>)` is called when the wait starts; it
/// may return a canceller, `cancel_result()`, which is called at once on cancellation: `done`
/// (stopped; a later answer is ignored and counted), `no` (the answer is delivered, the fiber is
/// unwound at its next await), `later` (the next answer is the confirmation: the fiber is unwound,
/// a value counts as `value_discarded`). Neither may throw or change weir's state.
template <class T = void, class F>
auto suspend(F&& start) {
  using fn = std::decay_t<F>;
  static_assert(std::is_invocable_v<fn&, resumer<T>>,
                "weir::suspend<T>(start): start takes a weir::resumer<T>");
  return detail::pending<detail::suspend_wait<T, fn>>(
      typename detail::suspend_wait<T, fn>::args(std::forward<F>(start)));
}

}  // namespace weir
