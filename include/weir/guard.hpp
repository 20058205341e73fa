// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <weir/context.hpp>
#include <weir/detail/core/guard.hpp>

namespace weir {

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
