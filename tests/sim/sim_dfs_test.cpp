// SPDX-License-Identifier: MIT
// dfs: every run of a small program up to a number of preemptions, fewest first.
#include <set>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

sim::report search(int preemptions, int times) {
  return sim::explore({.runs = 100'000, .strategy = sim::dfs(preemptions)},
                      [=] { return transfers(times); });
}

task<> log_around_a_ready_await(std::string& log, char name) {
  log += name;
  (void)co_await ready(1);
  log += name;
}

task<std::string> two_ready_awaits() {
  std::string log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (char name : {'a', 'b'}) s.spawn(log_around_a_ready_await(log, name));
    co_await s.join();
  });
  co_return log;
}

}  // namespace

TEST(dfs, it_exhausts_a_small_program_and_says_so) {
  std::set<std::string> orders;
  auto report = sim::explore({.runs = 100'000, .strategy = sim::dfs(6)},
                             [&]() -> task<> { orders.insert(co_await conversation(2, 2)); });
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_TRUE(report.exhausted());
  EXPECT_LT(report.runs(), 100'000);
  EXPECT_EQ(orders, (std::set<std::string>{"aabb", "abab", "abba", "baab", "baba", "bbaa"}));
}

TEST(dfs, without_preemptions_it_makes_the_run_of_fifo_and_no_other) {
  auto only_run = [](auto program) {
    std::set<std::string> seen;
    auto report = sim::explore({.runs = 100, .strategy = sim::dfs(0)},
                               [&]() -> task<> { seen.insert(co_await program()); });
    EXPECT_TRUE(report.ok()) << report;
    EXPECT_TRUE(report.exhausted());
    EXPECT_EQ(report.runs(), 1);
    EXPECT_EQ(*seen.begin(), sim::run({.seed = 1, .strategy = sim::fifo}, program));
  };
  only_run([] { return conversation(3, 2); });
  only_run([] { return wake_order(3); });
  only_run([] { return two_ready_awaits(); });
}

TEST(dfs, each_preemption_more_makes_more_runs) {
  std::int64_t before = 0;
  for (int preemptions : {0, 1, 2, 3}) {
    auto report = sim::explore({.runs = 100'000, .strategy = sim::dfs(preemptions)},
                               [] { return conversation(2, 3); });
    EXPECT_TRUE(report.exhausted()) << preemptions;
    EXPECT_GT(report.runs(), before) << preemptions;
    before = report.runs();
  }
}

TEST(dfs, it_sees_every_order_of_timers_of_one_instant) {
  std::set<std::string> orders;
  auto report = sim::explore({.runs = 100'000, .strategy = sim::dfs(4)},
                             [&]() -> task<> { orders.insert(co_await wake_order(3)); });
  EXPECT_TRUE(report.exhausted()) << report;
  EXPECT_EQ(orders, (std::set<std::string>{"abc", "acb", "bac", "bca", "cab", "cba"}));
}

TEST(dfs, a_search_that_was_cut_short_is_not_exhausted) {
  auto report =
      sim::explore({.runs = 3, .strategy = sim::dfs(3)}, [] { return conversation(3, 3); });
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_EQ(report.runs(), 3);
  EXPECT_FALSE(report.exhausted());
}

TEST(dfs, it_finds_a_bug_with_the_fewest_preemptions_that_show_it) {
  for (int needed : {1, 2, 3}) {
    SCOPED_TRACE(needed);
    auto below = search(needed - 1, needed);
    EXPECT_TRUE(below.ok()) << below;
    EXPECT_TRUE(below.exhausted());
    for (int allowed : {needed, needed + 1}) {
      auto report = search(allowed, needed);
      ASSERT_FALSE(report.ok());
      EXPECT_FALSE(report.exhausted());
      EXPECT_EQ(report.trace().preemptions(), static_cast<std::size_t>(needed));
    }
  }
}

TEST(dfs, it_does_not_enumerate_random_numbers) {
  auto report = sim::explore({.runs = 1000, .strategy = sim::dfs(3)}, []() -> task<> {
    for (int i = 0; i < 10; ++i) (void)weir::random();
    co_return;
  });
  EXPECT_TRUE(report.exhausted()) << report;
  EXPECT_EQ(report.runs(), 1);
}

TEST(dfs, it_enumerates_the_order_of_messages_between_loops) {
  std::set<std::string> orders;
  auto report = sim::explore({.runs = 10'000, .strategy = sim::dfs(4)}, [&](sim::world& w) {
    return [](sim::world& in, std::set<std::string>& seen) -> task<> {
      std::string log;
      auto a = in.loop("a"), b = in.loop("b");
      a.post([&] { log += 'a'; });
      b.post([&] { log += 'b'; });
      while (log.size() < 2) co_await weir::sleep(1ms);
      seen.insert(log);
    }(w, orders);
  });
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_TRUE(report.exhausted());
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
}

TEST(dfs, it_is_for_explore_only) {
  auto refused = [](auto&& call) {
    auto error = thrown_by(call);
    EXPECT_EQ(code_of(error), weir::errc::invalid_argument) << what_of(error);
    EXPECT_TRUE(contains(what_of(error), "dfs")) << what_of(error);
  };
  refused([] { return sim::run({.strategy = sim::dfs(1)}, ready(1)); });
  refused([] { return sim::replay(1, sim::dfs(1), ready(1)); });
  refused([] { sim::world w({.strategy = sim::dfs(1)}); });
}

TEST(dfs, a_fault_that_always_strikes_is_no_choice) {
  auto op = [](sim::world& w) -> task<> {
    w.disk().set({.eio = 1});
    auto error = thrown_by([&] { return w.disk().open("/file", weir::open_mode::create); });
    sim::always("every open fails", holds<std::system_error>(error));
    co_return;
  };
  for (auto strategy : {sim::dfs(0), sim::dfs(2)}) {
    auto report = sim::explore({.runs = 10, .strategy = strategy}, op);
    EXPECT_TRUE(report.ok()) << report;
    EXPECT_TRUE(report.exhausted());
    EXPECT_EQ(report.runs(), 1);
  }
  EXPECT_TRUE(sim::explore({.runs = 10, .strategy = sim::random}, op).ok());
}
