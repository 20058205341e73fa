// SPDX-License-Identifier: MIT
// weir::testing::explore: a test body under the adversary, for GoogleTest.
#include <gtest/gtest-spi.h>
#include <weir/interop/gtest.hpp>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

/// The failures that `f` adds to the test, without failing this one.
template <class F>
std::vector<::testing::TestPartResult> failures_of(F f) {
  ::testing::TestPartResultArray caught;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &caught);
    f();
  }
  std::vector<::testing::TestPartResult> all;
  for (int i = 0; i < caught.size(); ++i) all.push_back(caught.GetTestPartResult(i));
  return all;
}

}  // namespace

TEST(testing_explore, a_failing_program_fails_the_test_with_the_report) {
  auto lose = [] { weir::testing::explore({.runs = 1000}, [] { return transfer(2); }); };
  EXPECT_NONFATAL_FAILURE(lose(), "boom 1");
  EXPECT_NONFATAL_FAILURE(lose(), "replay");
  EXPECT_NONFATAL_FAILURE(lose(), "random");
}

TEST(testing_explore, a_correct_program_fails_nothing) {
  auto found = failures_of([] {
    auto report = weir::testing::explore({.runs = 20}, [] { return conversation(2, 2); });
    if (report.runs() != 20) ADD_FAILURE() << report;
  });
  EXPECT_EQ(found.size(), 0u);
}

TEST(testing_explore, it_gives_the_report_back) {
  sim::report report;
  auto found = failures_of([&] {
    report = weir::testing::explore({.runs = 1000, .strategy = sim::pct(2), .seed = 9},
                                    [] { return transfer(1); });
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.trace().strategy(), sim::pct(2));
  EXPECT_TRUE(contains(found[0].message(), printed(report))) << found[0].message();
}

TEST(testing_explore, the_failure_is_at_the_line_of_the_call) {
  std::source_location here;
  auto found = failures_of([&] {
    here = std::source_location::current();
    weir::testing::explore({.runs = 10}, []() -> task<> { throw boom(1); });
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line_number(), static_cast<int>(here.line()) + 1);
  EXPECT_STREQ(found[0].file_name(), here.file_name());
  EXPECT_TRUE(found[0].nonfatally_failed());
}

TEST(testing_explore, a_violated_assertion_is_named) {
  auto op = []() -> task<> {
    int left = co_await balance(1);
    sim::always("no deposit is lost", left == 2);
  };
  EXPECT_NONFATAL_FAILURE(weir::testing::explore({.runs = 1000}, op), "no deposit is lost");
}

TEST(testing_explore, bad_options_throw) {
  auto error = thrown_by([] { weir::testing::explore({.runs = 0}, [] { return ready(1); }); });
  EXPECT_EQ(code_of(error), weir::errc::invalid_argument);
}

TEST(testing_explore, the_program_may_take_the_world) {
  auto report = weir::testing::explore({.runs = 5}, [](sim::world& w) -> task<> {
    EXPECT_TRUE(w.loop("a").alive());
    co_return;
  });
  EXPECT_TRUE(report.ok());
}
