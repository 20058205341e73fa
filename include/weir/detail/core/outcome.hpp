// SPDX-License-Identifier: MIT
// The machinery of <weir/outcome.hpp>.
#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/cancel_reason.hpp>
#include <weir/error.hpp>

namespace weir {

template <class T>
class outcome;

namespace detail {

// `error` and `cancelled` own a problem.
enum class outcome_state : std::uint8_t { pending, value, taken, error, cancelled };

/// Errors that did not become the outcome, kept with it.
struct outcome_notes {
  std::vector<std::exception_ptr> suppressed;
  std::vector<std::exception_ptr> cleanup;
};

/// The problem of an outcome that also has notes; rare, so it is allocated separately.
struct noted_problem {
  std::exception_ptr error;
  reason_ref reason;
  outcome_notes notes;
};

/// The part of an outcome that does not depend on its type. A running coroutine stores its result
/// in it: each awaiter and each fiber owns one, and the frame writes into it.
///
/// Invariants:
/// 1. `frame_` is the coroutine that fills or filled it, owned by this object, or null.
/// 2. The problem is an exception_ptr in state `error`, a reason in state `cancelled`, nothing
///    otherwise; if there are notes, it is a noted_problem in every state (`noted_`).
/// 3. A value exists only in state `value`.
class outcome_base {
 public:
  outcome_base() noexcept {}
  outcome_base(const outcome_base&) = delete;
  outcome_base& operator=(const outcome_base&) = delete;
  ~outcome_base() {
    destroy_frame();
    clear_problem();
  }

  bool is_value() const noexcept { return state_ == outcome_state::value; }
  bool is_error() const noexcept { return state_ == outcome_state::error; }
  bool is_cancelled() const noexcept { return state_ == outcome_state::cancelled; }

  /// The error; null unless is_error().
  std::exception_ptr error() const noexcept {
    if (!is_error()) return nullptr;
    return noted_ ? noted_problem_->error : error_;
  }
  /// REQUIRES: is_cancelled(), else throws errc::invalid_argument.
  const cancel_reason& reason() const {
    if (!is_cancelled()) raise(errc::invalid_argument, "outcome::reason: it was not cancelled");
    return *reason_reference();
  }
  /// Errors that were suppressed by the reported one.
  const std::vector<std::exception_ptr>& suppressed() const noexcept;
  /// Errors of cleanup (defers) that ran for this operation.
  const std::vector<std::exception_ptr>& cleanup() const noexcept;

  // Everything below is for the scheduler.
  outcome_state state() const noexcept { return state_; }
  bool pending() const noexcept { return state_ == outcome_state::pending; }
  bool is_catch_edge() const noexcept { return catch_edge_; }
  void make_catch_edge() noexcept { catch_edge_ = true; }
  std::coroutine_handle<> frame() const noexcept { return frame_; }
  void own_frame(std::coroutine_handle<> frame) noexcept { frame_ = frame; }
  void forget_frame() noexcept { frame_ = nullptr; }
  /// Destroys the finished (or never started) frame, if it is still there.
  void destroy_frame() noexcept {
    if (auto frame = std::exchange(frame_, nullptr)) frame.destroy();
  }
  void set_error(std::exception_ptr error) noexcept;
  void set_cancelled(reason_ref reason) noexcept;
  const reason_ref& reason_reference() const noexcept {
    return noted_ ? noted_problem_->reason : reason_;
  }
  outcome_notes& notes();
  [[noreturn]] void rethrow_problem() const;

 protected:
  void copy_problem(const outcome_base& other) {
    if (other.state_ >= outcome_state::error || other.noted_) [[unlikely]]
      copy_all(other);
  }
  /// Leaves state `taken`, without problem and notes.
  void clear_problem() noexcept {
    if (state_ >= outcome_state::error || noted_) [[unlikely]]
      clear_all();
    state_ = outcome_state::taken;
  }
  void now_value() noexcept {
    clear_problem();
    state_ = outcome_state::value;
  }
  void mark_taken() noexcept { state_ = outcome_state::taken; }

 private:
  void copy_all(const outcome_base& other);
  void clear_all() noexcept;
  const outcome_notes* notes_or_null() const noexcept {
    return noted_ ? &noted_problem_->notes : nullptr;
  }

  std::coroutine_handle<> frame_;
  union {
    std::exception_ptr error_;
    reason_ref reason_;
    noted_problem* noted_problem_;
  };
  outcome_state state_ = outcome_state::pending;
  bool catch_edge_ = false;
  bool noted_ = false;
};

struct void_value {};
template <class T>
using stored_t = std::conditional_t<std::is_void_v<T>, void_value, T>;

}  // namespace detail
}  // namespace weir
