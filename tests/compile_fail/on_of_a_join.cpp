// SPDX-License-Identifier: MIT
// What waits for the children of a scope is linked into that scope.
// EXPECT: nor does a wait for something
#include <weir/weir.hpp>

void caller(weir::loop_ref there, weir::scope& s) { (void)weir::on(there, s.idle()); }
