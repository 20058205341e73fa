// SPDX-License-Identifier: MIT
// A task runs once, so there is nothing that a retry could run again.
// EXPECT: give a callable
#include <weir/weir.hpp>

weir::task<int> fetch() { co_return 1; }

weir::task<int> caller() { co_return co_await (fetch() | weir::retry({.attempts = 3})); }
