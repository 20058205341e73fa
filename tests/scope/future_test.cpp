// SPDX-License-Identifier: MIT
// child and future: observing and taking results, futures that outlive their scope and loop, and
// why(), which explains a cancellation.
#include <memory>
#include <optional>
#include <sstream>
#include <type_traits>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;
using kind = weir::cancel_kind;

namespace {

template <class F>
concept can_cancel = requires(F f) { f.cancel(); };

task<std::unique_ptr<int>> boxed(weir::duration d, int value) {
  co_await weir::sleep(d);
  co_return std::make_unique<int>(value);
}

/// Counts how many of its kind are alive, to show that results are destroyed exactly once.
struct alive {
  explicit alive(int& n) : count(&n) { ++*count; }
  alive(const alive& other) : count(other.count) { ++*count; }
  alive(alive&& other) noexcept : count(other.count) { ++*count; }
  alive& operator=(const alive&) = default;
  ~alive() { --*count; }
  int* count;
};

}  // namespace

TEST(future, a_child_is_a_move_only_future_that_can_cancel) {
  static_assert(std::is_convertible_v<weir::child<int>*, weir::future<int>*>);
  static_assert(!std::is_copy_constructible_v<weir::child<int>>);
  static_assert(std::is_move_constructible_v<weir::child<int>>);
  static_assert(std::is_copy_constructible_v<weir::future<int>>);
  static_assert(std::is_copy_assignable_v<weir::future<int>>);
  static_assert(can_cancel<weir::child<int>>);
  static_assert(!can_cancel<weir::future<int>>);
}
SCOPE_TEST_IN_EVERY_ORDER(future, an_lvalue_gives_the_same_object_to_any_number_of_awaiters) {
  auto f = s.spawn(boxed(5ms, 6));
  EXPECT_FALSE(f.done());
  EXPECT_EQ(f.peek(), nullptr);
  std::vector<const std::unique_ptr<int>*> seen;
  auto watch = [&](weir::future<std::unique_ptr<int>> copy) -> task<> {
    const std::unique_ptr<int>& value = co_await copy;
    seen.push_back(&value);
  };
  for (int i = 0; i < 5; ++i) s.spawn(watch(f));
  const std::unique_ptr<int>& mine = co_await f;
  const std::unique_ptr<int>& again = co_await f;
  EXPECT_EQ(&mine, &again);
  EXPECT_EQ(*mine, 6);
  co_await s.join();
  EXPECT_EQ(seen.size(), 5u);
  for (const auto* one : seen) EXPECT_EQ(one, &mine);
  EXPECT_TRUE(f.done() && f.peek() && f.peek()->is_value());
}

SCOPE_TEST_IN_EVERY_ORDER(future, a_value_is_taken_once_and_then_every_copy_says_already_taken) {
  auto f = s.spawn(boxed(1ms, 6));
  weir::future<std::unique_ptr<int>> copy = f;
  std::unique_ptr<int> mine = co_await f.take();
  EXPECT_TRUE(mine && *mine == 6);
  auto by_take = co_await attempt([&] { return f.take(); });
  EXPECT_EQ(code_of(by_take), weir::errc::already_taken);
  int refused = 0;
  try {
    (void)co_await copy;
  } catch (const weir::error& e) {
    refused += e.code() == weir::errc::already_taken;
  }
  try {
    (void)co_await std::move(copy);
  } catch (const weir::error& e) {
    refused += e.code() == weir::errc::already_taken;
  }
  EXPECT_EQ(refused, 2);
}

SCOPE_TEST(future, awaiting_an_rvalue_moves_the_value_out) {
  std::unique_ptr<int> direct = co_await s.spawn(boxed(1ms, 8));
  EXPECT_TRUE(direct && *direct == 8);
  auto child = s.spawn(boxed(1ms, 9));
  weir::future<std::unique_ptr<int>> copy = child;
  std::unique_ptr<int> moved = co_await std::move(child);
  EXPECT_TRUE(moved && *moved == 9);
  auto again = co_await attempt([&] { return copy.take(); });
  EXPECT_EQ(code_of(again), weir::errc::already_taken);
}

FIBER_TEST_IN_EVERY_ORDER(future, the_same_error_is_rethrown_to_every_awaiter_every_time) {
  co_await weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
    auto bad = s.spawn(fails_after(1ms, 2));
    const boom* first = nullptr;
    for (int i = 0; i < 3; ++i) {
      try {
        (void)co_await bad;
      } catch (const boom& e) {
        if (i == 0) first = &e;
        EXPECT_EQ(&e, first);
        EXPECT_EQ(e.n, 2);
      }
    }
    EXPECT_NE(first, nullptr);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(future, of_a_cancelled_run_throws_cancelled_error_with_the_reason) {
  auto f = s.spawn(after(1h, 1));
  co_await weir::sleep(1ms);
  f.cancel("enough");
  std::string message;
  try {
    (void)co_await f;
  } catch (const weir::cancelled_error& e) {
    message = e.reason().message;
    EXPECT_EQ(e.reason().kind, kind::user);
    EXPECT_EQ(e.code(), weir::errc::cancelled);
  }
  EXPECT_EQ(message, "enough");
  EXPECT_TRUE(f.done() && f.peek()->is_cancelled());
}

SCOPE_TEST(future, a_void_one_can_be_awaited_and_taken) {
  auto nothing = []() -> task<> { co_await weir::sleep(1ms); };
  auto f = s.spawn(nothing);
  co_await f;
  co_await f;
  EXPECT_TRUE(f.peek() && f.peek()->is_value());
  co_await f.take();
  auto again = co_await attempt([&] { return f.take(); });
  EXPECT_EQ(code_of(again), weir::errc::already_taken);
}
FIBER_TEST_IN_EVERY_ORDER(future, dropping_a_child_neither_cancels_nor_detaches_it) {
  bool finished = false;
  auto t0 = weir::now();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    {
      [[maybe_unused]] auto dropped = s.spawn([&]() -> task<> {
        co_await weir::sleep(10ms);
        finished = true;
      });
    }
    co_return;
  });
  EXPECT_TRUE(finished);
  EXPECT_EQ(weir::now() - t0, 10ms);
}

TEST(future, it_may_outlive_its_scope_and_its_loop) {
  for_each_order([](weir::sim::world& w) {
    int count = 0;
    {
      std::optional<weir::future<alive>> value;
      std::optional<weir::future<int>> error, cancelled;
      w.run([&]() -> task<> {
        auto make = [&]() -> task<alive> { co_return alive(count); };
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          value = s.spawn(make);
          auto stopped = s.spawn(after(1h, 1));
          cancelled = stopped;
          co_await weir::sleep(1ms);
          stopped.cancel("enough");
        });
        const alive& seen = co_await *value;
        EXPECT_EQ(*seen.count, count);
        (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
          error = s.spawn(fails_after(1ms, 3));
          co_return;
        }));
      });
      EXPECT_EQ(count, 1);
      EXPECT_TRUE(value->done() && value->peek()->is_value());
      EXPECT_EQ(boom_of(error->peek()->error()), 3);
      EXPECT_EQ(cancelled->peek()->reason().message, "enough");
      weir::future<alive> copy = *value;
      value.reset();
      EXPECT_EQ(count, 1);
      EXPECT_EQ(*copy.peek()->value().count, 1);
    }
    EXPECT_EQ(count, 0);
  });
}

TEST(future, a_result_nobody_takes_is_destroyed_exactly_once) {
  for_each_order([](weir::sim::world& w) {
    int count = 0;
    w.run([&]() -> task<> {
      auto make = [&]() -> task<alive> { co_return alive(count); };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(make);
        auto kept = s.spawn(make);
        co_await weir::sleep(1ms);
        EXPECT_EQ(count, 1);  // the dropped one is gone already
        alive mine = co_await kept.take();
        EXPECT_EQ(count, 1);
      });
      EXPECT_EQ(count, 0);
    });
    EXPECT_EQ(count, 0);
  });
}
SCOPE_TEST_IN_EVERY_ORDER(future, a_cancelled_awaiter_leaves_and_the_others_stay) {
  auto f = s.spawn(after(10ms, 4));
  auto leaving = s.spawn([&]() -> task<int> { co_return co_await f; });
  auto staying = s.spawn([&]() -> task<int> { co_return co_await f; });
  co_await weir::sleep(1ms);
  leaving.cancel();
  int value = co_await staying;
  EXPECT_EQ(value, 4);
  EXPECT_TRUE(leaving.peek() && leaving.peek()->is_cancelled());
  EXPECT_TRUE(f.peek() && f.peek()->is_value());
}

TEST(future, awaiting_ones_own_future_is_no_undefined_behaviour) {
  auto error = thrown_by([] {
    weir::sim::run({.seed = 1}, []() -> task<> {
      std::optional<weir::future<void>> self;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        self = s.spawn([&]() -> task<> { co_await *self; }, {.name = "narcissus"});
        co_return;
      });
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "narcissus")) << what_of(error);
}

TEST(future, why_names_who_asked_when_and_through_which_scopes) {
  std::string story;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    std::optional<weir::future<int>> deep;
    (void)co_await weir::settle(
        weir::with_scope({.name = "outer"}, [&](weir::scope& outer) -> task<> {
          outer.spawn([&]() -> task<> {
            co_await weir::with_scope({.name = "inner"}, [&](weir::scope& inner) -> task<> {
              deep = inner.spawn(after(1h, 1));
              co_await weir::sleep(1h);
            });
          });
          co_await weir::sleep(10ms);
          outer.cancel("the tap is closed");
          co_await weir::checkpoint();
        }));
    std::ostringstream out;
    weir::why(out, *deep);
    story = out.str();
  });
  for (const char* part : {"the tap is closed", "outer", "inner"})
    EXPECT_TRUE(contains(story, part)) << part << " is not in:\n" << story;
}

TEST(future, why_says_what_a_cancelled_run_still_waits_for) {
  std::string story;
  text_log log;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto stubborn =
          s.spawn([]() -> task<int> { co_return co_await weir::shield(after(30ms, 1)); });
      co_await weir::sleep(1ms);
      stubborn.cancel("please");
      co_await weir::sleep(1ms);
      std::ostringstream out;
      weir::why(out, stubborn);
      story = out.str();
    });
  });
  EXPECT_TRUE(contains(story, "please")) << story;
  EXPECT_TRUE(contains(story, "sleep")) << story;
}
