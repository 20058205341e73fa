// SPDX-License-Identifier: MIT
// oneshot: the first one wins, many readers, futures that outlive it, and what is never sent.
#include <memory>
#include <optional>

#include "flow_support.hpp"

using namespace weir_test;

namespace {

task<> read_into(weir::oneshot<int>& o, numbers& seen) {
  const int& value = co_await o.receive();
  seen.push_back(value);
}

}  // namespace

FIBER_TEST(oneshot, the_first_value_wins_and_send_says_so) {
  weir::oneshot<int> o;
  EXPECT_TRUE(o.send(1));
  EXPECT_FALSE(o.send(2));
  EXPECT_FALSE(o.fail(std::make_exception_ptr(boom(3))));
  const int& value = co_await o.receive();
  EXPECT_EQ(value, 1);
  const int& again = co_await o.receive();
  EXPECT_EQ(&again, &value);
}

FIBER_TEST(oneshot, a_value_that_comes_too_late_is_not_taken) {
  weir::oneshot<std::unique_ptr<int>> o;
  auto one = std::make_unique<int>(1);
  auto two = std::make_unique<int>(2);
  EXPECT_TRUE(o.send(std::move(one)));
  EXPECT_EQ(one, nullptr);
  EXPECT_FALSE(o.send(std::move(two)));
  EXPECT_NE(two, nullptr);
  const auto& value = co_await o.receive();
  EXPECT_EQ(*value, 1);
}

FIBER_TEST_IN_EVERY_ORDER(oneshot, all_readers_see_the_same_object_whenever_they_come) {
  weir::oneshot<int> o;
  std::vector<const int*> seen;
  auto reader = [&]() -> task<> {
    const int& value = co_await o.receive();
    seen.push_back(&value);
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 3; ++i) s.spawn(reader);
    co_await weir::yield();
    EXPECT_TRUE(o.send(7));
    for (int i = 0; i < 2; ++i) s.spawn(reader);
    co_await s.join();
  });
  EXPECT_EQ(seen.size(), 5U);
  for (const int* one : seen) EXPECT_EQ(one, seen.front());
  EXPECT_EQ(*seen.front(), 7);
}

FIBER_TEST_IN_EVERY_ORDER(oneshot, an_error_reaches_every_reader_again_and_again) {
  weir::oneshot<int> o;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    std::vector<weir::child<std::exception_ptr>> readers;
    for (int i = 0; i < 3; ++i) readers.push_back(s.spawn(error_of(o.receive())));
    co_await weir::yield();
    EXPECT_TRUE(o.fail(std::make_exception_ptr(boom(4))));
    EXPECT_FALSE(o.send(1));
    for (auto& one : readers) {
      const std::exception_ptr error = co_await one;
      EXPECT_EQ(boom_of(error), 4);
    }
  });
  const std::exception_ptr later = co_await error_of(o.receive());
  EXPECT_EQ(boom_of(later), 4);
}

FIBER_TEST(oneshot, failing_without_an_error_is_refused_and_changes_nothing) {
  weir::oneshot<int> o;
  EXPECT_EQ(code_thrown_by([&] { o.fail(nullptr); }), errc::invalid_argument);
  EXPECT_TRUE(o.send(1));
  const int& value = co_await o.receive();
  EXPECT_EQ(value, 1);
}

FIBER_TEST(oneshot, a_value_that_cannot_be_made_is_not_sent) {
  weir::oneshot<brittle> o;
  brittle first(1), second(2);
  brittle::fuse = 1;
  EXPECT_EQ(boom_of(thrown_by([&] { return o.send(std::move(first)); })), 1);
  EXPECT_FALSE(o.is_set());
  EXPECT_TRUE(o.send(std::move(second)));
  const brittle& value = co_await o.receive();
  EXPECT_EQ(value.n, 2);
}

FIBER_TEST(oneshot, of_nothing_is_a_signal) {
  weir::oneshot<> o;
  int woken = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 3; ++i) {
      s.spawn([&]() -> task<> {
        co_await o.receive();
        ++woken;
      });
    }
    co_await settled();
    EXPECT_EQ(woken, 0);
    EXPECT_TRUE(o.send());
    EXPECT_FALSE(o.send());
    co_await s.join();
  });
  EXPECT_EQ(woken, 3);
}

TEST(oneshot, its_future_is_done_with_it_and_outlives_it) {
  std::optional<weir::future<int>> kept;
  in_order([&]() -> task<> {
    {
      weir::oneshot<int> o;
      kept = o.future();
      EXPECT_FALSE(kept->done());
      EXPECT_TRUE(o.send(9));
      EXPECT_TRUE(kept->done());
    }
    const int& value = co_await *kept;
    EXPECT_EQ(value, 9);
  });
  EXPECT_EQ(kept->peek()->value(), 9);
}

FIBER_TEST_IN_EVERY_ORDER(oneshot, its_future_works_in_select_and_race) {
  weir::oneshot<int> a, b;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(5ms);
      EXPECT_TRUE(b.send(2));
    });
    auto first = a.future();
    auto second = b.future();
    const std::size_t index = co_await weir::select(first, second);
    EXPECT_EQ(index, 1U);
    const int value = co_await weir::race(first, second);
    EXPECT_EQ(value, 2);
  });
}

FIBER_TEST_IN_EVERY_ORDER(oneshot, destroyed_unset_its_readers_and_futures_end_with_abandoned) {
  auto o = std::make_unique<weir::oneshot<int>>();
  auto f = o->future();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    std::vector<weir::child<std::exception_ptr>> readers;
    for (int i = 0; i < 2; ++i) readers.push_back(s.spawn(error_of(o->receive())));
    auto await_it = [&]() -> task<int> { co_return co_await f; };
    readers.push_back(s.spawn(error_of(await_it())));
    co_await settled();
    o.reset();
    for (auto& one : readers) {
      const std::exception_ptr error = co_await one;
      EXPECT_EQ(code_of(error), errc::abandoned);
    }
  });
  EXPECT_TRUE(f.peek()->is_error());
}

TEST(oneshot, destroyed_unset_outside_of_its_loop_its_future_ends_with_abandoned_too) {
  auto o = std::make_unique<weir::oneshot<int>>();
  std::optional<weir::future<int>> f;
  in_order([&]() -> task<> {
    f = o->future();
    co_return;
  });
  o.reset();
  EXPECT_EQ(code_of(f->peek()->error()), errc::abandoned);
}

FIBER_TEST_IN_EVERY_ORDER(oneshot, a_cancelled_reader_leaves_and_the_others_get_the_value) {
  weir::oneshot<int> o;
  numbers seen;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto leaves = s.spawn(read_into(o, seen));
    s.spawn(read_into(o, seen));
    co_await settled();
    leaves.cancel();
    co_await settled();
    EXPECT_TRUE(o.send(3));
    co_await s.join();
    EXPECT_TRUE(leaves.peek()->is_cancelled());
  });
  EXPECT_EQ(seen, numbers{3});
}

FIBER_TEST(oneshot, a_receive_in_a_timeout_ends_with_it_and_can_be_repeated) {
  weir::oneshot<int> o;
  const std::exception_ptr late = co_await error_of(weir::with_timeout(5ms, o.receive()));
  EXPECT_TRUE(holds<weir::timeout_error>(late));
  EXPECT_TRUE(o.send(1));
  const int value = co_await weir::with_timeout(5ms, o.receive());
  EXPECT_EQ(value, 1);
}
