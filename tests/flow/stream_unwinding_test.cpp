// SPDX-License-Identifier: MIT
// What destructors in a generator see. Keeps of the page: "In a generator it is non-null too: the
// reason of the consumer that is cancelled, or kind `abandoned` when the stream is closed or
// destroyed before it ended; `scope_success` does not run in either case."
#include "stream_support.hpp"

using namespace weir_test;
using weir::cancel_kind;

namespace {

/// What the guards of one generator have done.
struct transaction {
  int committed = 0;
  int rolled_back = 0;
  int ended = 0;
  std::vector<cancel_kind> kinds;  // seen by destructors; none: unwinding() was null
  std::string message;
};

class witness {
 public:
  explicit witness(transaction& t) : t_(t) {}
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;
  ~witness() {
    if (const weir::cancel_reason* why = weir::unwinding()) {
      t_.kinds.push_back(why->kind);
      t_.message = why->message;
    }
  }

 private:
  transaction& t_;
};

enum class waits { at_yield, in_sleep, in_task, in_scope };

task<> sleeps_in_transaction(transaction& t) {
  const witness seen(t);
  co_await weir::sleep(1h);
}

/// Reads rows inside a transaction; the second one takes for ever.
weir::stream<int> rows(transaction& t, waits where, int count = 2) {
  const witness seen(t);
  const auto commit = weir::scope_success([&] { ++t.committed; });
  const auto roll_back = weir::scope_failure([&] { ++t.rolled_back; });
  const auto end = weir::scope_exit([&] { ++t.ended; });
  for (int i = 0; i < count; ++i) {
    co_yield i;
    if (where == waits::in_sleep) co_await weir::sleep(1h);
    if (where == waits::in_task) co_await sleeps_in_transaction(t);
    if (where == waits::in_scope)
      co_await weir::with_scope([&](weir::scope&) -> task<> { co_await weir::sleep(1h); });
  }
}

void is_rolled_back(const transaction& t, cancel_kind why) {
  EXPECT_EQ(t.committed, 0);
  EXPECT_EQ(t.rolled_back, 1);
  EXPECT_EQ(t.ended, 1);
  ASSERT_FALSE(t.kinds.empty());
  for (const cancel_kind kind : t.kinds) EXPECT_EQ(to_string(kind), to_string(why));
}

constexpr waits all_waits[] = {waits::at_yield, waits::in_sleep, waits::in_task, waits::in_scope};

template <class F>
void for_all_waits(F body) {
  for (const waits where : all_waits) {
    SCOPED_TRACE(static_cast<int>(where));
    in_every_order([&]() -> task<> { co_await body(where); });
  }
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(stream_unwinding, a_generator_that_ends_commits) {
  transaction t;
  EXPECT_EQ(co_await (rows(t, waits::at_yield) | weir::count()), 2);
  EXPECT_EQ(t.committed, 1);
  EXPECT_EQ(t.rolled_back, 0);
  EXPECT_TRUE(t.kinds.empty());
}

FIBER_TEST_IN_EVERY_ORDER(stream_unwinding, a_generator_that_fails_rolls_back) {
  transaction t;
  auto make = [&]() -> weir::stream<int> {
    const auto commit = weir::scope_success([&] { ++t.committed; });
    const auto roll_back = weir::scope_failure([&] { ++t.rolled_back; });
    co_yield 1;
    throw boom(3);
  };
  auto s = make();
  EXPECT_EQ(co_await pull_one(s), 1);
  EXPECT_EQ(boom_of(co_await pull_error(s)), 3);
  EXPECT_EQ(t.committed, 0);
  EXPECT_EQ(t.rolled_back, 1);
}

// The reader of a transaction is cancelled, in a next() or between two.
TEST(stream_unwinding, a_cancelled_consumer_gives_its_reason) {
  for_all_waits([](waits where) -> task<> {
    transaction t;
    co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
      auto reader = s.spawn([&]() -> task<> {
        auto all = rows(t, where);
        (void)co_await all.next();
        if (where != waits::at_yield) (void)co_await all.next();
        co_await weir::sleep(1h);
      });
      co_await weir::sleep(1ms);
      reader.cancel(weir::cancel_reason(cancel_kind::custom, "enough"));
      co_await s.idle();
    });
    is_rolled_back(t, cancel_kind::custom);
    EXPECT_EQ(t.message, "enough");
  });
}

TEST(stream_unwinding, a_cancelled_sink_gives_its_reason) {
  for_all_waits([](waits where) -> task<> {
    transaction t;
    const auto slow = [](int) -> task<> { co_await weir::sleep(1h); };
    const auto error =
        co_await error_of(weir::with_timeout(1ms, rows(t, where) | weir::for_each(slow)));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    is_rolled_back(t, cancel_kind::timeout);
  });
}

TEST(stream_unwinding, a_cancelled_consumer_of_a_concurrent_stage_gives_its_reason) {
  for_all_waits([](waits where) -> task<> {
    transaction t;
    const auto error =
        co_await error_of(weir::with_timeout(1ms, rows(t, where, 5) | weir::map_async(2, [](int n) {
                                                    return after(1h, n);
                                                  }) | weir::count()));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_EQ(t.committed, 0);
    EXPECT_EQ(t.rolled_back, 1);
    EXPECT_FALSE(t.kinds.empty());
  });
}

TEST(stream_unwinding, destroyed_before_its_end_it_is_abandoned) {
  for_all_waits([](waits where) -> task<> {
    transaction t;
    {
      auto s = rows(t, where);
      (void)co_await s.next();
      if (where != waits::at_yield && where != waits::in_scope)
        (void)co_await error_of(weir::with_timeout(1ms, s.next()));
      EXPECT_EQ(t.ended, 0);
    }
    is_rolled_back(t, cancel_kind::abandoned);
  });
}

FIBER_TEST_IN_EVERY_ORDER(stream_unwinding, closed_or_cut_off_by_take_it_is_abandoned) {
  transaction closed, taken, found, merged;
  auto s = rows(closed, waits::at_yield);
  (void)co_await s.next();
  co_await s.close();
  is_rolled_back(closed, cancel_kind::abandoned);
  (void)co_await (rows(taken, waits::at_yield) | weir::take(1) | weir::to_vector());
  is_rolled_back(taken, cancel_kind::abandoned);
  (void)co_await (rows(found, waits::at_yield) | weir::first());
  is_rolled_back(found, cancel_kind::abandoned);
  (void)co_await (weir::merge(rows(merged, waits::in_sleep), weir::never<int>()) | weir::take(1) |
                  weir::count());
  is_rolled_back(merged, cancel_kind::abandoned);
}

FIBER_TEST_IN_EVERY_ORDER(stream_unwinding, abandoned_by_an_error_downstream_it_is_rolled_back) {
  transaction t;
  const auto fails = [](int) -> int { throw boom(4); };
  const auto error =
      co_await error_of(rows(t, waits::at_yield) | weir::map(fails) | weir::to_vector());
  EXPECT_EQ(boom_of(error), 4);
  is_rolled_back(t, cancel_kind::abandoned);
}

FIBER_TEST_IN_EVERY_ORDER(stream_unwinding, in_flight_and_destroyed_it_is_abandoned) {
  transaction t;
  co_await weir::with_scope([&](weir::scope&) -> task<> {
    auto s = weir::merge(rows(t, waits::in_scope), weir::once(7), weir::once(8));
    for (int i = 0; i < 3; ++i) (void)co_await s.next();
  });
  is_rolled_back(t, cancel_kind::abandoned);
}

namespace {

task<> naps(weir::duration length) { co_await weir::sleep(length); }

/// Its second row comes behind something that must finish first.
weir::stream<int> rows_behind_a_shield(transaction& t) {
  const witness seen(t);
  const auto commit = weir::scope_success([&] { ++t.committed; });
  const auto roll_back = weir::scope_failure([&] { ++t.rolled_back; });
  const auto end = weir::scope_exit([&] { ++t.ended; });
  co_yield 0;
  co_await weir::shield(weir::sleep(5ms));
  co_yield 1;
}

/// The same with a task, inside a limit.
weir::stream<int> rows_within_a_limit(transaction& t) {
  const witness seen(t);
  const auto commit = weir::scope_success([&] { ++t.committed; });
  const auto roll_back = weir::scope_failure([&] { ++t.rolled_back; });
  const auto end = weir::scope_exit([&] { ++t.ended; });
  co_yield 0;
  co_await weir::with_timeout(1h, weir::shield(naps(5ms)));
  co_yield 1;
}

/// Its own row first, then two ticks, while the generator is on its way to the second row.
auto beside_a_clock(weir::stream<int> slow) {
  return weir::merge(std::move(slow),
                     weir::interval(1ms) | weir::map([](std::int64_t) { return 7; }));
}
template <class S>
task<> pull_until_in_flight(S& s) {
  for (int i = 0; i < 3; ++i) (void)co_await s.next();
}

}  // namespace

// A co_yield behind a shield, when the stream is gone, is no end of the body.
TEST(stream_unwinding, in_flight_in_a_shield_and_destroyed_it_is_abandoned_at_its_next_yield) {
  for (auto* make : {rows_behind_a_shield, rows_within_a_limit}) {
    in_every_order([make]() -> task<> {
      transaction t;
      co_await weir::with_scope([&](weir::scope&) -> task<> {
        auto s = beside_a_clock(make(t));
        co_await pull_until_in_flight(s);
      });
      is_rolled_back(t, cancel_kind::abandoned);
    });
  }
}

TEST(stream_unwinding, in_flight_in_a_shield_and_closed_it_is_abandoned_at_its_next_yield) {
  for (auto* make : {rows_behind_a_shield, rows_within_a_limit}) {
    in_every_order([make]() -> task<> {
      transaction t;
      auto s = beside_a_clock(make(t));
      co_await pull_until_in_flight(s);
      co_await s.close();
      is_rolled_back(t, cancel_kind::abandoned);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(stream_unwinding, generators_inside_generators_all_roll_back) {
  transaction inner, outer;
  auto make = [&]() -> weir::stream<int> {
    const witness seen(outer);
    const auto commit = weir::scope_success([&] { ++outer.committed; });
    const auto roll_back = weir::scope_failure([&] { ++outer.rolled_back; });
    const auto end = weir::scope_exit([&] { ++outer.ended; });
    auto below = rows(inner, waits::in_sleep);
    for (;;) {
      auto v = co_await below.next();
      if (!v) co_return;
      co_yield *v;
    }
  };
  {
    auto s = make();
    (void)co_await s.next();
    (void)co_await error_of(weir::with_timeout(1ms, s.next()));
  }
  is_rolled_back(outer, cancel_kind::abandoned);
  is_rolled_back(inner, cancel_kind::abandoned);
}

// A child that is spawned by a destructor of an abandoned generator is cancelled like any other.
FIBER_TEST_IN_EVERY_ORDER(stream_unwinding, a_spawn_in_a_destructor_gives_a_cancelled_child) {
  std::optional<weir::child<int>> late;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto make = [&]() -> weir::stream<int> {
      const auto end = weir::scope_exit([&] { late = s.spawn(ready(1)); });
      co_yield 1;
      co_yield 2;
    };
    auto all = make();
    (void)co_await all.next();
  });
  EXPECT_TRUE(late->peek()->is_cancelled());
  if (!late->peek()->is_cancelled()) co_return;
  EXPECT_EQ(late->peek()->reason().kind, cancel_kind::abandoned);
}
