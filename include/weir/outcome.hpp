// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <weir/cancel_reason.hpp>
#include <weir/detail/core/outcome.hpp>
#include <weir/error.hpp>

namespace weir {

/// How an operation ended: exactly one of value, error or cancelled.
template <class T>
class outcome : public detail::outcome_base {
  static_assert(!std::is_reference_v<T>,
                "weir::task<T&> is not supported: return a pointer, or "
                "a std::reference_wrapper");
  using stored = detail::stored_t<T>;

 public:
  outcome() noexcept {}
  outcome(const outcome& other)
    requires std::is_copy_constructible_v<stored>
  {
    assign(other);
  }
  outcome(outcome&& other) noexcept(std::is_nothrow_move_constructible_v<stored>) {
    assign(std::move(other));
  }
  outcome& operator=(outcome other) noexcept(std::is_nothrow_move_constructible_v<stored>) {
    reset();
    assign(std::move(other));
    return *this;
  }
  ~outcome() { destroy_value(); }

  /// The value; throws the error, or cancelled_error.
  std::add_lvalue_reference_t<T> value() & {
    require();
    if constexpr (!std::is_void_v<T>) return value_;
  }
  std::add_lvalue_reference_t<const T> value() const& {
    require();
    if constexpr (!std::is_void_v<T>) return value_;
  }
  T value() && {
    require();
    if constexpr (!std::is_void_v<T>) return std::move(value_);
  }

  /// Calls the function that applies; all three are required and must return the same type.
  template <class OnValue, class OnError, class OnCancelled>
  decltype(auto) match(OnValue&& on_value, OnError&& on_error, OnCancelled&& on_cancelled) const {
    if (is_error()) return std::forward<OnError>(on_error)(error());
    if (is_cancelled()) return std::forward<OnCancelled>(on_cancelled)(reason());
    require();
    if constexpr (std::is_void_v<T>) {
      return std::forward<OnValue>(on_value)();
    } else {
      return std::forward<OnValue>(on_value)(value_);
    }
  }

  // Below: for the scheduler.
  template <class... Args>
  void emplace(Args&&... args) {
    new (static_cast<void*>(std::addressof(value_))) stored(std::forward<Args>(args)...);
    now_value();
  }
  /// Moves the value out, leaving `taken`; throws the problem instead if there is one.
  T take() {
    require();
    if constexpr (std::is_void_v<T>) {
      drop_value();
    } else {
      struct drop {
        outcome& self;
        ~drop() { self.drop_value(); }
      } guard{*this};
      return std::move(value_);
    }
  }
  void drop_value() noexcept {
    destroy_value();
    if (is_value()) mark_taken();
  }
  void reset() noexcept {
    destroy_value();
    clear_problem();
  }
  /// Becomes `other`, keeping the frame that fills it.
  void adopt(outcome&& other) {
    reset();
    assign(std::move(other));
  }

 private:
  void require() const {
    if (!is_value()) [[unlikely]]
      rethrow_problem();
  }
  void destroy_value() noexcept {
    if (is_value()) value_.~stored();
  }
  void assign(const outcome& other)
    requires std::is_copy_constructible_v<stored>
  {
    if (other.is_value()) emplace(other.value_);
    copy_problem(other);
  }
  void assign(outcome&& other) {
    if (other.is_value()) emplace(std::move(other.value_));
    copy_problem(other);
  }

  union {
    stored value_;
  };
};

/// How an operation ended, without its value: the argument of a `defer`.
class outcome_view {
 public:
  explicit outcome_view(const detail::outcome_base& of) noexcept : of_(&of) {}
  bool is_value() const noexcept { return of_->is_value(); }
  bool is_error() const noexcept { return of_->is_error(); }
  bool is_cancelled() const noexcept { return of_->is_cancelled(); }
  std::exception_ptr error() const noexcept { return of_->error(); }
  const cancel_reason& reason() const { return of_->reason(); }

 private:
  const detail::outcome_base* of_;
};

}  // namespace weir
