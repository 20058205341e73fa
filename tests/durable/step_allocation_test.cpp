// SPDX-License-Identifier: MIT
// What a step of a durable run asks of the heap: counted, not timed.
#include "durable/support/stage.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace durable_test;

namespace {

constexpr int warm_steps = 100;
constexpr int counted_steps = 200;

/// How many allocations the steps of a run need once it is warm, with their commits.
template <class Step>
double allocations_per_step(Step one_step) {
  const stage on;
  long counted = -1;
  auto many = [&](int) -> task<int> {
    for (int i = 0; i < warm_steps; ++i) co_await one_step(i);
    test_support::begin_to_count();
    for (int i = 0; i < counted_steps; ++i) co_await one_step(i);
    counted = test_support::end_count();
    co_return 1;
  };
  auto use = [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), 1);
  };
  session(on, as_h(many), use);
  return static_cast<double>(counted) / counted_steps;
}

}  // namespace

TEST(durable_step_allocation, a_step_with_a_number_needs_none_besides_what_vectors_need_to_grow) {
  const double each = allocations_per_step(
      [](int i) -> task<> { (void)co_await weir::step("add", [i] { return i; }); });
  EXPECT_GE(each, 0);
  EXPECT_LE(each, 0.1);
  RecordProperty("allocations", std::to_string(each));
}

#endif
