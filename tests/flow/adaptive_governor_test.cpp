// SPDX-License-Identifier: MIT
// adaptive_governor: a limit that is found by the time that permits are held.
#include <algorithm>
#include <vector>

#include "governor_support.hpp"

using namespace flow_test;
using weir::adaptive_governor;

namespace {

/// A window of the governor's: so many permits, `at_once` of them at a time, each for `d`.
task<> window(adaptive_governor& g, int at_once, weir::duration d) {
  const auto size = std::max<std::int64_t>(10, 2 * g.limit());
  std::int64_t left = size;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto worker = [&]() -> task<> {
      while (left > 0) {
        --left;
        auto permit = co_await g.acquire();
        co_await weir::sleep(d);
      }
    };
    for (int i = 0; i < at_once; ++i) s.spawn(worker());
    co_await s.join();
  });
}

/// A server that works on `cores` requests at once; more wait for it.
struct server {
  weir::counting_governor cores;
  weir::duration each;
  task<> call() {
    auto core = co_await cores.acquire();
    co_await weir::sleep(each);
  }
};

task<> client(adaptive_governor& g, server& to) {
  for (;;) {
    auto permit = co_await g.acquire();
    co_await to.call();
  }
}

}  // namespace

FIBER_TEST(adaptive_governor, the_limit_grows_by_its_root_while_the_time_stays_the_same) {
  adaptive_governor g({.initial = 16, .max = 30});
  EXPECT_EQ(g.limit(), 16);
  co_await window(g, 16, 10ms);
  EXPECT_EQ(g.limit(), 20);  // 16 + 4
  co_await window(g, 20, 10ms);
  EXPECT_EQ(g.limit(), 24);  // 20 + 4.47
  for (int i = 0; i < 5; ++i) co_await window(g, static_cast<int>(g.limit()), 10ms);
  EXPECT_EQ(g.limit(), 30);
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(adaptive_governor, growth_is_at_most_half_of_the_limit_in_a_window) {
  adaptive_governor g({.initial = 1});
  std::vector<long> limits;
  for (int i = 0; i < 5; ++i) {
    co_await window(g, static_cast<int>(g.limit()), 10ms);
    limits.push_back(static_cast<long>(g.limit()));
  }
  EXPECT_EQ(limits, (std::vector<long>{1, 2, 3, 5, 7}));  // 1.5 2.25 3.37 5.06 7.31
}

FIBER_TEST(adaptive_governor, the_limit_shrinks_by_the_gradient_at_most_to_the_half_and_to_min) {
  adaptive_governor g({.initial = 100, .min = 20, .max = 100});
  co_await window(g, 100, 10ms);
  EXPECT_EQ(g.limit(), 100);
  co_await window(g, 100, 12500us);
  EXPECT_EQ(g.limit(), 80);  // 10 / 12.5
  co_await window(g, 80, 100ms);
  EXPECT_EQ(g.limit(), 40);
  co_await window(g, 40, 100ms);
  co_await window(g, 20, 100ms);
  EXPECT_EQ(g.limit(), 20);
}

FIBER_TEST(adaptive_governor, a_window_in_which_less_than_half_is_in_use_changes_nothing) {
  adaptive_governor g({.initial = 20});
  co_await window(g, 9, 10ms);
  EXPECT_EQ(g.limit(), 20);
  co_await window(g, 9, 10s);
  EXPECT_EQ(g.limit(), 20);
  co_await window(g, 10, 10ms);
  EXPECT_GT(g.limit(), 20);
}

FIBER_TEST(adaptive_governor, under_a_load_step_it_finds_what_the_server_can_do) {
  adaptive_governor g({.initial = 20, .max = 200});
  server s{weir::counting_governor(30), 10ms};
  std::vector<long> settled;
  co_await weir::with_scope([&](weir::scope& owner) -> task<> {
    for (int i = 0; i < 300; ++i) owner.background(client(g, s));
    co_await weir::sleep(2s);
    settled.push_back(static_cast<long>(g.limit()));
    s.cores.resize(10);  // the server loses most of its cores
    co_await weir::sleep(1s);
    settled.push_back(static_cast<long>(g.limit()));
    s.cores.resize(30);
    co_await weir::sleep(3s);
    settled.push_back(static_cast<long>(g.limit()));
  });
  EXPECT_GE(settled.at(0), 30) << "all cores are used";
  EXPECT_LE(settled.at(0), 60) << "and no queue of 170 is built up at the server";
  EXPECT_LE(settled.at(1), settled.at(0) / 2) << "with a third of the cores it gives way";
  EXPECT_GE(settled.at(2), 30) << "and comes back";
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST_IN_EVERY_ORDER(adaptive_governor, a_permit_that_is_released_elsewhere_is_measured_too) {
  adaptive_governor g({.initial = 1});
  for (int i = 0; i < 10; ++i) {
    auto permit = co_await g.acquire();
    w.loop("peer").post([&] { permit.release(); });
    while (g.active() > 0) co_await weir::sleep(1ms);
  }
  for (int i = 0; i < 10; ++i) (void)co_await g.acquire();
  EXPECT_EQ(g.limit(), 2);  // two windows: 1.5, 2.25
}

TEST(adaptive_governor, a_permit_that_comes_back_after_its_loop_has_ended_is_not_measured) {
  adaptive_governor g({.initial = 10});
  for (int i = 0; i < 30; ++i) {
    weir::permit held;
    simulate([&]() -> task<> { held = co_await g.acquire(); });
    held.release();
  }
  EXPECT_EQ(g.limit(), 10);
  EXPECT_EQ(g.active(), 0);
}

TEST(adaptive_governor, options_that_make_no_sense_are_refused_with_their_name) {
  auto error = thrown_by([] { adaptive_governor g({.name = "api", .min = 0}); });
  EXPECT_EQ(code_of(error), errc::invalid_argument);
  EXPECT_TRUE(contains(what_of(error), "adaptive_governor 'api': min")) << what_of(error);
  EXPECT_EQ(refused([] { adaptive_governor g({.initial = 5, .max = 4}); }), errc::invalid_argument);
  EXPECT_EQ(refused([] { adaptive_governor g({.initial = 5, .min = 6}); }), errc::invalid_argument);
  EXPECT_EQ(refused([] { adaptive_governor g({.initial = 5, .min = 5, .max = 4}); }),
            errc::invalid_argument);
  adaptive_governor plain;
  EXPECT_EQ(plain.limit(), 20);
  static_assert(std::is_trivially_destructible_v<weir::adaptive_options>);
}
