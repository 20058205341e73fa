// SPDX-License-Identifier: MIT
// test_clock advanced from another thread.
#include <atomic>
#include <thread>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

TEST(test_clock, another_thread_can_advance_a_loop_that_sleeps) {
  weir::test_clock clock;
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) clock.advance(6min);
  });
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    co_await weir::sleep(30min);
    auto half = weir::now() - t0;
    co_await weir::sleep(30min);
    auto whole = weir::now() - t0;
    EXPECT_GE(half, 30min);
    EXPECT_GE(whole - half, 30min);
  });
  done = true;
  other.join();
}
