// SPDX-License-Identifier: MIT
// The machinery of <weir/operation.hpp>.
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/pipe.hpp>

namespace weir {

namespace detail {

/// A callable as the innermost operation of a pipeline.
template <class F>
class callable_operation {
 public:
  using value = result_t<F>;

  template <class G>
  explicit callable_operation(std::in_place_t, G&& fn) : fn_(std::forward<G>(fn)) {}

  task<value> operator()() const {
    if constexpr (std::is_copy_constructible_v<F>) {
      return keep(std::as_const(fn_));
    } else {
      return attempt_task(fn_);
    }
  }

  // Below: for the library.
  auto weir_await() && { return keep(std::move(fn_)).weir_await(); }
  task<value> weir_start(context& c) { return detail::as_task(fn_, c); }

 private:
  static task<value> keep(F fn) { co_return co_await attempt_task(fn); }
  mutable F fn_;  // a callable may change itself when it is called
};

template <class F>
inline constexpr bool wants_context<callable_operation<F>> = wants_context<F>;

}  // namespace detail
}  // namespace weir
