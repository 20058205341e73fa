// SPDX-License-Identifier: MIT
// What waits for the jobs of a group is linked into that group.
// EXPECT: nor does a wait for something
#include <weir/weir.hpp>

void caller(weir::pool& p, weir::group& g) { (void)p.try_submit(g.wait()); }
