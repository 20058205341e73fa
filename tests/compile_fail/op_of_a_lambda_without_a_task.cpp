// SPDX-License-Identifier: MIT
// A policy is applied to what takes time: the callable returns a task or a wait.
// EXPECT: weir::op takes a callable that returns a weir::task or a wait
#include <weir/weir.hpp>

auto operation() {
  return weir::op([] { return 1; }) | weir::retry({.attempts = 3});
}
