// SPDX-License-Identifier: MIT
// A coroutine runs on a loop, not on a thread of the blocking pool.
// EXPECT: weir::blocking takes a plain function that blocks
#include <weir/weir.hpp>

weir::task<> work() { co_return; }

weir::task<> caller() { co_await weir::blocking(work); }
