// SPDX-License-Identifier: MIT
// A generic body is instantiated before anything is said about it, so its own error comes first.
// EXPECT: spwan
// NOT: takes a weir::scope
#include <weir/weir.hpp>

weir::task<> caller() {
  co_await weir::with_scope([](auto& s) -> weir::task<> {
    s.spwan(1);
    co_return;
  });
}
