// SPDX-License-Identifier: MIT
// The object is made on the agent's loop, so a mistake in its arguments must be found here.
// EXPECT: the agent cannot be constructed from these arguments
#include <weir/weir.hpp>

struct counter {
  explicit counter(int) {}
};
void maker(weir::scope& s) { (void)weir::spawn_agent<counter>(s, {}, "five"); }
