// SPDX-License-Identifier: MIT
// Part of <weir/suspend.hpp>, which includes it after the declarations it needs.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

template <class T, class F>
class suspend_wait : public suspend_wait_base {
  using canceller = std::invoke_result_t<F&, resumer<T>>;

 public:
  struct args {
    explicit args(F f) : fn(std::move(f)) {}
    F fn;
  };
  using result = T;

  explicit suspend_wait(args&& a) : fn_(std::move(a.fn)) {}
  T take() {
    if (core_->error != nullptr) std::rethrow_exception(core_->error);
    if constexpr (!std::is_void_v<T>) return std::move(*state().value);
  }

 private:
  suspend_state<T>& state() const noexcept { return static_cast<suspend_state<T>&>(*core_); }
  suspend_core* make_core() override { return new suspend_state<T>; }
  void call_start() override {
    if constexpr (std::is_void_v<canceller>) {
      fn_(resumer<T>(&state()));
    } else {
      stop_.emplace(fn_(resumer<T>(&state())));
    }
  }
  cancel_result call_canceller() override {
    if constexpr (std::is_void_v<canceller>) {
      return cancel_result::done;
    } else {
      return stop_ ? (*stop_)() : cancel_result::done;
    }
  }
  bool has_value() const noexcept override { return state().value.has_value(); }

  F fn_;
  std::optional<std::conditional_t<std::is_void_v<canceller>, char, canceller>> stop_;
};

}  // namespace detail
}  // namespace weir
