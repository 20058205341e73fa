// SPDX-License-Identifier: MIT
// A result outlives the frame that made it, so a reference result would usually dangle.
// EXPECT: task<T&>
// ERRORS: 3
#include <weir/weir.hpp>

int global = 0;

weir::task<int&> reference() { co_return global; }

weir::task<int> caller() { co_return co_await reference(); }
