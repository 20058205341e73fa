// SPDX-License-Identifier: MIT
// A race or timeout over waits allocates nothing: every call of operator new in this program is
// counted while a fiber races. The operators are weak, so that another file may replace them.
#include <atomic>
#include <cstdlib>
#include <new>

#include "support/aid.hpp"

using namespace aid;
using weir::task;

namespace {

std::atomic<long> allocations{0};

void* counted_new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}

long allocated() { return allocations.load(std::memory_order_relaxed); }

/// False if another file of this program has replaced the operators in turn.
bool counting_works() {
  long before = allocated();
  void* p = ::operator new(1);
  ::operator delete(p);
  return allocated() != before;
}

/// Runs `once` a few times to warm up, then counts the allocations of many more turns.
template <class Once>
task<long> allocations_of(Once once) {
  for (int i = 0; i < 10; ++i) co_await once();
  long before = allocated();
  for (int i = 0; i < 1000; ++i) co_await once();
  co_return allocated() - before;
}

}  // namespace

__attribute__((weak)) void* operator new(std::size_t size) { return counted_new(size); }
__attribute__((weak)) void* operator new[](std::size_t size) { return counted_new(size); }
__attribute__((weak)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((weak)) void operator delete[](void* p) noexcept { std::free(p); }
__attribute__((weak)) void operator delete(void* p, std::size_t) noexcept { std::free(p); }
__attribute__((weak)) void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

TEST(race, over_waits_allocates_nothing) {
  if (!counting_works()) GTEST_SKIP() << "operator new is replaced elsewhere in this program";
  weir::sim::run({.seed = 1}, []() -> task<> {
    weir::counting_governor g(0);
    auto once = [&]() -> task<> {
      co_await weir::race(weir::sleep(1ms), weir::sleep(1h));
      (void)co_await weir::race(g.acquire(), weir::sleep(1ms));
      (void)co_await weir::any(g.acquire(), weir::sleep(1ms));
    };
    long count = co_await allocations_of(once);
    EXPECT_EQ(count, 0);
  });
}

TEST(deadline, over_a_wait_in_time_allocates_nothing) {
  if (!counting_works()) GTEST_SKIP() << "operator new is replaced elsewhere in this program";
  weir::sim::run({.seed = 1}, []() -> task<> {
    auto once = []() -> task<> { co_await weir::with_timeout(1h, weir::sleep(1ms)); };
    long count = co_await allocations_of(once);
    EXPECT_EQ(count, 0);
  });
}
