// SPDX-License-Identifier: MIT
// How often governors allocate, counted and not timed: once the caches are warm, waiting for a
// permit, getting it, giving it back and leaving the queue ask for nothing. The operator new of the
// test program that counts is in flow_allocation_test.cpp.
#include <new>

#include "governor_support.hpp"
#include "support/allocation_count.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace flow_test;

namespace {

/// Somebody gets a permit at once, somebody waits for it, somebody gives up waiting.
template <class G>
task<> use(weir::scope& s, G& g) {
  auto held = co_await g.acquire();
  for (int i = 0; i < 3; ++i) (void)co_await weir::race(g.acquire(), weir::sleep(500us));
  auto waiter = s.spawn([](G& of) -> task<> { (void)co_await of.acquire(); }(g));
  co_await weir::sleep(1ms);
  held.release();
  co_await waiter;
}

/// The allocations of ten uses, when several have warmed up the caches.
template <class G>
long allocations_of(G& g) {
  long taken = -1;
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 5; ++i) co_await use(s, g);
      aid::begin_to_count();
      for (int i = 0; i < 10; ++i) co_await use(s, g);
      taken = aid::end_count();
    });
  });
  return taken;
}

}  // namespace

TEST(governor_allocation, the_counter_counts) {
  aid::begin_to_count();
  ::operator delete(::operator new(1));
  EXPECT_EQ(aid::end_count(), 1);
}

TEST(governor_allocation, warm_governors_ask_for_nothing) {
  weir::counting_governor counting(1);
  EXPECT_EQ(allocations_of(counting), 0);
  weir::shared_governor shared(1);
  EXPECT_EQ(allocations_of(shared), 0);
  weir::burst_governor burst({.steady = 1, .burst = 1, .burst_for = 1s});
  EXPECT_EQ(allocations_of(burst), 0);
  weir::adaptive_governor adaptive({.initial = 1, .max = 1});
  EXPECT_EQ(allocations_of(adaptive), 0);
  weir::load_governor load({.max = 1});
  EXPECT_EQ(allocations_of(load), 0);
  weir::rate_governor rate({.per_second = 10, .burst = 1});
  EXPECT_EQ(allocations_of(rate), 0);
  weir::partitioned_governor parts(1, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(allocations_of(parts.part("a")), 0);
}

#endif
