// SPDX-License-Identifier: MIT
// How often governors allocate, counted and not timed: once the caches are warm, waiting for a
// permit, getting it, giving it back and leaving the queue ask for nothing.
#include <cstddef>

#include "governor_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace flow_test;

namespace {

using test_support::allocations;
using test_support::armed;

/// Somebody gets a permit at once, somebody waits for it, somebody gives up waiting.
template <class G>
task<> use_governor(weir::scope& s, G& g) {
  auto held = co_await g.acquire();
  for (int i = 0; i < 3; ++i) (void)co_await weir::race(g.acquire(), weir::sleep(500us));
  auto waiter = s.spawn([](G& of) -> task<> { (void)co_await of.acquire(); }(g));
  co_await weir::sleep(1ms);
  held.release();
  co_await waiter;
}

/// The allocations of ten uses, when several have warmed up the caches.
template <class G>
long allocations_of_use(G& g) {
  long taken = -1;
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 5; ++i) co_await use_governor(s, g);
      allocations = 0;
      armed = true;
      for (int i = 0; i < 10; ++i) co_await use_governor(s, g);
      armed = false;
      taken = allocations;
    });
  });
  return taken;
}

}  // namespace

TEST(governor_allocation, the_counter_counts) {
  allocations = 0;
  armed = true;
  ::operator delete(::operator new(1));
  armed = false;
  EXPECT_EQ(allocations, 1);
}

TEST(governor_allocation, warm_governors_ask_for_nothing) {
  weir::counting_governor counting(1);
  EXPECT_EQ(allocations_of_use(counting), 0);
  weir::shared_governor shared(1);
  EXPECT_EQ(allocations_of_use(shared), 0);
  weir::burst_governor burst({.steady = 1, .burst = 1, .burst_for = 1s});
  EXPECT_EQ(allocations_of_use(burst), 0);
  weir::adaptive_governor adaptive({.initial = 1, .max = 1});
  EXPECT_EQ(allocations_of_use(adaptive), 0);
  weir::load_governor load({.max = 1});
  EXPECT_EQ(allocations_of_use(load), 0);
  weir::rate_governor rate({.per_second = 10, .burst = 1});
  EXPECT_EQ(allocations_of_use(rate), 0);
  weir::partitioned_governor parts(1, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(allocations_of_use(parts.part("a")), 0);
}

#endif
