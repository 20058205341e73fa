// SPDX-License-Identifier: MIT
// explore with .jobs: several processes, the same report, and a process that dies is a finding.
#include <unistd.h>

#include <csignal>
#include <set>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

/// Dies of `signal` as a program without handlers does, also under a sanitizer.
void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

bool names_signal(const std::string& text, int number, const char* name) {
  return contains(text, name) || contains(text, "signal " + std::to_string(number));
}

/// Explores the seeds 0 to 39 in two processes; the run of `seed` calls `die`.
template <class F>
sim::report explore_with_a_death(std::uint64_t seed, F die) {
  auto fatal = number_of(seed);
  return sim::explore({.runs = 40, .jobs = 2}, [&]() -> task<> {
    if (weir::random() == fatal) die();
    co_return;
  });
}

}  // namespace

TEST(jobs, several_processes_find_what_one_finds) {
  for (auto strategy : {sim::random, sim::pct(3)}) {
    SCOPED_TRACE(to_string(strategy));
    auto look = [&](std::int64_t jobs) {
      return sim::explore({.runs = 3000, .strategy = strategy, .jobs = jobs},
                          [] { return transfer(3); });
    };
    auto alone = look(1);
    ASSERT_FALSE(alone.ok());
    for (std::int64_t jobs : {2, 3, 8}) {
      SCOPED_TRACE(jobs);
      auto together = look(jobs);
      EXPECT_FALSE(together.ok());
      EXPECT_EQ(together.failures(), 1);
      EXPECT_EQ(together.seed(), alone.seed());
      EXPECT_EQ(together.trace(), alone.trace());
      EXPECT_EQ(together.message(), alone.message());
      EXPECT_EQ(together.tree(), alone.tree());
    }
  }
}

TEST(jobs, several_processes_make_every_run_once) {
  auto look = [](std::int64_t jobs) {
    return sim::explore({.runs = 101, .jobs = jobs}, [] { return conversation(3, 3); });
  };
  auto alone = look(1);
  for (std::int64_t jobs : {2, 5, 101, 200}) {
    SCOPED_TRACE(jobs);
    auto together = look(jobs);
    EXPECT_TRUE(together.ok()) << together;
    EXPECT_EQ(together.runs(), 101);
    EXPECT_EQ(together.steps(), alone.steps());
  }
}

TEST(jobs, the_lowest_failing_seed_is_reported_even_if_it_takes_longest) {
  auto slow = number_of(111);
  std::set<std::uint64_t> bad{slow, number_of(112), number_of(113), number_of(130)};
  auto op = [&]() -> task<> {
    auto number = weir::random();
    if (!bad.contains(number)) co_return;
    for (int i = 0; number == slow && i < 20'000; ++i) co_await weir::yield();
    throw boom(static_cast<int>(number % 1000));
  };
  for (std::int64_t jobs : {1, 2, 3, 4}) {
    SCOPED_TRACE(jobs);
    auto report = sim::explore({.runs = 40, .seed = 100, .jobs = jobs}, op);
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.seed(), 111u);
    EXPECT_TRUE(contains(report.message(), boom(static_cast<int>(slow % 1000)).what())) << report;
  }
}

TEST(jobs, the_processes_really_are_several) {
  auto home = ::getpid();
  auto op = [&]() -> task<> {
    co_await weir::yield();
    sim::always("a child process", ::getpid() != home);
  };
  EXPECT_TRUE(sim::explore({.runs = 10, .jobs = 2}, op).ok());
}

TEST(jobs, a_child_that_aborts_is_a_failing_run_with_its_seed_and_signal) {
  auto report = explore_with_a_death(17, [] { die_of(SIGABRT); });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.failures(), 1);
  EXPECT_EQ(report.seed(), 17u);
  EXPECT_TRUE(names_signal(report.message(), SIGABRT, "SIGABRT")) << report.message();
  EXPECT_EQ(report.trace().strategy(), sim::random);
  EXPECT_FALSE(report.trace().has_choices());
  EXPECT_TRUE(contains(printed(report), "17")) << report;
}

TEST(jobs, a_child_that_breaks_its_memory_is_a_failing_run_with_its_seed_and_signal) {
  auto report = explore_with_a_death(0, [] { die_of(SIGSEGV); });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.seed(), 0u);
  EXPECT_TRUE(names_signal(report.message(), SIGSEGV, "SIGSEGV")) << report.message();
}

TEST(jobs, a_child_that_exits_is_a_failing_run_with_its_seed) {
  auto report = explore_with_a_death(39, [] { ::_exit(0); });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.seed(), 39u);
  EXPECT_NE(report.message(), "");
}

TEST(jobs, of_a_death_and_a_plain_failure_the_lower_seed_is_reported) {
  auto low = number_of(10), high = number_of(11);
  for (bool death_first : {true, false}) {
    SCOPED_TRACE(death_first);
    auto report = sim::explore({.runs = 30, .jobs = 3}, [&]() -> task<> {
      auto number = weir::random();
      if (number == (death_first ? low : high)) die_of(SIGABRT);
      if (number == (death_first ? high : low)) throw boom(4);
      co_return;
    });
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.seed(), 10u);
    EXPECT_EQ(contains(report.message(), "boom 4"), !death_first) << report;
  }
}

TEST(jobs, what_is_sometimes_true_may_be_so_in_any_process) {
  auto lucky = number_of(33);
  auto op = [&]() -> task<> {
    sim::sometimes("lucky", weir::random() == lucky);
    co_return;
  };
  auto all = sim::explore({.runs = 40, .jobs = 3}, op);
  EXPECT_TRUE(all.ok()) << all;
  auto too_few = sim::explore({.runs = 20, .jobs = 3}, op);
  EXPECT_FALSE(too_few.ok());
  EXPECT_TRUE(contains(too_few.message(), "lucky")) << too_few;
}

TEST(jobs, hidden_nondeterminism_is_found_in_any_process) {
  int calls = 0;
  auto report = sim::explore({.runs = 8, .jobs = 2, .check_every = 1},
                             [&]() -> task<> { (void)co_await conversation(2, 2 + calls++); });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.seed(), 0u);
}
