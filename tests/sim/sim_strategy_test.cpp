// SPDX-License-Identifier: MIT
// The strategies: what each may choose, and that the seed alone decides.
#include <map>
#include <set>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

constexpr std::uint64_t many = 300;

/// How often the speaker changes, plus one.
int blocks(const std::string& log) {
  int n = 0;
  for (std::size_t i = 0; i < log.size(); ++i) n += i == 0 || log[i] != log[i - 1];
  return n;
}

/// What the seeds 1 to `many` make of the program.
template <class F>
std::set<std::string> outcomes(sim::strategy strategy, F program) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= many; ++seed)
    seen.insert(sim::run({.seed = seed, .strategy = strategy}, program));
  return seen;
}

/// Two fibers that log, await something ready, and log again.
template <class MakeReady>
task<std::string> ready_awaits(MakeReady make_ready) {
  std::string log;
  auto worker = [&](char name) -> task<> {
    log += name;
    (void)co_await make_ready();
    log += name;
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(worker('a'));
    s.spawn(worker('b'));
    co_await s.join();
  });
  co_return log;
}

task<> nothing() { co_return; }

/// Turns, random numbers and timers in one text.
task<std::string> all_sources_of_chance() {
  std::string log = co_await conversation(3, 4);
  log += co_await wake_order(4);
  log += std::to_string(weir::random());
  log += weir::uuid();
  log += std::to_string(weir::now().time_since_epoch().count());
  co_return log;
}

/// Some fibers only yield, another one wants `turns` turns; gives the longest time that it had to
/// wait, in turns of the others.
task<int> longest_wait(int yielders, int turns) {
  bool stop = false;
  int waited = 0, longest = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < yielders; ++i) {
      s.spawn([&]() -> task<> {
        while (!stop) {
          longest = std::max(longest, ++waited);
          co_await weir::yield();
        }
      });
    }
    s.spawn([&]() -> task<> {
      for (int i = 0; i < turns; ++i) {
        waited = 0;
        co_await weir::yield();
      }
      stop = true;
    });
    co_await s.join();
  });
  co_return longest;
}

}  // namespace

TEST(strategy, it_prints_as_it_is_written) {
  EXPECT_EQ(to_string(sim::fifo), "fifo");
  EXPECT_EQ(to_string(sim::random), "random");
  EXPECT_EQ(to_string(sim::pct(3)), "pct(3)");
  EXPECT_EQ(to_string(sim::dfs(12)), "dfs(12)");
}

TEST(strategy, one_seed_gives_one_run) {
  for (auto strategy : {sim::random, sim::pct(1), sim::pct(3), sim::fifo}) {
    SCOPED_TRACE(to_string(strategy));
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      auto once = sim::run({.seed = seed, .strategy = strategy}, all_sources_of_chance());
      EXPECT_EQ(sim::run({.seed = seed, .strategy = strategy}, all_sources_of_chance()), once)
          << seed;
      EXPECT_EQ(sim::replay(seed, strategy, all_sources_of_chance), once) << seed;
    }
  }
}

TEST(strategy, a_run_does_not_depend_on_the_runs_before) {
  auto look = [](std::uint64_t seed, sim::strategy strategy) {
    return sim::run({.seed = seed, .strategy = strategy}, all_sources_of_chance());
  };
  for (auto strategy : {sim::random, sim::pct(3)}) {
    std::map<std::uint64_t, std::string> forward;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) forward[seed] = look(seed, strategy);
    for (std::uint64_t seed = 30; seed >= 1; --seed) {
      (void)thrown_by([] { return sim::run({.seed = 5}, fails_after(1s, 1)); });
      EXPECT_EQ(look(seed, strategy), forward[seed]) << to_string(strategy) << ", " << seed;
    }
  }
}

TEST(strategy, many_seeds_give_many_interleavings) {
  auto talk = [] { return conversation(3, 4); };
  EXPECT_GT(outcomes(sim::random, talk).size(), many * 9 / 10);
  EXPECT_GT(outcomes(sim::pct(3), talk).size(), 20u);
  EXPECT_EQ(outcomes(sim::fifo, talk).size(), 1u);
}

TEST(strategy, seeds_at_both_ends_of_the_range_are_as_good_as_any) {
  std::set<std::string> seen;
  for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0},
                             ~std::uint64_t{0} - 1, std::uint64_t{1} << 63, std::uint64_t{1} << 32})
    seen.insert(sim::run({.seed = seed, .strategy = sim::random}, conversation(4, 5)));
  EXPECT_EQ(seen.size(), 6u);
}

TEST(strategy, random_gives_each_option_the_same_chance) {
  std::map<std::string, int> orders;
  for (std::uint64_t seed = 0; seed < 1200; ++seed)
    ++orders[sim::run({.seed = seed, .strategy = sim::random}, conversation(3, 1))];
  EXPECT_EQ(orders.size(), 6u);
  for (const auto& [order, times] : orders) {
    EXPECT_GT(times, 130) << order;  // 200 expected, and five standard deviations are 65
    EXPECT_LT(times, 270) << order;
  }
}

TEST(strategy, pct_changes_the_running_fiber_at_most_depth_minus_one_times) {
  for (int depth : {1, 2, 3, 4}) {
    SCOPED_TRACE(depth);
    for (std::uint64_t seed = 1; seed <= many; ++seed) {
      auto log = sim::run({.seed = seed, .strategy = sim::pct(depth)}, conversation(3, 6));
      EXPECT_LE(blocks(log), 3 + depth - 1) << log;
    }
  }
}

TEST(strategy, pct_gives_the_fibers_every_order_of_priority) {
  auto orders = outcomes(sim::pct(1), [] { return conversation(3, 3); });
  EXPECT_EQ(orders, (std::set<std::string>{"aaabbbccc", "aaacccbbb", "bbbaaaccc", "bbbcccaaa",
                                           "cccaaabbb", "cccbbbaaa"}));
}

TEST(strategy, pct_uses_its_depth) {
  std::size_t before = 0;
  for (int depth : {1, 2, 3}) {
    auto seen = outcomes(sim::pct(depth), [] { return conversation(3, 6); }).size();
    EXPECT_GT(seen, before) << depth;
    before = seen;
  }
}

TEST(strategy, a_fiber_that_only_yields_cannot_starve_others_beyond_1000_steps) {
  for (auto strategy : {sim::random, sim::pct(1), sim::pct(2), sim::pct(5)}) {
    SCOPED_TRACE(to_string(strategy));
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      int longest = sim::run({.seed = seed, .strategy = strategy}, longest_wait(1, 5));
      EXPECT_LE(longest, 1000) << seed;
    }
  }
}

TEST(strategy, ten_fibers_that_only_yield_cannot_do_it_either) {
  for (auto strategy : {sim::random, sim::pct(1), sim::pct(3), sim::pct(20)}) {
    SCOPED_TRACE(to_string(strategy));
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      int longest = sim::run({.seed = seed, .strategy = strategy}, longest_wait(10, 5));
      EXPECT_LE(longest, 1000) << seed;
    }
  }
}

TEST(strategy, under_random_every_kind_of_ready_await_may_give_up_the_turn) {
  weir::counting_governor gate(5);
  auto interleaves = [](auto make_ready) {
    return outcomes(sim::random, [=] { return ready_awaits(make_ready); }).contains("abab");
  };
  EXPECT_TRUE(interleaves([] { return nothing(); }));
  EXPECT_TRUE(interleaves([] { return weir::checkpoint(); }));
  EXPECT_TRUE(interleaves([] { return weir::settle(nothing()); }));
  EXPECT_TRUE(interleaves([&gate] { return gate.acquire(); }));
}

TEST(strategy, under_random_awaiting_a_finished_future_may_give_up_the_turn) {
  auto program = []() -> task<std::string> {
    co_return co_await weir::with_scope([](weir::scope& s) -> task<std::string> {
      auto done = s.spawn(ready(1));
      co_await s.idle();
      EXPECT_TRUE(done.done());
      co_return co_await ready_awaits([&]() -> weir::future<int>& { return done; });
    });
  };
  EXPECT_TRUE(outcomes(sim::random, program).contains("abab"));
}

TEST(strategy, under_pct_and_dfs_a_ready_await_may_give_up_the_turn) {
  std::set<std::string> pct, dfs;
  auto collect = [](std::set<std::string>& seen) {
    return [&]() -> task<> { seen.insert(co_await ready_awaits(nothing)); };
  };
  auto collect_pct = collect(pct), collect_dfs = collect(dfs);
  EXPECT_TRUE(sim::explore({.runs = 3000, .strategy = sim::pct(2)}, collect_pct).ok());
  EXPECT_TRUE(sim::explore({.runs = 3000, .strategy = sim::dfs(3)}, collect_dfs).exhausted());
  EXPECT_TRUE(pct.contains("abba")) << pct.size();
  EXPECT_TRUE(dfs.contains("abba") && dfs.contains("abab")) << dfs.size();
}

TEST(strategy, under_fifo_a_ready_await_keeps_the_turn) {
  EXPECT_EQ(outcomes(sim::fifo, [] { return ready_awaits(nothing); }),
            std::set<std::string>{"aabb"});
}

TEST(strategy, timers_of_one_instant_fire_in_any_order_but_under_fifo_in_theirs) {
  auto wakes = [] { return wake_order(3); };
  EXPECT_EQ(outcomes(sim::fifo, wakes), std::set<std::string>{"abc"});
  EXPECT_EQ(outcomes(sim::random, wakes).size(), 6u);
  EXPECT_EQ(outcomes(sim::pct(1), wakes).size(), 6u);
}

TEST(strategy, timers_of_different_instants_fire_in_the_order_of_time) {
  auto wakes = [] { return wake_order(4, 1ns); };
  for (auto strategy : {sim::fifo, sim::random, sim::pct(1), sim::pct(3)})
    EXPECT_EQ(outcomes(strategy, wakes), std::set<std::string>{"abcd"}) << to_string(strategy);
}

TEST(strategy, a_depth_below_one_is_an_invalid_argument) {
  for (int depth : {0, -1}) {
    auto ran = thrown_by([&] { return sim::run({.strategy = sim::pct(depth)}, ready(1)); });
    EXPECT_EQ(code_of(ran), weir::errc::invalid_argument);
    auto replayed = thrown_by([&] { return sim::replay(1, sim::pct(depth), ready(1)); });
    EXPECT_EQ(code_of(replayed), weir::errc::invalid_argument);
  }
}
