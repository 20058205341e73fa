// SPDX-License-Identifier: MIT
// g++-12 destroys an aggregate twice if it is brace-initialised in a full-expression with an await
// (docs/compilers.md). A library cannot detect `co_await q.push(row{text, 1})`, but it can reject
// `co_await q.push({text, 1})`.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace weir::detail {

template <class T>
inline constexpr bool destroyed_twice =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_aggregate_v<T> && !std::is_trivially_destructible_v<T>;
#else
    false;
#endif

/// Constructible from a `T`, but not from braces.
template <class T>
class no_braces {
 public:
  template <std::convertible_to<T> U>
  explicit(false) no_braces(U&& value) : value_(std::forward<U>(value)) {}
  template <class A, class B, class... C>
  explicit(false) no_braces(A&&, B&&, C&&...) {
    static_assert(!destroyed_twice<T>,
                  "g++-12 destroys an aggregate twice that braces make in a co_await or co_yield "
                  "expression: make it in a statement of its own and std::move it");
  }
  operator T&&() && noexcept { return std::move(value_); }

 private:
  T value_;
};

/// A parameter `T` of a function whose call is awaited.
template <class T>
using awaited_argument = std::conditional_t<destroyed_twice<T>, no_braces<T>, T>;

}  // namespace weir::detail
