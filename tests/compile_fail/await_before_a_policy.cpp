// SPDX-License-Identifier: MIT
// co_await binds tighter than |: the policy gets the result, not the operation.
// EXPECT: write co_await (f() | policy) with parentheses
#include <chrono>
#include <weir/weir.hpp>

weir::task<int> fetch() { co_return 1; }

weir::task<int> caller() { co_return co_await fetch() | weir::timeout(std::chrono::seconds(1)); }
