// SPDX-License-Identifier: MIT
// A future belongs to its loop: awaiting it on another one would race.
// EXPECT: a future never leaves its loop
#include <weir/weir.hpp>

void caller(weir::loop_ref there, const weir::future<int>& running) {
  (void)weir::on(there, running);
}
