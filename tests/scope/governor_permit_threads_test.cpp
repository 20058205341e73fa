// SPDX-License-Identifier: MIT
// A permit may be released on any thread: one message goes home and wakes the next waiter.
#include <thread>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;
TEST(permit, released_on_another_thread_wakes_a_waiter_at_home) {
  weir::run([]() -> task<> {
    weir::counting_governor g(1);
    for (int i = 0; i < 100; ++i) {
      weir::permit held = co_await g.acquire();
      std::thread other([&] { held.release(); });
      // A plain thread does not keep a loop alive: the timer does while the message is on its way.
      weir::permit next = co_await g.acquire_for(1h);
      other.join();
      EXPECT_EQ(static_cast<long>(g.active()), 1);
    }
    EXPECT_EQ(static_cast<long>(g.available()), 1);
  });
}

TEST(permit, destroyed_on_another_thread_comes_home) {
  weir::run([]() -> task<> {
    weir::counting_governor g(2);
    {
      weir::permit held = co_await g.acquire(2);
      std::thread([p = std::move(held)] { (void)p; }).join();
    }
    auto one = co_await g.acquire_for(1h);
    EXPECT_EQ(static_cast<long>(g.active()), 1);
    EXPECT_EQ(static_cast<long>(g.available()), 1);
  });
}
