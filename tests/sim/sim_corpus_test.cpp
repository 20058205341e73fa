// SPDX-License-Identifier: MIT
// The simulation against the corpus of buggy programs: every bug is found, repeated and shrunk, and
// nothing is found in the repairs.
#include "sim/corpus.hpp"

#include <cstdint>
#include <ostream>
#include <string>

#include "support/test_support.hpp"

using namespace test_support;
namespace sim = weir::sim;

namespace {

constexpr std::int64_t runs_to_find = 20'000;
constexpr std::int64_t runs_to_withstand = 2'000;
constexpr int repetitions = 20;
// Far more than any of the programs needs, so that a livelock is a short run.
constexpr std::int64_t max_steps = 500;

sim::report explore(corpus::maker program, sim::strategy strategy, std::int64_t runs) {
  sim::explore_options options{};
  options.runs = runs;
  options.strategy = strategy;
  options.max_steps = max_steps;
  return sim::explore(options, program);
}

/// What the adversary that the table names finds in the buggy program.
sim::report found_in(const corpus::entry& e) { return explore(e.buggy, e.found_by, runs_to_find); }

/// How the program ends when this trace is repeated.
std::exception_ptr replayed(const sim::trace& trace, corpus::maker program) {
  return thrown_by([&] { sim::replay(trace, program); });
}

class buggy_program : public testing::TestWithParam<corpus::entry> {};
class fixed_program : public testing::TestWithParam<corpus::entry> {
 protected:
  void expect_nothing_found(sim::strategy strategy) {
    const auto report = explore(GetParam().fixed, strategy, runs_to_withstand);
    EXPECT_TRUE(report.ok()) << report;
    EXPECT_TRUE(report.runs() == runs_to_withstand || report.exhausted()) << report.runs();
  }
};

std::string name_of(const testing::TestParamInfo<corpus::entry>& tested) {
  return std::string(tested.param.name);
}

}  // namespace

namespace corpus {
void PrintTo(const entry& e, std::ostream* out) { *out << e.name; }
}  // namespace corpus

TEST_P(buggy_program, passes_in_the_order_of_production) {
  sim::options options{};
  options.max_steps = max_steps;
  const auto error = thrown_by([&] { sim::run(options, GetParam().buggy); });
  EXPECT_TRUE(error == nullptr) << what_of(error);
}

TEST_P(buggy_program, is_found_out_by_the_adversary) {
  const auto report = found_in(GetParam());
  ASSERT_FALSE(report.ok()) << "not within " << report.runs() << " runs";
  EXPECT_PRED2(contains, report.message(), GetParam().message);
  EXPECT_EQ(report.failures(), 1);
}

TEST_P(buggy_program, fails_with_no_more_preemptions_than_it_needs) {
  const auto report = found_in(GetParam());
  ASSERT_FALSE(report.ok());
  EXPECT_LE(report.trace().preemptions(), GetParam().preemptions) << report.trace();
}

// Otherwise the table asks for less than shrinking could do.
TEST_P(buggy_program, needs_as_many_preemptions_as_the_table_says) {
  const int needed = static_cast<int>(GetParam().preemptions);
  ASSERT_GE(needed, 1) << "with none the run is that of production, which passes";
  const auto enough = explore(GetParam().buggy, sim::dfs(needed), runs_to_find);
  ASSERT_FALSE(enough.ok());
  EXPECT_EQ(enough.trace().preemptions(), GetParam().preemptions) << enough.trace();
  EXPECT_PRED2(contains, enough.message(), GetParam().message);
  const auto too_few = explore(GetParam().buggy, sim::dfs(needed - 1), runs_to_find);
  EXPECT_TRUE(too_few.ok()) << too_few;
  EXPECT_TRUE(too_few.exhausted());
}

TEST_P(buggy_program, fails_in_the_same_way_each_time_its_trace_is_replayed) {
  const auto report = found_in(GetParam());
  ASSERT_FALSE(report.ok());
  const auto first = replayed(report.trace(), GetParam().buggy);
  EXPECT_EQ(code_of(first), GetParam().code) << what_of(first);
  EXPECT_PRED2(contains, what_of(first), report.message());
  for (int i = 1; i < repetitions; ++i) {
    const auto again = replayed(report.trace(), GetParam().buggy);
    EXPECT_TRUE(holds<sim::failure>(again));
    EXPECT_EQ(what_of(again), what_of(first));
  }
}

TEST_P(buggy_program, fails_in_the_same_way_when_the_text_of_its_trace_is_replayed) {
  const auto report = found_in(GetParam());
  ASSERT_FALSE(report.ok());
  const auto parsed = sim::trace::parse(report.trace().text());
  EXPECT_EQ(parsed, report.trace());
  const auto by_trace = replayed(report.trace(), GetParam().buggy);
  for (int i = 0; i < repetitions; ++i) {
    const auto by_text = replayed(parsed, GetParam().buggy);
    EXPECT_EQ(code_of(by_text), GetParam().code);
    EXPECT_EQ(what_of(by_text), what_of(by_trace));
  }
}

// Not for dfs, whose runs differ by their place in the enumeration and not by their seed.
TEST_P(buggy_program, fails_again_with_the_seed_and_strategy_of_the_report) {
  if (GetParam().found_by.what == sim::strategy::kind::dfs) return;
  const auto report = found_in(GetParam());
  ASSERT_FALSE(report.ok());
  sim::options options{};
  options.seed = report.seed();
  options.strategy = GetParam().found_by;
  options.max_steps = max_steps;
  const auto error = thrown_by([&] { sim::run(options, GetParam().buggy); });
  EXPECT_EQ(code_of(error), GetParam().code) << what_of(error);
}

TEST_P(fixed_program, passes_in_the_order_of_production) {
  const auto error = thrown_by([&] { sim::run({}, GetParam().fixed); });
  EXPECT_TRUE(error == nullptr) << what_of(error);
}

TEST_P(fixed_program, withstands_priorities_that_change) { expect_nothing_found(sim::pct(3)); }

TEST_P(fixed_program, withstands_chance) { expect_nothing_found(sim::random); }

TEST_P(fixed_program, withstands_every_single_preemption) { expect_nothing_found(sim::dfs(1)); }

INSTANTIATE_TEST_SUITE_P(corpus, buggy_program, testing::ValuesIn(corpus::table), name_of);
INSTANTIATE_TEST_SUITE_P(corpus, fixed_program, testing::ValuesIn(corpus::table), name_of);
