// SPDX-License-Identifier: MIT
// The program in README.md; the tidy test compares the two.

#include <cstdio>
#include <weir/weir.hpp>
using namespace std::chrono_literals;

weir::task<int> slow(int value, weir::duration delay) {
  co_await weir::sleep(delay);
  co_return value;
}

weir::task<> program() {
  auto both = [](weir::scope& s) -> weir::task<int> {
    auto left = s.spawn(slow(40, 20ms));
    auto right = s.spawn(slow(2, 10ms));
    co_return co_await left + co_await right;
  };  // with_scope continues when the body and both children have ended, on every path
  std::printf("in time: %d\n", co_await weir::with_timeout(10s, weir::with_scope(both)));
  try {
    co_await weir::with_timeout(1ms, weir::with_scope(both));
  } catch (const weir::timeout_error&) {
    std::puts("too late: both children were cancelled and joined");
  }
}

int main() { weir::run(program()); }
