// SPDX-License-Identifier: MIT
// for_each_order, which the tests of core and scope are written with: it finds the order in which
// an expectation does not hold, and says how to repeat it.
#include <gtest/gtest-spi.h>

#include <set>
#include <string>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

/// Expects what holds in the order of production only.
void expect_that_nothing_is_lost(sim::world& w) {
  int left = w.run([] { return balance(1); });
  EXPECT_EQ(left, 2);
}

/// The message of the one failure that `f` adds to the test, without failing this one.
template <class F>
std::string failure_of(F f) {
  ::testing::TestPartResultArray caught;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &caught);
    f();
  }
  EXPECT_EQ(caught.size(), 1);
  return caught.size() == 0 ? std::string() : caught.GetTestPartResult(0).message();
}

/// The first trace in a report.
std::string trace_in(const std::string& text) {
  auto begin = text.find("weir-trace");
  return begin == std::string::npos ? text : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

TEST(for_each_order, an_expectation_that_fails_in_some_order_is_reported_once_and_shrunk) {
  auto message = failure_of([] { for_each_order(expect_that_nothing_is_lost); });
  EXPECT_TRUE(contains(message, "sim_for_each_order_test.cpp:")) << message;
  EXPECT_TRUE(contains(message, "Expected equality of these values")) << message;
  EXPECT_TRUE(contains(message, "WEIR_TEST_TRACE=")) << message;
  EXPECT_EQ(sim::trace::parse(trace_in(message)).preemptions(), 1u) << message;
}

TEST(for_each_order, the_reported_trace_repeats_the_failure_of_the_expectation) {
  auto message = failure_of([] { for_each_order(expect_that_nothing_is_lost); });
  environment_variable again("WEIR_TEST_TRACE", trace_in(message).c_str());
  auto repeated = failure_of([] { for_each_order(expect_that_nothing_is_lost); });
  EXPECT_TRUE(contains(repeated, "Expected equality of these values")) << repeated;
  EXPECT_FALSE(contains(repeated, "weir-trace")) << repeated;
}

TEST(for_each_order, an_error_that_leaves_the_body_is_reported_like_a_failed_expectation) {
  auto message =
      failure_of([] { for_each_order([](sim::world& w) { w.run([] { return transfer(1); }); }); });
  EXPECT_TRUE(contains(message, "boom 1")) << message;
}

TEST(for_each_order, a_failed_expectation_goes_before_the_error_that_follows_from_it) {
  auto message = failure_of([] {
    for_each_order([](sim::world& w) {
      EXPECT_EQ(1, 2);
      w.run(fails_after(1ms, 3));
    });
  });
  EXPECT_TRUE(contains(message, "Expected equality of these values")) << message;
  EXPECT_FALSE(contains(message, "boom 3")) << message;
}

TEST(for_each_order, a_body_is_run_in_many_orders) {
  std::set<std::string> orders;
  for_each_order([&](sim::world& w) { orders.insert(w.run([] { return conversation(3, 3); })); });
  EXPECT_TRUE(orders.contains("abcabcabc"));
  EXPECT_GT(orders.size(), static_cast<std::size_t>(100 / weir_test::fewer));
}
