// SPDX-License-Identifier: MIT
// permit and the governor concept: releasing, moving, permits of user-defined governors, and
// weir::with and weir::wrap with any governor.
#include <memory>
#include <optional>
#include <type_traits>

#include "scope_support.hpp"

using namespace weir_test;
using weir::task;

namespace {

/// A governor of one's own: no limit, it only counts; the release fails if told so.
struct own_governor {
  int out = 0, acquired = 0;
  bool breaks = false;

  weir::permit make() {
    ++out;
    ++acquired;
    return weir::permit([this] {
      --out;
      if (breaks) throw boom(9);
    });
  }
  task<weir::permit> acquire() {
    co_await weir::sleep(1ms);
    co_return make();
  }
  std::optional<weir::permit> try_acquire() { return make(); }
};

struct not_a_governor {
  int acquire() { return 1; }
};

}  // namespace

TEST(permit, the_concept_knows_a_governor) {
  static_assert(weir::governor<weir::counting_governor>);
  static_assert(weir::governor<own_governor>);
  static_assert(!weir::governor<not_a_governor>);
  static_assert(!weir::governor<int>);
  static_assert(std::is_default_constructible_v<weir::permit>);
  static_assert(std::is_move_constructible_v<weir::permit>);
  static_assert(!std::is_copy_constructible_v<weir::permit>);
  weir::permit empty;
  empty.release();
  EXPECT_EQ(static_cast<long>(empty.weight()), 0);
}
FIBER_TEST(permit, releasing_twice_gives_back_once) {
  weir::counting_governor g(2);
  auto a = co_await g.acquire();
  auto b = co_await g.acquire();
  a.release();
  a.release();
  EXPECT_EQ(free_in(g), 1);
  b.release();
  EXPECT_EQ(free_in(g), 2);
}

FIBER_TEST(permit, it_is_given_back_by_its_destructor_and_moves_with_its_object) {
  weir::counting_governor g(2);
  {
    auto a = co_await g.acquire();
    weir::permit b = std::move(a);
    a.release();  // moved from: nothing
    EXPECT_EQ(free_in(g), 1);
    auto c = co_await g.acquire();
    b = std::move(c);  // gives back what b held
    EXPECT_EQ(free_in(g), 1);
  }
  EXPECT_EQ(free_in(g), 2);
}

TEST(permit, of_ones_own_governor_calls_its_function_once) {
  int calls = 0;
  {
    weir::permit a([&] { ++calls; });
    weir::permit b = std::move(a);
    b.release();
    b.release();
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(calls, 1);
  {
    weir::permit c([&] { ++calls; });
  }
  EXPECT_EQ(calls, 2);
}

FIBER_TEST(permit, a_release_rethrows_the_error_and_the_destructor_makes_it_an_event) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  weir::permit a([] { throw boom(1); });
  auto error = thrown_by([&] { a.release(); });
  EXPECT_EQ(boom_of(error), 1);
  EXPECT_EQ(counted(events, "cleanup_failed"), 0);
  {
    weir::permit b([] { throw boom(2); });
  }
  EXPECT_EQ(counted(events, "cleanup_failed"), 1);
  co_return;
}

FIBER_TEST_IN_EVERY_ORDER(permit, a_cancelled_holder_gives_it_back) {
  weir::counting_governor g(1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto holder = s.spawn([&]() -> task<> {
      auto permit = co_await g.acquire();
      co_await weir::sleep(1h);
    });
    co_await weir::sleep(1ms);
    EXPECT_EQ(free_in(g), 0);
    holder.cancel();
  });
  EXPECT_EQ(free_in(g), 1);
}

// Lost, it would be a deadlock.
FIBER_TEST_IN_EVERY_ORDER(
    permit, released_on_another_loop_it_comes_home_also_if_the_waiter_is_cancelled_meanwhile) {
  weir::counting_governor g(1);
  weir::permit held = co_await g.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto waiter = s.spawn([&]() -> task<> {
      auto permit = co_await g.acquire();
      co_await weir::yield();
    });
    w.loop("peer").post([&] { held.release(); });
    for (int i = 0; i < 4; ++i) co_await weir::yield();
    waiter.cancel();
    co_await s.idle();
  });
  auto again = co_await g.acquire();
  EXPECT_EQ(static_cast<long>(g.active()), 1);
  EXPECT_EQ(static_cast<long>(g.waiting()), 0);
}
FIBER_TEST(permit, with_holds_a_permit_of_any_governor_while_the_op_runs) {
  own_governor mine;
  int value = co_await weir::with(mine, [&]() -> task<int> {
    EXPECT_EQ(mine.out, 1);
    co_return 4;
  });
  EXPECT_EQ(value, 4);
  EXPECT_EQ(mine.out, 0);
  mine.breaks = true;
  auto released = co_await error_of(weir::with(mine, ready(1)));
  EXPECT_EQ(boom_of(released), 9);
  EXPECT_EQ(mine.out, 0);
}

// Both errors are reported, in the order of the page
FIBER_TEST(permit, an_op_and_a_release_that_both_fail_are_a_group_with_the_op_first) {
  own_governor mine;
  mine.breaks = true;
  std::vector<int> numbers;
  try {
    (void)co_await weir::with(mine, fails_after(1ms, 1));
  } catch (const weir::error_group& group) {
    for (const auto& e : group.errors()) numbers.push_back(boom_of(e));
  }
  EXPECT_EQ(numbers, (std::vector<int>{1, 9}));
  EXPECT_EQ(mine.out, 0);
}
FIBER_TEST(permit, wrap_makes_a_limited_function_for_any_governor) {
  own_governor mine;
  weir::counting_governor g(1);
  auto plus = weir::wrap(mine, [&](int a, int b) -> task<int> { co_return a + b + mine.out; });
  auto minus = weir::wrap(g, [&](int a, int b) -> task<int> {
    EXPECT_EQ(free_in(g), 0);
    co_return a - b;
  });
  int sum = co_await plus(1, 2);
  int difference = co_await minus(5, 3);
  EXPECT_EQ(sum, 4);
  EXPECT_EQ(difference, 2);
  EXPECT_EQ(mine.out, 0);
  EXPECT_EQ(mine.acquired, 1);
  EXPECT_EQ(free_in(g), 1);
}
