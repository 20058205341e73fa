// SPDX-License-Identifier: MIT
// A governor belongs to a loop: what waits for a permit is linked into it.
// EXPECT: nor does a wait for something
#include <weir/weir.hpp>

void caller(weir::loop_ref there, weir::counting_governor& g) {
  (void)weir::on(there, g.acquire());
}
