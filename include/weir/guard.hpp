// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <weir/context.hpp>

namespace weir {

namespace detail {

enum class guard_on : std::uint8_t { exit, success, failure };

/// Calls a function in its destructor, depending on how its block is left. Three outcomes: a normal
/// exit, an exception (more in flight than at construction), a cancellation (weir::unwinding()).
template <class F, guard_on When>
class [[nodiscard]] guard {
 public:
  explicit guard(F fn) : fn_(std::move(fn)), in_flight_(std::uncaught_exceptions()) {}
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard() noexcept(noexcept(std::declval<F&>()())) {
    const bool failed = unwinding() != nullptr || std::uncaught_exceptions() > in_flight_;
    if (When == guard_on::exit || failed == (When == guard_on::failure)) fn_();
  }

 private:
  F fn_;
  int in_flight_;
};

}  // namespace detail

/// Calls `fn` whenever the block is left.
template <class F>
auto scope_exit(F fn) {
  return detail::guard<F, detail::guard_on::exit>(std::move(fn));
}
/// Calls `fn` after a normal exit only.
template <class F>
auto scope_success(F fn) {
  return detail::guard<F, detail::guard_on::success>(std::move(fn));
}
/// Calls `fn` after an error or a cancellation.
template <class F>
auto scope_failure(F fn) {
  return detail::guard<F, detail::guard_on::failure>(std::move(fn));
}

}  // namespace weir
