// SPDX-License-Identifier: MIT
// all, any, all_settled and select over tasks, callables, waits, futures, mixes and ranges.
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <variant>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

std::vector<task<int>> sleepers(int count) {
  std::vector<task<int>> ops;
  for (int i = 0; i < count; ++i) ops.push_back(after((count - i) * 1ms, i));
  return ops;
}

/// A callable whose move number `*left` throws, and every copy is a move.
struct fragile {
  explicit fragile(int& moves) : left(&moves) {}
  fragile(const fragile& other) : left(other.left) {
    if (--*left == 0) throw boom(7);
  }
  task<int> operator()() const {
    co_await weir::sleep(1ms);
    co_return 1;
  }
  int* left;
};

/// Lets each move of a fragile input of `combine` throw, until none does. Returns how many threw.
template <class Combine>
task<int> moves_that_throw(Combine combine) {
  for (int moves = 1;; ++moves) {
    int left = moves;
    const fragile input(left);
    const long fibers = live_fibers();
    const std::exception_ptr error = co_await attempt([&] { return combine(input); });
    EXPECT_EQ(live_fibers(), fibers);
    if (error == nullptr) co_return moves - 1;
    EXPECT_EQ(boom_of(error), 7);
  }
}

std::vector<int> group_numbers(const std::exception_ptr& error) {
  std::vector<int> numbers;
  try {
    if (error) std::rethrow_exception(error);
  } catch (const weir::error_group& group) {
    for (const auto& leaf : group.errors()) numbers.push_back(boom_of(leaf));
  } catch (...) {
    numbers.push_back(-1);
  }
  return numbers;
}

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(all, the_values_are_a_tuple_in_input_order_with_unit_for_void) {
  auto t0 = weir::now();
  auto number = []() -> task<int> {
    co_await weir::sleep(20ms);
    co_return 1;
  };
  auto nothing = []() -> task<> { co_await weir::sleep(10ms); };
  auto text = []() -> task<std::string> {
    co_await weir::sleep(5ms);
    co_return "text";
  };
  auto values = co_await weir::all(number, nothing, text());
  static_assert(std::is_same_v<decltype(values), std::tuple<int, weir::unit, std::string>>);
  EXPECT_EQ(std::get<0>(values), 1);
  EXPECT_EQ(std::get<2>(values), "text");
  EXPECT_EQ(weir::now() - t0, 20ms);
}
FIBER_TEST_IN_EVERY_ORDER(all,
                          a_range_gives_a_vector_in_input_order_whatever_the_order_of_completion) {
  auto t0 = weir::now();
  std::vector<int> values = co_await weir::all(sleepers(20));
  EXPECT_EQ(weir::now() - t0, 20ms);
  EXPECT_EQ(values.size(), 20u);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<int>(i));
}

FIBER_TEST_IN_EVERY_ORDER(all, a_range_may_hold_callables_futures_or_void_tasks) {
  std::vector<std::function<task<int>()>> callables;
  for (int i = 0; i < 3; ++i) callables.push_back([i] { return after(1ms, i); });
  std::vector<int> called = co_await weir::all(callables);
  EXPECT_EQ(called, (std::vector<int>{0, 1, 2}));
  std::vector<task<>> tasks;
  int ran = 0;
  auto count = [&]() -> task<> {
    ++ran;
    co_return;
  };
  for (int i = 0; i < 3; ++i) tasks.push_back(count());
  (void)co_await weir::all(std::move(tasks));
  EXPECT_EQ(ran, 3);
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    std::vector<weir::future<int>> futures;
    for (int i = 0; i < 3; ++i) futures.push_back(s.spawn(after(1ms, i)));
    std::vector<int> copies = co_await weir::all(futures);
    EXPECT_EQ(copies, (std::vector<int>{0, 1, 2}));
    int still = co_await futures[1];
    EXPECT_EQ(still, 1);
  });
}
TEST(all, the_first_failure_cancels_and_joins_the_rest_and_is_thrown) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      auto error = co_await error_of(
          weir::all(slow_to_stop(log, "a"), fails_after(5ms, 6), slow_to_stop(log, "b")));
      EXPECT_EQ(boom_of(error), 6);
      EXPECT_EQ(weir::now() - t0, 35ms);
      log.push_back("thrown");
    });
    std::sort(log.begin(), log.begin() + std::min<std::ptrdiff_t>(2, std::ssize(log)));
    EXPECT_EQ(joined(log), "a stopped,b stopped,thrown");
  });
}
FIBER_TEST_IN_EVERY_ORDER(all,
                          a_failing_future_behind_a_slow_one_fails_at_once_and_cancels_no_future) {
  co_await weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
    auto slow = s.spawn(after(400ms, 3));
    auto bad = s.spawn(fails_after(5ms, 8));
    auto t0 = weir::now();
    auto error = co_await error_of(weir::all(slow, bad));
    EXPECT_EQ(boom_of(error), 8);
    EXPECT_EQ(weir::now() - t0, 5ms);
    EXPECT_FALSE(slow.done());
    int value = co_await slow;
    EXPECT_EQ(value, 3);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(all, lvalue_futures_give_references_and_rvalue_ones_are_taken) {
  auto make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
  auto seen = s.spawn(make);
  auto taken = s.spawn(make);
  auto values = co_await weir::all(seen, std::move(taken));
  static_assert(std::is_same_v<decltype(values),
                               std::tuple<const std::unique_ptr<int>&, std::unique_ptr<int>>>);
  const std::unique_ptr<int>& same = co_await seen;
  EXPECT_EQ(&std::get<0>(values), &same);
  EXPECT_EQ(*std::get<1>(values), 4);
}

SCOPE_TEST_IN_EVERY_ORDER(all, waits_tasks_callables_and_futures_can_be_mixed) {
  auto t0 = weir::now();
  auto f = s.spawn(after(4ms, 4));
  auto callable = []() -> task<int> { co_return 3; };
  auto values = co_await weir::all(weir::sleep(7ms), after(2ms, 2), callable, f);
  static_assert(std::is_same_v<decltype(values), std::tuple<weir::unit, int, int, const int&>>);
  EXPECT_EQ(std::get<1>(values) * 100 + std::get<2>(values) * 10 + std::get<3>(values), 234);
  EXPECT_EQ(weir::now() - t0, 7ms);
}
FIBER_TEST(all, of_nothing_is_empty_at_once) {
  auto t0 = weir::now();
  std::vector<task<int>> none;
  std::vector<int> values = co_await weir::all(std::move(none));
  EXPECT_TRUE(values.empty());
  std::vector<task<int>> nothing;
  auto outcomes = co_await weir::all_settled(std::move(nothing));
  EXPECT_TRUE(outcomes.empty());
  EXPECT_EQ(weir::now(), t0);
}

SCOPE_TEST_IN_EVERY_ORDER(all, a_cancelled_input_future_is_thrown_as_cancelled_error) {
  auto stopped = s.spawn(after(1h, 1));
  auto fine = s.spawn(after(2ms, 2));
  co_await weir::sleep(1ms);
  stopped.cancel("enough");
  auto error = co_await error_of(weir::all(fine, stopped));
  EXPECT_TRUE(holds<weir::cancelled_error>(error)) << what_of(error);
}
FIBER_TEST_IN_EVERY_ORDER(all_settled, it_never_cancels_and_gives_an_outcome_per_input) {
  auto t0 = weir::now();
  std::vector<task<int>> ops;
  ops.push_back(fails_after(1ms, 1));
  ops.push_back(after(30ms, 2));
  ops.push_back(ready(3));
  auto outcomes = co_await weir::all_settled(std::move(ops));
  EXPECT_EQ(weir::now() - t0, 30ms);
  EXPECT_EQ(outcomes.size(), 3u);
  if (outcomes.size() == 3) {
    EXPECT_EQ(boom_of(outcomes[0].error()), 1);
    EXPECT_EQ(outcomes[1].value(), 2);
    EXPECT_EQ(outcomes[2].value(), 3);
  }
}
FIBER_TEST_IN_EVERY_ORDER(all_settled, different_inputs_give_a_tuple_of_outcomes) {
  auto stops = []() -> task<std::string> {
    co_return co_await weir::with_scope([](weir::scope& s) -> task<std::string> {
      s.cancel("enough");
      co_await weir::checkpoint();
      co_return "never";
    });
  };
  auto outcomes = co_await weir::all_settled(after(1ms, 1), weir::sleep(2ms), stops);
  EXPECT_EQ(std::get<0>(outcomes).value(), 1);
  EXPECT_TRUE(std::get<1>(outcomes).is_value());
  EXPECT_FALSE(std::get<2>(outcomes).is_value());
}
TEST(all_settled, a_cancelled_caller_unwinds_after_its_inputs_are_joined) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      auto o = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          end_note gone(log, "caller");
          (void)co_await weir::all_settled(slow_to_stop(log, "input"), after(1h, 1));
          log.push_back("WENT ON");
        });
        co_await weir::sleep(1ms);
        s.cancel("stop");
        co_await weir::checkpoint();
      }));
      EXPECT_TRUE(o.is_cancelled());
      EXPECT_EQ(weir::now() - t0, 31ms);
    });
    EXPECT_EQ(joined(log), "input stopped,caller");
  });
}
TEST(any, the_first_value_wins_over_earlier_errors) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      int value =
          co_await weir::any(fails_after(1ms, 1), after(10ms, 2), slow_to_stop(log, "loser"));
      EXPECT_EQ(value, 2);
      EXPECT_EQ(weir::now() - t0, 40ms);
    });
    EXPECT_EQ(joined(log), "loser stopped");
  });
}
FIBER_TEST_IN_EVERY_ORDER(any, when_all_fail_the_errors_are_grouped_in_input_order) {
  auto error = co_await error_of(
      weir::any(fails_after(30ms, 1), fails_after(10ms, 2), fails_after(20ms, 3)));
  EXPECT_EQ(group_numbers(error), (std::vector<int>{1, 2, 3}));
  std::vector<task<int>> ops;
  ops.push_back(fails_after(2ms, 4));
  ops.push_back(fails_after(1ms, 5));
  auto from_range = co_await error_of(weir::any(std::move(ops)));
  EXPECT_EQ(group_numbers(from_range), (std::vector<int>{4, 5}));
}
FIBER_TEST_IN_EVERY_ORDER(
    any, equal_types_give_the_value_different_ones_a_variant_and_all_void_nothing) {
  auto text = []() -> task<std::string> {
    co_await weir::sleep(2ms);
    co_return "text";
  };
  auto mixed = co_await weir::any(fails_after(1ms, 1), text, weir::sleep(1h));
  static_assert(std::is_same_v<decltype(mixed), std::variant<int, std::string, weir::unit>>);
  EXPECT_EQ(mixed.index(), 1u);
  auto nothing = []() -> task<> { co_await weir::sleep(1ms); };
  co_await weir::any(nothing(), nothing());
}
FIBER_TEST_IN_EVERY_ORDER(any, a_caller_cancelled_after_some_inputs_failed_is_cancelled) {
  bool caught = false;
  std::optional<weir::future<void>> caller;
  (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    caller = s.spawn([&]() -> task<> {
      try {
        (void)co_await weir::any(fails_after(1ms, 1), after(1h, 1), fails_after(2ms, 2));
      } catch (...) {
        caught = true;
      }
    });
    co_await weir::sleep(5ms);
    s.cancel("stop");
    co_await weir::checkpoint();
  }));
  EXPECT_FALSE(caught);
  EXPECT_TRUE(caller && caller->peek() && caller->peek()->is_cancelled());
}
FIBER_TEST(any, of_nothing_fails_at_once_with_empty_input) {
  std::vector<task<int>> none;
  auto error = co_await attempt([&] { return weir::any(std::move(none)); });
  EXPECT_EQ(code_of(error), weir::errc::empty_input);
}

FIBER_TEST_IN_EVERY_ORDER(any, futures_are_observed_and_their_values_copied) {
  co_await weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
    auto bad = s.spawn(fails_after(1ms, 1));
    auto good = s.spawn(after(5ms, 2));
    auto slow = s.spawn(after(50ms, 3));
    int value = co_await weir::any(bad, good, slow);
    EXPECT_EQ(value, 2);
    EXPECT_FALSE(slow.done());
    int same = co_await good;
    int later = co_await slow;
    EXPECT_EQ(same * 10 + later, 23);
  });
}

FIBER_TEST_IN_EVERY_ORDER(select,
                          it_gives_the_index_of_the_first_settled_future_and_unwraps_nothing) {
  co_await weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
    auto slow = s.spawn(after(50ms, 1));
    auto bad = s.spawn(fails_after(5ms, 2));
    auto t0 = weir::now();
    std::size_t index = co_await weir::select(slow, bad);
    EXPECT_EQ(index, 1u);
    EXPECT_EQ(weir::now() - t0, 5ms);
    EXPECT_FALSE(slow.done());
    EXPECT_EQ(boom_of(bad.peek()->error()), 2);
    auto error = co_await error_of(bad.take());
    EXPECT_EQ(boom_of(error), 2);
  });
}
SCOPE_TEST_IN_EVERY_ORDER(select, of_several_that_are_settled_the_lowest_index_wins) {
  auto never = s.spawn(after(1h, 0));
  auto late = s.spawn(after(5ms, 1));
  auto early = s.spawn(after(1ms, 2));
  co_await weir::sleep(10ms);
  std::size_t index = co_await weir::select(never, late, early);
  EXPECT_EQ(index, 1u);
  never.cancel();
}
SCOPE_TEST(select, ten_thousand_selects_over_a_parked_future_leave_nothing_behind) {
  auto never = s.spawn(after(1h, 0));
  long fibers = live_fibers(), timers = -1;
  for (int i = 0; i < 10'000; ++i) {
    auto soon = s.spawn([]() -> task<int> {
      co_await weir::yield();
      co_return 1;
    });
    std::size_t index = co_await weir::select(never, soon);
    EXPECT_EQ(index, 1u);
    if (i == 0) timers = live_timers();
  }
  co_await weir::yield();
  EXPECT_EQ(live_fibers(), fibers);
  EXPECT_EQ(live_timers(), timers);
  never.cancel();
}

FIBER_TEST(combinators, an_empty_callable_is_refused_as_empty_job) {
  std::function<task<int>()> empty;
  auto in_all = co_await attempt([&] { return weir::all(empty, after(1h, 1)); });
  auto in_race = co_await attempt([&] { return weir::race(empty, after(1h, 1)); });
  EXPECT_EQ(code_of(in_all), weir::errc::empty_job);
  EXPECT_EQ(code_of(in_race), weir::errc::empty_job);
}

FIBER_TEST(combinators, an_input_whose_move_throws_ends_those_that_were_started_before_it) {
  const int in_all =
      co_await moves_that_throw([](const fragile& last) { return weir::all(after(2ms, 1), last); });
  const int in_race = co_await moves_that_throw(
      [](const fragile& last) { return weir::race(after(2ms, 1), last); });
  std::vector<fragile> inputs;
  const int in_range = co_await moves_that_throw([&](const fragile& input) {
    inputs = std::vector<fragile>(3, input);
    return weir::all(inputs | std::views::take(3));
  });
  EXPECT_GE(in_all, 2);
  EXPECT_GE(in_race, 2);
  EXPECT_GE(in_range, 6);
}
