// SPDX-License-Identifier: MIT
// "Items' destructors may use the container they came from": what a job of a pool holds uses the
// pool when it is destroyed, because the job ran, was taken back, was refused or was dropped.
#include <functional>

#include "hostile_support.hpp"
#include "toolkit_support.hpp"

using namespace weir_test;

TEST(job_destructor, uses_the_pool_that_drops_it) {
  const std::vector<std::function<void(weir::pool&)>> deeds = {
      [](weir::pool& p) { (void)p.try_submit([] {}); },
      [](weir::pool& p) { p.cancel(weir::cancel_reason(weir::cancel_kind::user, "hostile")); },
  };
  for (const auto& does : deeds) {
    hostile::alive = 0;
    in_order([&]() -> task<> {
      std::function<void()> act;
      co_await weir::with_pool({.workers = 1, .queue_size = 3}, [&](weir::pool& p) -> task<> {
        for (int i = 0; i < 6; ++i) (void)p.try_submit([item = hostile(&act)] {});
        act = [&] { does(p); };
        co_await weir::sleep(1ms);  // they have run
        auto lasts = [item = hostile(&act)]() -> task<> { co_await weir::sleep(1h); };
        for (int i = 0; i < 6; ++i) (void)p.try_submit(lasts);
        auto late = [item = hostile(&act)] { return 1; };
        auto given_up = co_await weir::settle(weir::with_timeout(1ms, p.run(late)));
        EXPECT_FALSE(given_up.is_value());
        p.cancel(weir::cancel_reason(weir::cancel_kind::user, "the end"));
        auto closed = co_await weir::settle(p.close());
        EXPECT_TRUE(closed.is_value());
        act = nullptr;
      });
    });
    EXPECT_EQ(hostile::alive, 0);
  }
}
