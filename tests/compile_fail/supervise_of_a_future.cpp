// SPDX-License-Identifier: MIT
// A future is a run with another owner: observing it again does not run it again.
// EXPECT: give a callable
#include <weir/weir.hpp>

void caller(const weir::future<int>& running) { (void)(running | weir::supervise()); }
