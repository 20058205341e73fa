// SPDX-License-Identifier: MIT
// A body that forgot its return type is an ordinary function, and would run before the group.
// EXPECT: must return weir::task
#include <weir/weir.hpp>

weir::task<int> caller() {
  co_return co_await weir::with_group([&](weir::group&) { return 1; });
}
