// SPDX-License-Identifier: MIT
// Handlers of durable runs without their types.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <weir/detail/command.hpp>
#include <weir/scope.hpp>
#include <weir/serde.hpp>
#include <weir/task.hpp>

namespace weir::detail {

class handler_base {
 public:
  handler_base() = default;
  handler_base(const handler_base&) = delete;
  handler_base& operator=(const handler_base&) = delete;
  virtual ~handler_base() = default;
  /// One run, in the fiber that awaits it: from the encoded input to the encoded result.
  virtual task<std::string> invoke(std::string input) const = 0;
};

/// The result and the parameters of a callable that has one call operator.
template <class F>
struct signature_of : signature_of<decltype(&F::operator())> {};
template <class R, class... Args>
struct signature_of<R (*)(Args...)> {
  using result = R;
  template <template <class...> class To>
  using apply = To<Args...>;
};
template <class R, class... Args>
struct signature_of<R (*)(Args...) noexcept> : signature_of<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...)> : signature_of<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...) const> : signature_of<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...) noexcept> : signature_of<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...) const noexcept> : signature_of<R (*)(Args...)> {};

/// What a handler takes: nothing, an input, a scope, or a scope and an input.
template <class... Args>
struct handler_args {
  static_assert(sizeof...(Args) > 99,
                "a durable handler takes (), (I), (weir::scope&) or "
                "(weir::scope&, I)");
};
template <>
struct handler_args<> {
  using input = void;
  static constexpr bool wants_scope = false;
};
template <class I>
struct handler_args<I> {
  using input = std::remove_cvref_t<I>;
  static constexpr bool wants_scope = false;
};
template <>
struct handler_args<scope&> {
  using input = void;
  static constexpr bool wants_scope = true;
};
template <class I>
struct handler_args<scope&, I> {
  using input = std::remove_cvref_t<I>;
  static constexpr bool wants_scope = true;
};

template <class F>
class handler_of final : public handler_base {
  using signature = signature_of<F>;
  using args = typename signature::template apply<handler_args>;
  using input = typename args::input;
  static_assert(is_task<typename signature::result>,
                "a durable handler returns weir::task<R> (make it a coroutine)");
  using value = typename signature::result::value_type;

 public:
  explicit handler_of(F fn) : fn_(std::move(fn)) {}
  task<std::string> invoke(std::string text) const override { return run(fn_, std::move(text)); }

 private:
  // Each run has a copy of the callable, which lives as long as its coroutine.
  static task<std::string> run(F fn, std::string text) {
    if constexpr (args::wants_scope) {
      auto body = [&](scope& s) { return call(fn, text, &s); };
      co_return co_await with_scope({.name = "run"}, body);
    } else {
      co_return co_await call(fn, text, nullptr);
    }
  }
  static task<std::string> call(F& fn, const std::string& text, scope* s) {
    if constexpr (std::is_void_v<input>) {
      if constexpr (args::wants_scope) {
        co_return co_await finish(fn(*s));
      } else {
        co_return co_await finish(fn());
      }
    } else {
      input given = decode_as<input>(text, "the input of the handler", "");
      if constexpr (args::wants_scope) {
        co_return co_await finish(fn(*s, std::move(given)));
      } else {
        co_return co_await finish(fn(std::move(given)));
      }
    }
  }
  static task<std::string> finish(task<value> work) {
    if constexpr (std::is_void_v<value>) {
      co_await std::move(work);
      co_return encode<void>();
    } else {
      const value result = co_await std::move(work);
      co_return encode(result);
    }
  }

  F fn_;
};

template <class F>
std::shared_ptr<const handler_base> make_handler(F fn) {
  static_assert(std::is_copy_constructible_v<F>, "a durable handler is copied for each run");
  static_assert(
      std::is_pointer_v<F> || requires { &F::operator(); },
      "a durable handler has one call operator: give its parameters types");
  if (is_empty_callable(fn)) raise_empty_job();
  return std::make_shared<handler_of<F>>(std::move(fn));
}

}  // namespace weir::detail
