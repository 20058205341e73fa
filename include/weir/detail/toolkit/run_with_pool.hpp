// SPDX-License-Identifier: MIT
// Part of <weir/pool.hpp>, which includes it after the declarations it needs.
#pragma once

#include <optional>
#include <type_traits>

#include <weir/detail/toolkit/remote.hpp>
#include <weir/loop_thread.hpp>
#include <weir/name.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

template <class F>
task<body_result_with<F, pool>> run_with_pool(pool_options options, kept_name name, F fn) {
  options.name = name.view();
  std::optional<pool> p;  // outlives the jobs, which may use it
  auto body = [&](scope& s) -> task<body_result_with<F, pool>> {
    p.emplace(s, options);
    if constexpr (std::is_void_v<body_result_with<F, pool>>) {
      co_await fn(*p);
      if (!p->closed()) co_await p->close();
    } else {
      auto value = co_await fn(*p);
      if (!p->closed()) co_await p->close();
      co_return value;
    }
  };
  scope_options around;
  around.name = options.name.empty() ? weir::name("pool") : options.name;
  co_return co_await with_scope(around, body);
}

}  // namespace detail
}  // namespace weir
