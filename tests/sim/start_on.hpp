// SPDX-License-Identifier: MIT
// Fibers on named loops. They get there through the library's inside: no public operation of this
// layer starts one on another loop.
#pragma once

#include <utility>

#include "core/loop.hpp"
#include "support/test_support.hpp"

namespace weir_test {

/// Starts `op` as a child of the root scope of a named loop.
template <class Op>
void start_on(weir::loop_ref there, Op op) {
  ASSERT_TRUE(there.post([op = std::move(op)]() mutable {
    (void)weir::detail::loop::here()->root_scope()->spawn(std::move(op));
  }));
}

}  // namespace weir_test
