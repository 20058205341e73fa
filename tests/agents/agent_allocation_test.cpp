// SPDX-License-Identifier: MIT
// Allocations of agents: none per message once they are warm, and few per idle agent. Counted, not
// timed.
#include <malloc.h>

#include "agent_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace weir_test;

namespace {

constexpr int counted_rounds = 200;

/// The allocations of `act(agent)`, many times, from the moment when everything is warm.
template <class F>
long allocations_of(F act, weir::agent_options options = {}) {
  long taken = -1;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto c = weir::spawn_agent<counter>(s, options);
      for (int i = 0; i < 50; ++i) co_await act(c);
      test_support::begin_to_count();
      for (int i = 0; i < counted_rounds; ++i) co_await act(c);
      taken = test_support::end_count();
    });
  });
  return taken;
}

}  // namespace

TEST(agent_allocation, the_counter_counts) {
  auto asks = [](agent_ref<counter>&) -> task<> {
    ::operator delete(::operator new(1));  // calls: a new expression may be optimised away
    co_return;
  };
  EXPECT_EQ(allocations_of(asks), counted_rounds);
}

TEST(agent_allocation, a_cast_with_small_arguments_asks_for_nothing) {
  auto casts = [](agent_ref<counter>& c) -> task<> {
    for (int i = 0; i < 3; ++i) c.cast(&counter::inc, 1);
    co_await weir::yield();
    co_await weir::yield();
  };
  EXPECT_EQ(allocations_of(casts), 0);
}

TEST(agent_allocation, a_wave_of_casts_asks_for_nothing_when_there_was_one_before) {
  auto wave = [](agent_ref<counter>& c) -> task<> {
    for (int i = 0; i < 100; ++i) c.cast(&counter::inc, 1);
    while (c.info().queued > 0) co_await weir::yield();
  };
  EXPECT_EQ(allocations_of(wave), 0);
}

TEST(agent_allocation, a_call_asks_for_nothing) {
  auto calls = [](agent_ref<counter>& c) -> task<> { (void)co_await c.call(&counter::fetch_inc); };
  EXPECT_EQ(allocations_of(calls), 0);
}

TEST(agent_allocation, a_call_of_an_asynchronous_handler_asks_for_nothing) {
  auto calls = [](agent_ref<counter>& c) -> task<> {
    (void)co_await c.call(&counter::get_after, weir::duration::zero());
  };
  EXPECT_EQ(allocations_of(calls), 0);
}

TEST(agent_allocation, waiting_for_room_asks_for_nothing) {
  weir::agent_options options;
  options.capacity = 1;
  options.overflow = weir::overflow::wait;
  auto sends = [](agent_ref<counter>& c) -> task<> {
    for (int i = 0; i < 4; ++i) co_await c.send(&counter::inc, 1);
  };
  EXPECT_EQ(allocations_of(sends, options), 0);
}

TEST(agent_allocation, an_idle_agent_takes_at_most_400_bytes) {
  constexpr std::size_t agents = 20'000;
  constexpr std::size_t bytes_most = 400;
  // The first ones fill the caches for frames, so that only what each takes is seen.
  std::size_t taken = 0;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (std::size_t i = 0; i < agents / 10; ++i) weir::spawn_agent<counter>(s, {});
      co_await weir::yield();
      const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
      for (std::size_t i = 0; i < agents; ++i) weir::spawn_agent<counter>(s, {});
      for (int i = 0; i < 10; ++i) co_await weir::yield();
      taken = ::mallinfo2().uordblks + ::mallinfo2().hblkhd - before;
    });
  });
  EXPECT_LE(taken / agents, bytes_most);
}

#endif
