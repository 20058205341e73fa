// SPDX-License-Identifier: MIT
// What the tests of pools share.
#pragma once

#include <cstdint>
#include <string_view>

#include "toolkit_support.hpp"

namespace weir_test {

inline weir::pool_options sized(std::int64_t workers, std::int64_t queue_size,
                                std::string_view name = "p") {
  return {.name = name, .workers = workers, .queue_size = queue_size};
}

/// A program that runs `body(scope&, pool&)`. What jobs capture must outlive the scope.
template <class F>
auto pooled(std::int64_t workers, std::int64_t queue_size, F body) {
  return [=]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(workers, queue_size));
      co_await body(s, p);
    });
  };
}

/// Fibers run and simulated threads get their messages; no virtual time passes that matters.
inline task<> settled() { co_await weir::sleep(1us); }

}  // namespace weir_test
