// SPDX-License-Identifier: MIT
// What may outlive its caller must not refer to the caller's locals.
// EXPECT: fn must not capture anything
#include <weir/weir.hpp>

weir::task<int> caller() {
  int local = 1;
  auto fn = [&] { return local; };
  co_return co_await weir::blocking(weir::may_abandon, fn);
}
