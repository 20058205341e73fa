// SPDX-License-Identifier: MIT
// A stream is pulled on the loop that it lives on.
// EXPECT: a future never leaves its loop
#include <weir/weir.hpp>

weir::task<> pull_elsewhere(weir::loop_ref other, weir::stream<int>& numbers) {
  (void)co_await weir::on(other, numbers.next());
}
