// SPDX-License-Identifier: MIT
// How often policies allocate while nothing fails, counted and not timed: once the caches are warm,
// not at all.
#include <array>
#include <cstddef>

#include "policy_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace policy_test;

namespace {

using test_support::allocations;
using test_support::armed;

/// The allocations of 200 runs of an operation after 50 to warm up, on the scheduler of production.
template <class Make>
long allocations_of(Make make) {
  long taken = -1;
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto o = make();
    for (int i = 0; i < 50; ++i) (void)co_await o();
    allocations = 0;
    armed = true;
    for (int i = 0; i < 200; ++i) (void)co_await o();
    armed = false;
    taken = allocations;
  });
  return taken;
}

constexpr auto quick = [] { return ready(1); };
constexpr auto waits = [] { return after(1ms, 1); };

}  // namespace

TEST(policy_allocation, the_counter_counts) {
  const long taken = allocations_of([] {
    return [] {
      ::operator delete(::operator new(1));  // calls: a new expression may be optimised away
      return ready(1);
    };
  });
  EXPECT_EQ(taken, 200);
}

TEST(policy_allocation, a_timeout_inside_a_retry_asks_for_nothing) {
  EXPECT_EQ(allocations_of([] { return weir::op(quick) | weir::timeout(1s) | weir::retry(); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(waits) | weir::timeout(1s) | weir::retry(); }), 0);
}

TEST(policy_allocation, no_layer_asks_for_anything_while_nothing_fails) {
  weir::circuit_breaker cb;
  weir::retry_budget budget;
  weir::counting_governor g(1);
  EXPECT_EQ(allocations_of([] { return weir::op(quick); }), 0);
  EXPECT_EQ(allocations_of([&] { return weir::op(quick) | weir::retry({.budget = &budget}); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(waits) | weir::hedge({.after = 1h}); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(quick) | weir::fallback([] { return 2; }); }), 0);
  EXPECT_EQ(allocations_of([&] { return weir::op(waits) | weir::breaker(cb); }), 0);
  EXPECT_EQ(allocations_of([&] { return weir::op(waits) | weir::bulkhead(g); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(waits) | weir::bulkhead(2); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(waits) | weir::supervise(); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(waits) | weir::chaos(); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(waits) | weir::trace("warm"); }), 0);
  EXPECT_EQ(allocations_of([] { return weir::op(waits) | weir::finally([] {}); }), 0);
}

// docs/reference/toolkit.md: once warm, a run of a pipeline makes no allocation, however long it is
// and however large its frames are.
TEST(policy_allocation, a_pipeline_of_ten_policies_asks_for_nothing) {
  weir::circuit_breaker cb;
  weir::retry_budget budget;
  weir::counting_governor g(2);
  EXPECT_EQ(allocations_of([&] {
              return weir::op(waits) | weir::timeout(1s) | weir::retry({.budget = &budget}) |
                     weir::hedge({.after = 1h}) | weir::breaker(cb) | weir::bulkhead(g) |
                     weir::fallback([] { return 2; }) | weir::chaos() | weir::supervise() |
                     weir::trace("ten") | weir::timeout(2s);
            }),
            0);
}

TEST(policy_allocation, retries_inside_retries_ask_for_nothing) {
  const auto again = weir::retry({.attempts = 2});
  EXPECT_EQ(allocations_of([&] { return weir::op(waits) | again | again | again | again; }), 0);
}

TEST(policy_allocation, frames_of_many_kilobytes_ask_for_nothing) {
  struct table {
    std::array<char, 6000> bytes{};
  };
  const table large;
  auto holds = [large] { return after(1ms, static_cast<int>(large.bytes[0])); };
  auto works = []() -> task<int> {
    table scratch;
    scratch.bytes[1] = 1;
    co_await weir::sleep(1ms);
    co_return scratch.bytes[1];
  };
  EXPECT_EQ(allocations_of([&] { return weir::op(holds) | weir::timeout(1s) | weir::retry(); }), 0);
  EXPECT_EQ(allocations_of([&] { return weir::op(works) | weir::timeout(1s) | weir::retry(); }), 0);
}

TEST(policy_allocation, an_inner_layer_does_not_copy_what_the_outermost_keeps) {
  auto copies = std::make_shared<int>(1);
  long most = 0;
  auto counts = [copies, &most]() -> task<int> {
    most = std::max(most, copies.use_count());
    co_return 1;
  };
  weir::run([&]() -> task<> {
    auto o =
        weir::op(counts) | weir::timeout(1s) | weir::retry() | weir::fallback([] { return 0; });
    const long before = copies.use_count();
    (void)co_await o();
    EXPECT_EQ(most, before + 1);  // one copy for the run, whatever the number of layers
    (void)co_await weir::settle(std::move(o));
    EXPECT_LE(most, before + 1);
  });
}

#endif
