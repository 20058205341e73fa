// SPDX-License-Identifier: MIT
// sim::run: virtual time and the strategies fifo and random, which depend on seed and program only.
#include <memory>
#include <set>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

sim::options with_seed(std::uint64_t seed) {
  sim::options options{};
  options.seed = seed;
  options.strategy = sim::random;
  return options;
}

/// Its cleanup takes longer than the grace of the program, but can be stopped.
task<> cleans_up_for_an_hour(weir::context& c) {
  c.defer([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      for (int i = 0; i < 3; ++i) s.spawn([]() -> task<> { co_await weir::sleep(1h); });
      co_await weir::sleep(1h);
    });
  });
  co_return;
}

}  // namespace

TEST(sim_run, it_returns_the_value_and_throws_the_error) {
  for_each_seed([](sim::options options) {
    EXPECT_EQ(sim::run(options, after(24h, 5)), 5);
    auto box = sim::run(options,
                        []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(6); });
    EXPECT_EQ(*box, 6);
    auto error = thrown_by([&] { return sim::run(options, fails_after(24h, 7)); });
    EXPECT_EQ(boom_of(error), 7);
  });
}

FIBER_TEST(sim_run, inside_a_simulation_another_run_is_refused) {
  auto simulated = thrown_by([] { return sim::run({.seed = 1}, ready(1)); });
  auto real = thrown_by([] { return weir::run(ready(1)); });
  EXPECT_EQ(code_of(simulated), weir::errc::nested_run);
  EXPECT_EQ(code_of(real), weir::errc::nested_run);
  co_return;
}

TEST(sim_run, fifo_is_the_order_of_production) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(sim::run({.seed = seed}, conversation(3, 3)), "abcabcabc");
    EXPECT_EQ(sim::run({.seed = seed}, wake_order(4)), "abcd");
  }
  EXPECT_EQ(weir::run(conversation(3, 3)), "abcabcabc");
}

TEST(sim_run, under_random_one_seed_gives_one_order) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_EQ(sim::run(with_seed(seed), conversation(3, 5)),
              sim::run(with_seed(seed), conversation(3, 5)));
    EXPECT_EQ(sim::run(with_seed(seed), wake_order(5)), sim::run(with_seed(seed), wake_order(5)));
  }
}

TEST(sim_run, under_random_different_seeds_give_different_orders) {
  std::set<std::string> talks, wakes;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::string talk = sim::run(with_seed(seed), conversation(3, 5));
    for (char name : {'a', 'b', 'c'}) EXPECT_EQ(std::count(talk.begin(), talk.end(), name), 5);
    talks.insert(talk);
    wakes.insert(sim::run(with_seed(seed), wake_order(4)));
  }
  EXPECT_GT(talks.size(), 100u);
  EXPECT_GT(wakes.size(), 10u);  // of 24
}

TEST(sim_run, random_finds_the_lost_update_that_fifo_hides) {
  auto deposit = [](int& account, int delay) -> task<> {
    for (int i = 0; i < delay; ++i) co_await weir::yield();
    int seen = account;
    co_await weir::yield();
    account = seen + 1;
  };
  auto transfer = [&]() -> task<int> {
    int account = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(deposit(account, 0));
      s.spawn(deposit(account, 4));
      co_await s.join();
    });
    co_return account;
  };
  EXPECT_EQ(sim::run({.seed = 1}, transfer), 2);
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    lost += sim::run(with_seed(seed), transfer) == 1;
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 200);
}

TEST(sim_run, under_random_also_a_ready_await_may_give_up_the_turn) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    orders.insert(sim::run(with_seed(seed), []() -> task<std::string> {
      std::string log;
      auto worker = [&](char name) -> task<> {
        log += name;
        (void)co_await ready(1);
        log += name;
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(worker('a'));
        s.spawn(worker('b'));
        co_await s.join();
      });
      co_return log;
    }));
  }
  EXPECT_TRUE(orders.contains("aabb"));
  EXPECT_TRUE(orders.contains("abab") || orders.contains("abba")) << orders.size();
}

TEST(sim_run, a_fiber_that_only_yields_does_not_starve_the_others) {
  for_each_seed([](sim::options options) {
    sim::run(options, []() -> task<> {
      bool stop = false;
      int turns = 0;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          while (!stop) {
            ++turns;
            co_await weir::yield();
          }
        });
        s.spawn([&]() -> task<> {
          for (int i = 0; i < 3; ++i) co_await weir::yield();
          stop = true;
        });
        co_await s.join();
      });
      EXPECT_LE(turns, 4 * 1001);
    });
  });
}

TEST(sim_run, every_run_begins_at_the_same_time) {
  auto start = [](std::uint64_t seed) {
    return sim::run(with_seed(seed), []() -> task<weir::time_point> {
      auto t0 = weir::now();
      co_await weir::sleep(1h);
      EXPECT_EQ(weir::now() - t0, 1h);
      co_return t0;
    });
  };
  EXPECT_EQ(start(1), start(1));
  EXPECT_EQ(start(1), start(2));
}
TEST(sim_run, a_deadlock_is_an_error_with_the_tree) {
  for_each_seed([](sim::options options) {
    auto error = thrown_by([&] {
      sim::run(options, []() -> task<> {
        weir::counting_governor g(0, {.name = "gate"});
        auto wait = [&]() -> task<> { (void)co_await g.acquire(); };
        co_await weir::with_scope({.name = "yard"}, [&](weir::scope& s) -> task<> {
          s.spawn(wait, {.name = "horse"});
          co_await s.join();
        });
      });
    });
    EXPECT_EQ(code_of(error), weir::errc::deadlock);
    EXPECT_TRUE(holds<weir::error>(error));
    for (const char* part : {"yard", "horse", "gate"})
      EXPECT_TRUE(contains(what_of(error), part)) << what_of(error);
  });
}

TEST(sim_run, nobody_is_called_overdue_who_is_about_to_stop) {
  testing::internal::CaptureStderr();
  for_each_seed([](const sim::options& options) {
    sim::world w(options);
    (void)w.loop("another");
    const auto error = thrown_by([&] { w.run(cleans_up_for_an_hour); });
    EXPECT_TRUE(contains(what_of(error), "its grace was over")) << what_of(error);
  });
  weir::test_clock clock;
  clock.auto_advance(true);
  const auto error = thrown_by([&] { weir::run({.clock = &clock}, cleans_up_for_an_hour); });
  EXPECT_TRUE(contains(what_of(error), "its grace was over")) << what_of(error);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}
