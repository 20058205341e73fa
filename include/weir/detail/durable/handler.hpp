// SPDX-License-Identifier: MIT
// Type-erased handlers of durable runs.
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/durable/command.hpp>
#include <weir/durable/serde.hpp>
#include <weir/scope.hpp>
#include <weir/task.hpp>

namespace weir::detail {

class handler_base {
 public:
  handler_base() = default;
  handler_base(const handler_base&) = delete;
  handler_base& operator=(const handler_base&) = delete;
  virtual ~handler_base() = default;
  /// One run, in the fiber that awaits it: from the encoded input to the encoded result. Throws at
  /// once if the input cannot be decoded.
  virtual task<std::string> invoke(std::string_view input) const = 0;
  std::source_location added;  // where it was added to the engine
  handler_kind kind = handler_kind::plain;
};

/// The result and parameters of a callable with one call operator.
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

/// The parameters of a handler: none, an input, a scope, or a scope and an input.
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
  // An undecodable input is detected here, before any of the run's code starts.
  task<std::string> invoke(std::string_view text) const override {
    if constexpr (std::is_void_v<input>) {
      return run(fn_, unit());
    } else {
      return run(fn_, decode_as<input>(text, "the input of the handler", ""));
    }
  }

 private:
  struct unit {};
  using given_t = std::conditional_t<std::is_void_v<input>, unit, input>;

  // Each run has a copy of the callable, which lives as long as its coroutine.
  static task<std::string> run(F fn, given_t given) {
    if constexpr (args::wants_scope) {
      auto body = [&](scope& s) { return call(fn, given, s); };
      co_return co_await with_scope({.name = "run"}, body);
    } else {  // as in `finish`, without its frame
      task<value> work = start(fn, given);
      current_run->handler_begins(frame_of(work.handle()).function);
      if constexpr (std::is_void_v<value>) {
        co_await std::move(work);
        co_return encode<void>();
      } else {
        const value result = co_await std::move(work);
        co_return encode(result);
      }
    }
  }
  static task<value> start(F& fn, [[maybe_unused]] given_t& given) {
    if constexpr (std::is_void_v<input>) {
      return fn();
    } else {
      return fn(std::move(given));
    }
  }
  static task<std::string> call(F& fn, [[maybe_unused]] given_t& given, scope& s) {
    if constexpr (std::is_void_v<input>) {
      return finish(fn(s));
    } else {
      return finish(fn(s, std::move(given)));
    }
  }
  static task<std::string> finish(task<value> work) {
    current_run->handler_begins(frame_of(work.handle()).function);
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
std::shared_ptr<const handler_base> make_handler(F fn, std::source_location site,
                                                 handler_kind kind = handler_kind::plain) {
  static_assert(std::is_copy_constructible_v<F>, "a durable handler is copied for each run");
  static_assert(
      std::is_pointer_v<F> || requires { &F::operator(); },
      "a durable handler has one call operator: give its parameters types");
  if (is_empty_callable(fn)) raise_empty_job();
  auto made = std::make_shared<handler_of<F>>(std::move(fn));
  made->added = site;
  made->kind = kind;
  return made;
}

}  // namespace weir::detail
