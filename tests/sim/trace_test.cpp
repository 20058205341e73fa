// SPDX-License-Identifier: MIT
// sim::trace: as text and back, replayed exactly, refused when the program has changed, and shrunk
// to what the failure needs.
#include <limits>

#include "sim_support.hpp"
#include "start_on.hpp"

using namespace weir_test;
using choice = sim::trace::choice;

namespace {

constexpr auto random_draw = sim::trace::random_number;
constexpr auto fault = sim::trace::fault;

/// Every kind of choice, alone and in rows.
std::vector<choice> all_kinds() {
  std::vector<choice> choices(14, choice{0, 3});
  choices.push_back({2, 3});
  choices.push_back({0x1f, random_draw});
  choices.push_back({1, fault});
  for (int i = 0; i < 7; ++i) choices.push_back({0, fault});
  return choices;
}

std::error_code parse_error(std::string_view text) {
  return code_of(thrown_by([&] { return sim::trace::parse(text); }));
}

/// Replays a trace with another program than the one it came from.
template <class F>
std::error_code replay_error(const sim::trace& trace, F op) {
  return code_of(thrown_by([&] { (void)sim::replay(trace, op); }));
}

/// A conversation that fails if its second speaker ever speaks first; the message is what was said.
task<std::string> touchy(bool strict, int speakers, int lines) {
  std::string log = co_await conversation(speakers, lines);
  if (strict && log.front() == 'b') throw std::runtime_error("said " + log);
  co_return log;
}

/// The trace of a run in which the second of three speakers, with three lines each, spoke first.
sim::report touchy_report(sim::strategy strategy) {
  return sim::explore({.runs = 1000, .strategy = strategy}, [] { return touchy(true, 3, 3); });
}

}  // namespace

TEST(trace, its_text_is_one_line_that_names_strategy_seed_and_choices) {
  sim::trace t(sim::pct(3), 42, all_kinds());
  EXPECT_EQ(t.text(), "weir-trace 1 pct(3) seed=42 : 3*14 2/3 r1f f -7");
  EXPECT_EQ(printed(t), t.text());
  EXPECT_EQ(sim::trace::of_seed(sim::random, 9).text(), "weir-trace 1 random seed=9 : ?");
  EXPECT_EQ(sim::trace(sim::dfs(2), 1, {{1, 2}}, 500).text(),
            "weir-trace 1 dfs(2) seed=1 steps=500 : 1/2");
}

TEST(trace, its_text_is_read_back) {
  auto max = std::numeric_limits<std::uint64_t>::max();
  auto most = std::numeric_limits<std::uint32_t>::max();
  const sim::trace traces[] = {
      sim::trace(sim::pct(3), 42, all_kinds()),
      sim::trace(sim::fifo, 0, {}),
      sim::trace(sim::random, 1, all_kinds(), 1'000'000),
      sim::trace(sim::random, 1, {}, 1),
      sim::trace(sim::random, max, {{max, random_draw}, {0, random_draw}, {most - 1, most}}),
      sim::trace(sim::dfs(2), 1, {{0, 2}, {1, 2}, {0, 2}, {0, 3}, {0, 3}, {0, 2}}),
      sim::trace::of_seed(sim::random, 9),
      sim::trace::of_seed(sim::pct(1), 9, 77),
  };
  for (const auto& t : traces) {
    SCOPED_TRACE(t.text());
    auto read = sim::trace::parse(t.text());
    EXPECT_EQ(read, t);
    EXPECT_EQ(read.text(), t.text());
    EXPECT_EQ(read.strategy(), t.strategy());
    EXPECT_EQ(read.seed(), t.seed());
    EXPECT_EQ(read.choices(), t.choices());
    EXPECT_EQ(read.max_steps(), t.max_steps());
    EXPECT_EQ(read.has_choices(), t.has_choices());
  }
}

TEST(trace, a_trace_without_choices_is_not_one_whose_choices_are_unknown) {
  const sim::trace none(sim::random, 1, {});
  const sim::trace unknown = sim::trace::of_seed(sim::random, 1);
  EXPECT_TRUE(none.has_choices());
  EXPECT_FALSE(unknown.has_choices());
  EXPECT_NE(none, unknown);
  EXPECT_NE(none.text(), unknown.text());
}

TEST(trace, its_preemptions_are_the_choices_that_were_not_the_first) {
  EXPECT_EQ(sim::trace(sim::random, 1, all_kinds()).preemptions(), 2u);  // one of them a fault
  EXPECT_EQ(sim::trace(sim::random, 1, {{0, 2}, {7, random_draw}}).preemptions(), 0u);
  EXPECT_EQ(sim::trace(sim::random, 1, {{1, 2}, {1, 3}, {2, 3}}).preemptions(), 3u);
  EXPECT_EQ(sim::trace::of_seed(sim::random, 1).preemptions(), 0u);
}

TEST(trace, a_malformed_text_is_an_invalid_argument) {
  const char* heads[] = {
      "",
      "weir",
      "weir-trace",
      "weir-trace 1",
      "weir-trace 1 random",
      "weir-trace 2 random seed=1 : 2*1",
      "weir-trace 1 sorted seed=1 : 2*1",
      "weir-trace 1 random(1) seed=1 : 2*1",
      "weir-trace 1 pct seed=1 : 2*1",
      "weir-trace 1 pct() seed=1 : 2*1",
      "weir-trace 1 pct(0) seed=1 : 2*1",
      "weir-trace 1 pct(x) seed=1 : 2*1",
      "weir-trace 1 pct(3 seed=1 : 2*1",
      "weir-trace 1 pct(99999999999) seed=1 : 2*1",
      "weir-trace 1 dfs(-1) seed=1 : 2*1",
      "weir-trace 1 random seed= : 2*1",
      "weir-trace 1 random seed=x : 2*1",
      "weir-trace 1 random seed=-1 : 2*1",
      "weir-trace 1 random seed=18446744073709551616 : 2*1",
      "weir-trace 1 random : 2*1",
      "weir-trace 1 random seed=1",
      "weir-trace 1 random seed=1 2*1",
      "weir-trace 1 random seed=1 steps=0 : 2*1",
      "weir-trace 1 random seed=1 steps=-1 : 2*1",
      "weir-trace 1 random seed=1 steps=x : 2*1",
      "weir-trace 1 random seed=1 steps= : 2*1",
      "weir-trace 1 random seed=1 steps=9223372036854775808 : 2*1",
      "weir-trace 1 random seed=1 steps=5 seed=1 : 2*1",
      "trace 1 random seed=1 : 2*1",
  };
  for (const char* text : heads) {
    EXPECT_EQ(parse_error(text), weir::errc::invalid_argument) << text;
  }
  const char* tails[] = {
      "x",     "3/3",  "4/3",
      "/3",    "2/",   "0/0",
      "0/1",   "3*",   "*3",
      "3*x",   "3*0",  "1*2",
      "r",     "rg",   "r1g",
      "ff",    "f1",   "-",
      "-x",    "- 7",  "--7",
      "-0",    "??",   "? f",
      "f ?",   "2/3f", "4294967296*1",
      "+7",    "2,3",  "2/3/4",
      "2*3*4", "r-1",  "r10000000000000000",
  };
  for (const char* tail : tails) {
    auto text = std::string("weir-trace 1 random seed=1 : 3*2 ") + tail;
    EXPECT_EQ(parse_error(text), weir::errc::invalid_argument) << text;
  }
  EXPECT_EQ(parse_error("weir-trace 1 random seed=1 steps=9 : 3*2 2/3 r1 f -2"), std::error_code());
}

TEST(trace, a_depth_that_no_strategy_has_is_an_invalid_argument) {
  for (const char* choices : {"2*1", "?"}) {
    const std::string rest = std::string(" seed=1 : ") + choices;
    for (const char* strategy : {"pct(2000000000)", "pct(1001)", "pct(0)", "dfs(-1)"})
      EXPECT_EQ(parse_error("weir-trace 1 " + (strategy + rest)), weir::errc::invalid_argument);
    EXPECT_EQ(parse_error("weir-trace 1 pct(1000)" + rest), std::error_code());
  }
  auto huge = sim::trace::of_seed(sim::pct(2'000'000'000), 1);
  EXPECT_EQ(replay_error(huge, [] { return ready(1); }), weir::errc::invalid_argument);
}

TEST(trace, a_row_too_long_for_the_memory_is_an_invalid_argument) {
  for (const char* tail : {"2*18446744073709551615", "2*99999999999999", "-18446744073709551615"}) {
    auto text = std::string("weir-trace 1 random seed=1 : ") + tail;
    EXPECT_EQ(parse_error(text), weir::errc::invalid_argument) << text;
  }
}

TEST(trace, a_parse_error_says_where) {
  std::string good = "weir-trace 1 random seed=1 : 3*2 ";
  auto what = what_of(thrown_by([&] { return sim::trace::parse(good + "oops"); }));
  EXPECT_TRUE(contains(what, "oops") || contains(what, std::to_string(good.size())) ||
              contains(what, std::to_string(good.size() + 1)))
      << what;
}

TEST(trace, a_reported_trace_contains_its_strategy_and_survives_printing) {
  for (auto strategy : {sim::random, sim::pct(2), sim::dfs(1)}) {
    SCOPED_TRACE(to_string(strategy));
    auto report = touchy_report(strategy);
    ASSERT_FALSE(report.ok());
    auto text = report.trace().text();
    EXPECT_TRUE(contains(text, to_string(strategy))) << text;
    EXPECT_EQ(sim::trace::parse(text), report.trace());
  }
}

TEST(trace, a_replay_repeats_the_failing_run_exactly) {
  for (auto strategy : {sim::random, sim::pct(2), sim::dfs(1)}) {
    SCOPED_TRACE(to_string(strategy));
    auto report = touchy_report(strategy);
    ASSERT_FALSE(report.ok());
    for (int i = 0; i < 3; ++i) {
      auto again = sim::trace::parse(report.trace().text());
      auto error = thrown_by([&] { sim::replay(again, [] { return touchy(true, 3, 3); }); });
      EXPECT_TRUE(contains(what_of(error), "said b")) << what_of(error);
      EXPECT_TRUE(contains(report.message(), what_of(error))) << report.message();
    }
  }
}

TEST(trace, a_replay_returns_the_value_of_the_program) {
  auto report = touchy_report(sim::random);
  ASSERT_FALSE(report.ok());
  std::string said = sim::replay(report.trace(), [] { return touchy(false, 3, 3); });
  EXPECT_TRUE(contains(report.message(), "said " + said)) << said << " / " << report.message();
}

TEST(trace, where_the_choices_are_unknown_the_seed_decides) {
  for (auto strategy : {sim::random, sim::pct(3), sim::fifo}) {
    SCOPED_TRACE(to_string(strategy));
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      auto once = sim::run({.seed = seed, .strategy = strategy}, conversation(3, 3));
      EXPECT_EQ(sim::replay(sim::trace::of_seed(strategy, seed), [] { return conversation(3, 3); }),
                once);
      EXPECT_EQ(sim::replay(seed, strategy, [] { return conversation(3, 3); }), once);
    }
  }
}

TEST(trace, a_program_with_fewer_options_does_not_fit) {
  auto trace = touchy_report(sim::random).trace();
  EXPECT_EQ(replay_error(trace, [] { return touchy(false, 2, 3); }), weir::errc::trace_mismatch);
  EXPECT_EQ(replay_error(trace, [] { return touchy(false, 1, 3); }), weir::errc::trace_mismatch);
}

TEST(trace, a_program_with_more_options_does_not_fit) {
  auto trace = touchy_report(sim::random).trace();
  EXPECT_EQ(replay_error(trace, [] { return touchy(false, 4, 3); }), weir::errc::trace_mismatch);
}

TEST(trace, a_program_that_chooses_more_often_does_not_fit) {
  auto trace = touchy_report(sim::random).trace();
  EXPECT_EQ(replay_error(trace, [] { return touchy(false, 3, 4); }), weir::errc::trace_mismatch);
  auto twice = []() -> task<> {
    (void)co_await touchy(false, 3, 3);
    (void)co_await touchy(false, 3, 3);
  };
  EXPECT_EQ(replay_error(trace, twice), weir::errc::trace_mismatch);
}

TEST(trace, a_program_that_chooses_less_often_does_not_fit) {
  auto trace = touchy_report(sim::random).trace();
  EXPECT_EQ(replay_error(trace, [] { return touchy(false, 3, 2); }), weir::errc::trace_mismatch);
  EXPECT_EQ(replay_error(trace, [] { return ready(1); }), weir::errc::trace_mismatch);
}

TEST(trace, a_program_that_draws_other_random_numbers_does_not_fit) {
  auto draw = []() -> task<std::uint64_t> { co_return weir::random(); };
  sim::trace one(sim::random, 1, {{7, random_draw}});
  EXPECT_EQ(sim::replay(one, draw), 7u);
  EXPECT_EQ(replay_error(sim::trace(sim::random, 1, {}), draw), weir::errc::trace_mismatch);
  EXPECT_EQ(replay_error(one, [] { return ready(1); }), weir::errc::trace_mismatch);
  EXPECT_EQ(replay_error(one, [] { return conversation(2, 1); }), weir::errc::trace_mismatch);
  sim::trace pick(sim::random, 1, {{0, 2}});
  EXPECT_EQ(replay_error(pick, draw), weir::errc::trace_mismatch);
}

TEST(trace, a_mismatch_leaves_nothing_behind_and_says_what_to_do) {
  auto trace = touchy_report(sim::random).trace();
  auto error = thrown_by([&] { sim::replay(trace, [] { return touchy(false, 5, 5); }); });
  EXPECT_EQ(code_of(error), weir::errc::trace_mismatch);
  EXPECT_NE(what_of(error), "");
  EXPECT_EQ(weir::live().fibers, 0);
  EXPECT_EQ(weir::live().loops, 0);
}

TEST(trace, a_mismatch_is_reported_and_not_the_leak_that_it_causes) {
  int children = 2;
  auto op = [&](sim::world& w) -> task<> {
    start_on(w.loop("a"), [] { return weir::sleep(1ms); });
    co_await weir::sleep(500us);  // now the other one sleeps, and leaks if nobody waits for it
    (void)co_await conversation(children, 1);
    co_await weir::sleep(1h);
    throw boom(children);
  };
  auto trace = sim::explore({.runs = 1}, op).trace();
  EXPECT_EQ(what_of(thrown_by([&] { sim::replay(trace, op); })), "boom 2");
  children = 3;
  EXPECT_EQ(replay_error(trace, op), weir::errc::trace_mismatch);
}

TEST(trace, a_choice_that_is_not_among_its_options_does_not_fit) {
  auto talk = [] { return conversation(3, 1); };
  EXPECT_EQ(replay_error(sim::trace(sim::random, 1, {{77, 3}}), talk), weir::errc::trace_mismatch);
  EXPECT_EQ(replay_error(sim::trace(sim::random, 1, {{3, 3}}), talk), weir::errc::trace_mismatch);
  auto fail = [](sim::world& w) -> task<> {
    w.disk().set({.eio = 0.5});
    (void)w.disk().open("/file", weir::open_mode::create);
    co_return;
  };
  EXPECT_EQ(replay_error(sim::trace(sim::random, 1, {{1, fault}}), fail), std::errc::io_error);
  EXPECT_EQ(replay_error(sim::trace(sim::random, 1, {{2, fault}}), fail),
            weir::errc::trace_mismatch);
}

TEST(trace, random_numbers_repeat_in_a_replay) {
  auto op = []() -> task<std::string> {
    std::string drawn = std::to_string(weir::random());
    std::string log = co_await conversation(2, 2);
    drawn += " " + std::to_string(weir::random()) + " " + weir::uuid();
    if (log.front() == 'b') throw std::runtime_error("drew " + drawn);
    co_return drawn;
  };
  auto report = sim::explore({.runs = 1000}, op);
  ASSERT_FALSE(report.ok());
  for (int i = 0; i < 3; ++i) {
    auto error = thrown_by([&] { sim::replay(report.trace(), op); });
    EXPECT_TRUE(contains(what_of(error), "drew ")) << what_of(error);
    EXPECT_TRUE(contains(report.message(), what_of(error))) << report.message();
  }
}

TEST(trace, time_repeats_in_a_replay) {
  auto op = []() -> task<> {
    auto t0 = weir::now();
    co_await weir::sleep(std::chrono::nanoseconds(weir::random() % 1'000'000 + 1));
    std::string log = co_await wake_order(2);
    if (log == "ba") throw boom(static_cast<int>((weir::now() - t0).count() % 1'000'000'000));
  };
  auto report = sim::explore({.runs = 1000}, op);
  ASSERT_FALSE(report.ok());
  auto error = thrown_by([&] { sim::replay(report.trace(), op); });
  EXPECT_GT(boom_of(error), 0);
  EXPECT_TRUE(contains(report.message(), what_of(error))) << report.message();
}

TEST(shrinking, a_trace_keeps_only_the_preemptions_that_the_failure_needs) {
  for (auto strategy : {sim::random, sim::pct(5)}) {
    for (int needed : {1, 2, 3}) {
      SCOPED_TRACE(to_string(strategy) + ", needed " + std::to_string(needed));
      for (std::uint64_t seed = 0; seed < 50'000; seed += 10'000) {
        auto report = sim::explore({.runs = 10'000, .strategy = strategy, .seed = seed},
                                   [=] { return transfers(needed); });
        ASSERT_FALSE(report.ok());
        EXPECT_EQ(report.trace().preemptions(), static_cast<std::size_t>(needed)) << report.trace();
      }
    }
  }
}

TEST(shrinking, a_failure_that_needs_no_preemption_keeps_none) {
  auto op = []() -> task<> {
    std::string log = co_await conversation(4, 5);
    throw boom(static_cast<int>(log.size()));
  };
  for (auto strategy : {sim::random, sim::pct(3), sim::dfs(2)}) {
    SCOPED_TRACE(to_string(strategy));
    auto report = sim::explore({.runs = 10, .strategy = strategy, .seed = 77}, op);
    EXPECT_TRUE(contains(report.message(), "boom 20")) << report;
    EXPECT_EQ(report.trace().preemptions(), 0u);
    EXPECT_EQ(report.seed(), 77u);
  }
}

TEST(shrinking, it_keeps_the_same_failure_where_another_one_is_easier) {
  // The hard loss needs more preemptions than the easy one and is looked at first.
  auto one_after_the_other = []() -> task<> {
    auto hard = co_await balance(3);
    if (hard != 2) throw boom(33);
    auto easy = co_await balance(1);
    if (easy != 2) throw boom(11);
  };
  auto together = []() -> task<> {
    int hard = 2, easy = 2;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> { hard = co_await balance(3); });
      s.spawn([&]() -> task<> { easy = co_await balance(1); });
      co_await s.join();
    });
    if (hard != 2) throw boom(33);
    if (easy != 2) throw boom(11);
  };
  auto check = [](auto program) {
    int found = 0;
    for (std::uint64_t seed = 0; seed < 1000 && found < 5; ++seed) {
      auto first = thrown_by([&] { sim::run({.seed = seed, .strategy = sim::random}, program); });
      if (boom_of(first) != 33) continue;
      ++found;
      auto report = sim::explore({.runs = 1, .seed = seed}, program);
      EXPECT_TRUE(contains(report.message(), "boom 33")) << report;
      EXPECT_EQ(boom_of(thrown_by([&] { sim::replay(report.trace(), program); })), 33) << seed;
    }
    EXPECT_EQ(found, 5);
  };
  check(one_after_the_other);
  check(together);
}

TEST(shrinking, it_keeps_a_deadlock_a_deadlock) {
  // Fails with boom in the order of production; deadlocks if the second fiber takes the permit.
  auto op = []() -> task<> {
    weir::counting_governor gate(1, {.name = "gate"});
    std::string log;
    auto taker = [&](char name) -> task<> {
      auto permit = co_await gate.acquire();
      log += name;
      if (name == 'b') (void)co_await gate.acquire();
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(taker('a'));
      auto second = s.spawn(taker('b'));
      co_await weir::sleep(1s);
      if (log == "ab") second.cancel();
      co_await s.join();
    });
    throw boom(1);
  };
  std::uint64_t seed = 0;
  auto code = [&] {
    return code_of(thrown_by([&] { sim::run({.seed = seed, .strategy = sim::random}, op); }));
  };
  while (seed < 1000 && code() != weir::errc::deadlock) ++seed;
  ASSERT_LT(seed, 1000u);
  auto report = sim::explore({.runs = 1, .seed = seed}, op);
  EXPECT_TRUE(contains(report.message(), "deadlock")) << report;
  EXPECT_EQ(replay_error(report.trace(), op), weir::errc::deadlock);
  EXPECT_EQ(report.trace().preemptions(), 1u) << report.trace();
}

TEST(shrinking, the_seed_stays_that_of_the_run) {
  auto report = sim::explore({.runs = 5000, .seed = 300}, [] { return transfer(4); });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.seed(), report.trace().seed());
  auto full =
      thrown_by([&] { sim::run({.seed = report.seed(), .strategy = sim::random}, transfer(4)); });
  EXPECT_EQ(boom_of(full), 1);
}

TEST(trace, it_carries_the_limit_of_steps_of_its_run) {
  auto report = sim::explore({.runs = 1000, .max_steps = 777}, [] { return transfer(1); });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.trace().max_steps(), 777);
  auto again = thrown_by([&] { sim::replay(report.trace(), [] { return transfer(1); }); });
  EXPECT_EQ(boom_of(again), 1);
}
