// SPDX-License-Identifier: MIT
// sim::explore: it finds what some interleaving breaks, and its report says what, in which run and
// how to see it again.
#include <functional>
#include <set>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

const sim::strategy adversaries[] = {sim::random, sim::pct(3), sim::dfs(2)};

std::error_code refusal(const sim::explore_options& options) {
  return code_of(thrown_by([&] { return sim::explore(options, [] { return ready(1); }); }));
}

bool speaks_of_nondeterminism(const std::string& text) {
  return contains(text, "nondetermin") || contains(text, "non-determin");
}

bool fails(std::uint64_t seed, sim::strategy strategy, int delay) {
  return thrown_by([&] { sim::run({.seed = seed, .strategy = strategy}, transfer(delay)); }) !=
         nullptr;
}

}  // namespace

TEST(explore, every_adversary_finds_the_lost_update_that_fifo_hides) {
  auto op = [] { return transfer(1); };
  EXPECT_TRUE(sim::explore({.runs = 50, .strategy = sim::fifo}, op).ok());
  for (auto strategy : adversaries) {
    SCOPED_TRACE(to_string(strategy));
    auto report = sim::explore({.runs = 3000, .strategy = strategy}, op);
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.failures(), 1);
    EXPECT_GE(report.runs(), 1);
    EXPECT_LT(report.runs(), 3000);
    EXPECT_TRUE(contains(report.message(), "boom 1")) << report.message();
    EXPECT_EQ(report.trace().strategy(), strategy);
    EXPECT_TRUE(report.trace().has_choices());
  }
}

TEST(explore, a_correct_program_passes_every_run) {
  for (auto strategy : {sim::random, sim::pct(1), sim::pct(3), sim::fifo}) {
    SCOPED_TRACE(to_string(strategy));
    auto report = sim::explore({.runs = 300, .strategy = strategy}, [] { return wake_order(3); });
    EXPECT_TRUE(report.ok()) << report;
    EXPECT_EQ(report.runs(), 300);
    EXPECT_EQ(report.failures(), 0);
    EXPECT_EQ(report.message(), "");
    EXPECT_EQ(report.tree(), "");
    EXPECT_FALSE(report.exhausted());
    EXPECT_GE(report.steps(), 300 * 4);
  }
}

TEST(explore, its_defaults_find_the_lost_update) {
  auto report = sim::explore({}, [] { return transfer(1); });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.trace().strategy(), sim::random);
}

TEST(explore, run_number_i_has_the_first_seed_plus_i) {
  for (auto strategy : {sim::random, sim::pct(2)}) {
    SCOPED_TRACE(to_string(strategy));
    auto report = sim::explore({.runs = 20000, .strategy = strategy, .seed = 1000},
                               [] { return transfer(6); });
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.seed(), 1000 + static_cast<std::uint64_t>(report.runs()) - 1);
    EXPECT_EQ(report.seed(), report.trace().seed());
    for (std::uint64_t seed = 1000; seed < report.seed(); ++seed)
      EXPECT_FALSE(fails(seed, strategy, 6)) << seed;
  }
}

TEST(explore, the_reported_seed_fails_again_in_run_and_replay) {
  for (auto strategy : {sim::random, sim::pct(3)}) {
    SCOPED_TRACE(to_string(strategy));
    auto report =
        sim::explore({.runs = 5000, .strategy = strategy, .seed = 7}, [] { return transfer(4); });
    ASSERT_FALSE(report.ok());
    for (int i = 0; i < 3; ++i) {
      auto again =
          thrown_by([&] { sim::run({.seed = report.seed(), .strategy = strategy}, transfer(4)); });
      EXPECT_EQ(boom_of(again), 1);
      auto replayed =
          thrown_by([&] { sim::replay(report.seed(), strategy, [] { return transfer(4); }); });
      EXPECT_EQ(boom_of(replayed), 1);
    }
  }
}

TEST(explore, the_reported_trace_fails_again_whatever_the_strategy) {
  for (auto strategy : adversaries) {
    SCOPED_TRACE(to_string(strategy));
    auto report = sim::explore({.runs = 3000, .strategy = strategy}, [] { return transfers(2); });
    ASSERT_FALSE(report.ok());
    auto again = thrown_by([&] { sim::replay(report.trace(), [] { return transfers(2); }); });
    EXPECT_EQ(boom_of(again), 2) << what_of(again);
  }
}

TEST(explore, the_same_exploration_twice_gives_the_same_report) {
  for (auto strategy : adversaries) {
    SCOPED_TRACE(to_string(strategy));
    auto look = [&] {
      return sim::explore({.runs = 3000, .strategy = strategy}, [] { return transfers(2); });
    };
    auto first = look(), second = look();
    EXPECT_EQ(first.trace(), second.trace());
    EXPECT_EQ(first.runs(), second.runs());
    EXPECT_EQ(first.steps(), second.steps());
    EXPECT_EQ(first.message(), second.message());
  }
}

TEST(explore, the_printed_report_says_what_failed_where_and_how_to_see_it_again) {
  auto op = []() -> task<> {
    co_await weir::with_scope({.name = "kitchen"}, [](weir::scope& s) -> task<> {
      s.spawn(after(1h, 1), {.name = "kettle"});
      co_await weir::sleep(1ms);
      sim::always("the stove is off", false);
    });
  };
  auto report = sim::explore({.runs = 5, .strategy = sim::pct(3), .seed = 4711}, op);
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(contains(report.message(), "the stove is off")) << report.message();
  for (const char* part : {"kitchen", "kettle"})
    EXPECT_TRUE(contains(report.tree(), part)) << report.tree();
  auto text = printed(report);
  for (const char* part : {"the stove is off", "kitchen", "kettle", "4711", "pct(3)", "replay"})
    EXPECT_TRUE(contains(text, part)) << part << " is missing in:\n" << text;
}

TEST(explore, a_printed_report_without_failure_says_how_many_runs_passed) {
  auto text = printed(sim::explore({.runs = 123}, [] { return ready(1); }));
  EXPECT_TRUE(contains(text, "123")) << text;
}

TEST(explore, every_so_many_th_seed_runs_twice) {
  auto calls_with = [](std::int64_t check_every) {
    int calls = 0;
    auto report = sim::explore({.runs = 10, .check_every = check_every}, [&]() -> task<> {
      ++calls;
      co_await weir::yield();
    });
    EXPECT_TRUE(report.ok()) << report;
    EXPECT_EQ(report.runs(), 10);
    return calls;
  };
  EXPECT_EQ(calls_with(1), 20);
  EXPECT_EQ(calls_with(5), 12);
}

TEST(explore, a_program_that_depends_on_a_counter_is_found_out) {
  for (std::int64_t check_every : {1, 4, 10}) {
    SCOPED_TRACE(check_every);
    int calls = 0;
    auto report = sim::explore({.runs = 10, .check_every = check_every},
                               [&]() -> task<> { (void)co_await conversation(2, 2 + calls++); });
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.failures(), 1);
    EXPECT_TRUE(speaks_of_nondeterminism(printed(report))) << report;
  }
}

TEST(explore, a_program_that_only_takes_longer_is_found_out) {
  int calls = 0;
  auto report = sim::explore({.runs = 5, .check_every = 1}, [&]() -> task<> {
    const int turns = ++calls;
    for (int i = 0; i < turns; ++i) co_await weir::yield();
  });
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(speaks_of_nondeterminism(report.message())) << report;
}

TEST(explore, a_program_whose_random_draws_depend_on_a_counter_is_found_out) {
  int calls = 0;
  auto report = sim::explore({.runs = 1, .check_every = 1}, [&]() -> task<> {
    for (int i = 0; i < calls; ++i) (void)weir::random();
    ++calls;
    co_return;
  });
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(speaks_of_nondeterminism(printed(report))) << report;
}

TEST(explore, a_program_that_depends_on_addresses_is_found_out) {
  std::set<std::unique_ptr<int>> kept;  // so that no address comes twice
  const int* first = nullptr;
  auto report = sim::explore({.runs = 1, .check_every = 1}, [&]() -> task<> {
    const int* mine = kept.insert(std::make_unique<int>(1)).first->get();
    if (first == nullptr) first = mine;
    (void)co_await conversation(mine == first ? 2 : 3, 2);
  });
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(speaks_of_nondeterminism(printed(report))) << report;
}

TEST(explore, a_run_that_fails_only_when_it_is_repeated_is_nondeterminism) {
  int calls = 0;
  auto report = sim::explore({.runs = 1, .check_every = 1}, [&]() -> task<> {
    if (++calls == 2) throw boom(5);
    co_return;
  });
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(speaks_of_nondeterminism(printed(report))) << report;
}

TEST(explore, a_failure_that_does_not_come_again_is_reported_all_the_same) {
  int calls = 0;
  auto report = sim::explore({.runs = 10, .seed = 3}, [&]() -> task<> {
    if (++calls == 1) throw boom(5);
    co_await transfer(1);
  });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.seed(), 3u);
  EXPECT_TRUE(contains(printed(report), "boom 5") || speaks_of_nondeterminism(printed(report)))
      << report;
}

TEST(explore, what_the_environment_gives_a_program_is_no_nondeterminism) {
  auto op = []() -> task<> {
    auto number = weir::random();
    auto id = weir::uuid();
    auto day = weir::wall_now();
    co_await weir::sleep(weir::duration(static_cast<std::int64_t>(number % 1000)));
    EXPECT_EQ(id.size(), 36u);
    EXPECT_GE(weir::wall_now(), day);
    (void)co_await conversation(3, 2);
  };
  for (auto strategy : {sim::random, sim::pct(3), sim::dfs(1)}) {
    SCOPED_TRACE(to_string(strategy));
    auto report = sim::explore({.runs = 100, .strategy = strategy, .check_every = 1}, op);
    EXPECT_TRUE(report.ok()) << report;
  }
}

TEST(explore, bad_options_are_invalid_arguments) {
  for (std::int64_t bad : {0, -1}) {
    SCOPED_TRACE(bad);
    EXPECT_EQ(refusal({.runs = bad}), weir::errc::invalid_argument);
    EXPECT_EQ(refusal({.max_steps = bad}), weir::errc::invalid_argument);
    EXPECT_EQ(refusal({.jobs = bad}), weir::errc::invalid_argument);
    EXPECT_EQ(refusal({.check_every = bad}), weir::errc::invalid_argument);
    EXPECT_EQ(refusal({.strategy = sim::pct(static_cast<int>(bad))}), weir::errc::invalid_argument);
  }
  EXPECT_EQ(refusal({.strategy = sim::dfs(-1)}), weir::errc::invalid_argument);
  EXPECT_EQ(refusal({.runs = 1, .strategy = sim::pct(1), .max_steps = 100, .check_every = 1}),
            std::error_code());
  EXPECT_EQ(refusal({.runs = 1, .strategy = sim::dfs(0)}), std::error_code());
}

TEST(explore, bad_options_are_refused_before_the_program_runs) {
  bool ran = false;
  auto error = thrown_by([&] {
    return sim::explore({.check_every = 0}, [&]() -> task<> {
      ran = true;
      co_return;
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::invalid_argument);
  EXPECT_FALSE(ran);
}

TEST(explore, whatever_the_program_throws_is_in_the_report) {
  auto message_of = [](auto op) {
    auto report = sim::explore({.runs = 5}, op);
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.failures(), 1);
    EXPECT_EQ(report.runs(), 1);
    EXPECT_NE(report.message(), "");
    return report.message();
  };
  (void)message_of([]() -> task<> {
    co_await weir::yield();
    throw 7;
  });
  (void)message_of([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.cancel("enough");
      co_await weir::checkpoint();
    });
  });
  (void)message_of([]() -> task<int> { throw boom(3); });  // the callable itself, not its task
  auto timeout = message_of([]() -> task<> { co_await weir::with_timeout(1s, after(1h, 1)); });
  EXPECT_FALSE(contains(timeout, "deadlock")) << timeout;
  auto group = message_of([]() -> task<> {
    co_await weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                              [](weir::scope& s) -> task<> {
                                s.spawn(fails_after(1s, 1));
                                s.spawn(fails_after(2s, 2));
                                co_return;
                              });
  });
  EXPECT_TRUE(contains(group, "boom 1") && contains(group, "boom 2")) << group;
}

TEST(explore, an_empty_callable_is_an_empty_job) {
  std::function<task<>()> none;
  std::function<task<>(sim::world&)> none_of_a_world;
  task<> (*null)() = nullptr;
  auto code = [](auto& op) { return code_of(thrown_by([&] { sim::explore({.runs = 1}, op); })); };
  EXPECT_EQ(code(none), weir::errc::empty_job);
  EXPECT_EQ(code(none_of_a_world), weir::errc::empty_job);
  EXPECT_EQ(code(null), weir::errc::empty_job);
}

TEST(explore, an_error_that_leaves_a_posted_function_fails_the_run) {
  auto op = [](sim::world& w) -> task<> {
    w.loop("a").post([] { throw boom(7); });
    co_await weir::sleep(1s);
  };
  EXPECT_EQ(boom_of(thrown_by([&] { sim::run({}, op); })), 7);
  auto report = sim::explore({.runs = 3}, op);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.runs(), 1);
  EXPECT_TRUE(contains(report.message(), "boom 7")) << report;
  EXPECT_EQ(boom_of(thrown_by([&] { sim::replay(report.trace(), op); })), 7);
}

TEST(explore, after_a_failing_program_nothing_is_left) {
  auto op = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.spawn(after(1h, 1));
      s.spawn(fails_after(1s, 9));
      co_await s.join();
    });
  };
  auto report = sim::explore({.runs = 3}, op);
  EXPECT_TRUE(contains(report.message(), "boom 9")) << report;
  EXPECT_EQ(weir::live().loops, 0);
  EXPECT_EQ(weir::live().fibers, 0);
  EXPECT_EQ(weir::live().timers, 0);
}

TEST(explore, the_environment_overrides_seed_and_runs) {
  std::set<std::uint64_t> numbers;
  auto op = [&]() -> task<> {
    numbers.insert(weir::random());
    co_return;
  };
  std::set<std::uint64_t> expected{number_of(50), number_of(51), number_of(52)};
  environment_variable seed("WEIR_SIM_SEED", "50");
  environment_variable runs("WEIR_SIM_RUNS", "3");
  auto report = sim::explore({.runs = 1000, .seed = 1}, op);
  EXPECT_EQ(report.runs(), 3);
  EXPECT_EQ(numbers, expected);
}

TEST(explore, the_environment_overrides_the_seed_of_run_but_not_of_replay) {
  auto draw = []() -> task<std::uint64_t> { co_return weir::random(); };
  auto of_1 = number_of(1), of_50 = number_of(50);
  environment_variable seed("WEIR_SIM_SEED", "50");
  EXPECT_EQ(sim::run({.seed = 1, .strategy = sim::random}, draw), of_50);
  EXPECT_EQ(sim::replay(1, sim::random, draw), of_1);
}

TEST(explore, what_is_empty_in_the_environment_overrides_nothing) {
  auto of_1 = number_of(1);
  environment_variable seed("WEIR_SIM_SEED", "");
  environment_variable runs("WEIR_SIM_RUNS", "");
  auto report = sim::explore({.runs = 7, .seed = 3}, [] { return ready(1); });
  EXPECT_EQ(report.runs(), 7);
  EXPECT_EQ(number_of(1), of_1);
  EXPECT_NE(number_of(2), of_1);
}

TEST(explore, garbage_in_the_environment_is_an_invalid_argument) {
  for (const char* garbage : {"x", "5x", "-1", "1.5", "99999999999999999999999"}) {
    SCOPED_TRACE(garbage);
    {
      environment_variable seed("WEIR_SIM_SEED", garbage);
      EXPECT_EQ(refusal({.runs = 1}), weir::errc::invalid_argument);
      auto error = thrown_by([] { return sim::run({.seed = 1}, ready(1)); });
      EXPECT_EQ(code_of(error), weir::errc::invalid_argument);
      EXPECT_TRUE(contains(what_of(error), "WEIR_SIM_SEED")) << what_of(error);
    }
    environment_variable runs("WEIR_SIM_RUNS", garbage);
    EXPECT_EQ(refusal({.runs = 1}), weir::errc::invalid_argument);
  }
  environment_variable runs("WEIR_SIM_RUNS", "0");
  EXPECT_EQ(refusal({.runs = 1}), weir::errc::invalid_argument);
}
