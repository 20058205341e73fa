// SPDX-License-Identifier: MIT
// The body of with_pool is awaited, so it is a coroutine.
// EXPECT: must return weir::task
#include <weir/weir.hpp>

void caller() {
  (void)weir::with_pool([](weir::pool&) { return 1; });
}
