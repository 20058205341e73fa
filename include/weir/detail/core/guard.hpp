// SPDX-License-Identifier: MIT
// The machinery of <weir/guard.hpp>.
#pragma once

#include <exception>
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
}  // namespace weir
