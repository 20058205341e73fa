// SPDX-License-Identifier: MIT
// A wait runs once, also behind a policy that runs it once: a hedge would need it twice.
// EXPECT: run an operation more than once
#include <weir/weir.hpp>

weir::task<> caller() {
  using namespace std::chrono_literals;
  co_await (weir::sleep(1ms) | weir::timeout(1s) | weir::hedge({.after = 1ms}));
}
