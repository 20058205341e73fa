// SPDX-License-Identifier: MIT
// burst_governor: more at once after a rest.
#include <vector>

#include "governor_support.hpp"

using namespace flow_test;
using weir::burst_governor;

namespace {

/// Takes what there is at once.
std::vector<weir::permit> all_free_permits(burst_governor& g) {
  std::vector<weir::permit> all;
  while (auto p = g.try_acquire()) all.push_back(std::move(*p));
  return all;
}

}  // namespace

FIBER_TEST(burst_governor, it_starts_rested_and_after_the_burst_only_the_steady_number_is_granted) {
  burst_governor g({.steady = 2, .burst = 5, .burst_for = 1s});
  EXPECT_EQ(g.limit(), 5);
  co_await weir::sleep(10s);  // a burst begins with its first permit
  auto held = all_free_permits(g);
  EXPECT_EQ(held.size(), 5U);
  co_await weir::sleep(999ms);
  held.pop_back();
  EXPECT_EQ(g.available(), 1);
  co_await weir::sleep(1ms);
  EXPECT_EQ(g.limit(), 2);
  EXPECT_EQ(g.available(), 0);
  EXPECT_EQ(g.active(), 4);  // nothing is revoked
  held.resize(2);
  EXPECT_FALSE(g.try_acquire().has_value());
  held.pop_back();
  EXPECT_TRUE(g.try_acquire().has_value());
}

FIBER_TEST(burst_governor, a_new_burst_needs_a_rest_of_the_same_length) {
  burst_governor g({.steady = 1, .burst = 3, .burst_for = 1s});
  all_free_permits(g).clear();
  co_await weir::sleep(500ms);
  EXPECT_EQ(all_free_permits(g).size(), 3U);  // the same burst goes on
  co_await weir::sleep(999ms);                // at 1499 ms it has ended, and was the rest too short
  EXPECT_EQ(all_free_permits(g).size(), 1U);
  co_await weir::sleep(999ms);
  EXPECT_EQ(g.available(), 1);
  co_await weir::sleep(1ms);
  EXPECT_EQ(g.available(), 3);
  EXPECT_EQ(all_free_permits(g).size(), 3U);
}

TEST(burst_governor, who_waits_at_the_end_of_a_burst_waits_for_the_steady_number) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      burst_governor g({.steady = 1, .burst = 2, .burst_for = 10ms});
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto work = [&](std::string name) -> task<> {
          auto permit = co_await g.acquire();
          log.push_back(name + " " + std::to_string(now_ms()));
          co_await weir::sleep(20ms);
        };
        const text_log names{"a", "b", "c", "d"};
        for (const std::string& name : names) {
          s.spawn(work(name));
          co_await weir::sleep(1ms);
        }
        co_await s.join();
      });
      EXPECT_EQ(g.active(), 0);
      EXPECT_EQ(live_timers(), 0);
    });
    // a and b run together; when a ends the burst is over, and b still holds the one that is steady
    EXPECT_EQ(joined(log), "a 0,b 1,c 21,d 41");
  });
}

TEST(burst_governor, options_that_make_no_sense_are_refused_with_their_name) {
  auto error = thrown_by(
      [] { burst_governor g({.name = "api", .steady = 0, .burst = 1, .burst_for = 1s}); });
  EXPECT_EQ(code_of(error), errc::invalid_argument);
  EXPECT_TRUE(contains(what_of(error), "burst_governor 'api': steady")) << what_of(error);
  EXPECT_EQ(refused([] { burst_governor g({.steady = 2, .burst = 1, .burst_for = 1s}); }),
            errc::invalid_argument);
  EXPECT_EQ(refused([] { burst_governor g({.steady = 1, .burst = 2}); }), errc::invalid_argument);
  static_assert(std::is_trivially_destructible_v<weir::burst_options>);
}

TEST(burst_governor, a_permit_that_comes_back_after_its_loop_has_ended_is_counted) {
  burst_governor g({.steady = 1, .burst = 2, .burst_for = 1s});
  weir::permit held;
  simulate([&]() -> task<> {
    co_await weir::sleep(1h);
    held = co_await g.acquire();
  });
  held.release();
  EXPECT_EQ(g.active(), 0);
  simulate([&]() -> task<> {
    EXPECT_EQ(all_free_permits(g).size(),
              1U);  // the rest begins anew on a clock that shows an earlier time
    co_await weir::sleep(1s);
    EXPECT_EQ(g.limit(), 2);
  });
}
