// SPDX-License-Identifier: MIT
// Part of <weir/governor/governor.hpp>, which includes it after the declarations it needs.
#pragma once

#include <type_traits>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/task.hpp>

namespace weir {

namespace detail {

[[noreturn]] void raise_both(std::exception_ptr first, std::exception_ptr second);

template <class T, class G, class Op>
task<T> run_with(G& g, Op op) {
  permit held = co_await g.acquire();
  outcome<T> out;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await detail::as_task(op, this_context());
      out.emplace();
    } else {
      out.emplace(co_await detail::as_task(op, this_context()));
    }
  } catch (...) {
    out.set_error(std::current_exception());
  }
  try {
    held.release();
  } catch (...) {
    if (out.is_error()) raise_both(out.error(), std::current_exception());
    throw;
  }
  co_return out.take();
}

}  // namespace detail
}  // namespace weir
