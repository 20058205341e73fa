// SPDX-License-Identifier: MIT
// co_await binds tighter than |: what is awaited here is the stream.
// EXPECT: write co_await (s | sink) with parentheses
#include <weir/weir.hpp>

weir::stream<int> numbers() { co_yield 1; }

weir::task<> consumer() {
  auto all = co_await numbers() | weir::map([](int i) { return i; }) | weir::to_vector();
  (void)all;
}
