// SPDX-License-Identifier: MIT
// A job runs on a worker, and a future belongs to its loop.
// EXPECT: a future never leaves its loop
#include <weir/weir.hpp>

void caller(weir::pool& p, const weir::future<int>& running) { (void)p.run(running); }
