// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/toolkit/policy_event.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// `op | fallback(fn)`: the result of `fn` if `op` failed. `fn` is plain or returns a task, and
/// takes nothing or the error (a `std::exception_ptr`). If it fails too, its error is the result
/// and the first is suppressed (event and `outcome::suppressed()`). It never runs after a
/// cancellation.
template <class F>
class fallback : public detail::policy_of<fallback<F>> {
  static constexpr bool takes_nothing = std::is_invocable_v<F&>;
  static_assert(takes_nothing || std::is_invocable_v<F&, const std::exception_ptr&>,
                "a fallback is called with nothing or with the error, a std::exception_ptr");

 public:
  explicit fallback(F fn) : fn_(std::move(fn)) {
    if (detail::is_empty_callable(fn_)) detail::raise_empty_job();
  }

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    outcome<T> out;
    auto call = [&] { return detail::attempt_task(op); };
    co_await detail::into(out, call);
    if (out.is_error()) {
      const std::exception_ptr original = out.error();
      outcome<T> instead;
      auto replace = [&] { return replacement<T>(policy.fn_, original); };
      co_await detail::into(instead, replace);
      if (instead.is_error()) detail::suppress(instead, original, "fallback");
      out.adopt(std::move(instead));
    }
    co_await detail::finish_as(out);
    co_return out.take();
  }

 private:
  static decltype(auto) call(F& fn, const std::exception_ptr& error) {
    if constexpr (takes_nothing) {
      return fn();
    } else {
      return fn(error);
    }
  }
  template <class T>
  static task<T> replacement(F& fn, const std::exception_ptr& error) {
    using made = decltype(call(fn, error));
    using plain = std::remove_cvref_t<made>;
    if constexpr (detail::is_task<plain> && std::is_same_v<plain, task<T>>) {
      return call(fn, error);
    } else if constexpr (detail::direct_op<plain>) {
      return awaited<T>(fn, error);
    } else {
      static_assert(std::is_void_v<T> || std::is_convertible_v<made, T>,
                    "a fallback gives what its operation gives");
      return plain_value<T>(fn, error);
    }
  }
  template <class T>
  static task<T> awaited(F& fn, const std::exception_ptr& error) {
    auto made = call(fn, error);
    co_return co_await detail::as_task(made, *detail::current->top);
  }
  template <class T>
  static task<T> plain_value(F& fn, const std::exception_ptr& error) {
    if constexpr (std::is_void_v<T>) {
      (void)call(fn, error);
      co_return;
    } else {
      co_return call(fn, error);
    }
  }

  F fn_;
};

}  // namespace weir
