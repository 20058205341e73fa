// SPDX-License-Identifier: MIT
// buffered and limit: how far they pull, what their permits cover, and what is left when they end.
#include <memory>
#include <optional>

#include "stream_async_support.hpp"

using namespace weir_test;

namespace {

int_stream ahead(int_stream source, weir::counting_governor& g) {
  return std::move(source) | weir::buffered(g);
}
int_stream limited(int_stream source, weir::counting_governor& g) {
  return std::move(source) | weir::limit(g);
}

}  // namespace
FIBER_TEST(buffered, pulls_ahead_from_the_first_next_on_and_never_further_than_its_permits) {
  plant p;
  weir::counting_governor g(3);
  auto s = ahead(items(p, 10), g);
  co_await settled();
  EXPECT_EQ(p.opened, 0);
  int v = co_await take_one(s);
  EXPECT_EQ(v, 1);
  co_await weir::sleep(1s);
  EXPECT_EQ(p.pulled, 4);
  EXPECT_EQ(g.active(), 3);
  v = co_await take_one(s);
  EXPECT_EQ(v, 2);
  co_await settled();
  EXPECT_EQ(p.pulled, 5);
  numbers rest;
  co_await take_all(s, rest);
  EXPECT_EQ(rest, from_to(3, 10));
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(p.closed, 1);
}

FIBER_TEST(buffered, a_slow_source_is_pulled_while_the_consumer_works) {
  plant p;
  weir::counting_governor g(2);
  auto s = ahead(items(p, 6, 10ms), g);
  const weir::time_point start = weir::now();
  for (int i = 1; i <= 6; ++i) {
    const int v = co_await take_one(s);
    EXPECT_EQ(v, i);
    co_await weir::sleep(10ms);
  }
  EXPECT_EQ(ms_since(start), 70);  // one after the other it would be 120
}

FIBER_TEST(buffered, prepopulate_starts_at_once_in_the_scope_that_builds_it) {
  plant p;
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto s = int_stream(items(p, 9)) | weir::buffered(3, true);
    co_await settled();
    EXPECT_EQ(p.pulled, 3);
    EXPECT_EQ(sc.size(), 0U);
    auto moved = std::move(s);
    numbers got;
    co_await weir::with_scope([&](weir::scope&) -> task<> {
      for (int i = 0; i < 4; ++i) got.push_back(co_await take_one(moved));
    });
    for (int i = 0; i < 4; ++i) got.push_back(co_await take_one(moved));
    EXPECT_EQ(got, from_to(1, 8));
  });
  EXPECT_EQ(p.closed, 1);
}

FIBER_TEST(buffered, a_prepopulated_one_that_is_never_pulled_is_closed) {
  plant p;
  co_await weir::with_scope([&](weir::scope&) -> task<> {
    auto s = int_stream(items(p, 9, 1h)) | weir::buffered(3, true);
    co_await settled();
    EXPECT_EQ(p.opened, 1);
    co_await s.close();
    EXPECT_EQ(p.closed, 1);
    auto dropped = int_stream(items(p, 9, 1h)) | weir::buffered(3, true);
    co_await settled();
  });
  EXPECT_EQ(p.opened, 2);
  EXPECT_EQ(p.closed, 2);
}

TEST(buffered, prepopulate_outside_a_fiber_is_refused) {
  plant p;
  EXPECT_EQ(code_thrown_by([&] { (void)(int_stream(items(p, 9)) | weir::buffered(3, true)); }),
            errc::no_current_fiber);
  EXPECT_EQ(p.opened, 0);
}
FIBER_TEST(buffered, an_error_comes_behind_the_buffered_values_once) {
  plant p;
  weir::counting_governor g(5);
  auto s = ahead(items(p, 9, {}, 4), g);
  numbers got(1, co_await take_one(s));
  co_await settled();
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(got, from_to(1, 3));
  EXPECT_EQ(boom_of(error), 99);
  auto end = co_await s.next();
  EXPECT_EQ(end, std::nullopt);
  EXPECT_EQ(g.active(), 0);
}

TEST(buffered, dropping_it_gives_back_the_permits_of_what_nobody_took) {
  for (bool closing : {false, true}) {
    in_order([closing]() -> task<> {
      plant p;
      weir::counting_governor g(3);
      co_await weir::with_scope([&](weir::scope&) -> task<> {
        auto s = ahead(items(p, 10), g);
        (void)co_await take_one(s);
        co_await settled();
        EXPECT_EQ(g.active(), 3);
        if (closing) {
          co_await s.close();
          EXPECT_EQ(g.active(), 0);
        }
      });
      EXPECT_EQ(g.active(), 0);
      EXPECT_EQ(p.closed, 1);
    });
  }
}
FIBER_TEST(buffered, a_capacity_of_0_waits_and_can_be_cancelled) {
  plant p;
  weir::counting_governor g(0, {.name = "no room"});
  auto s = ahead(items(p, 2), g);
  auto won = co_await weir::race(s.next(), weir::sleep(10ms));
  EXPECT_EQ(won.index(), 1U);
  EXPECT_EQ(p.pulled, 0);
  EXPECT_TRUE(contains(dump_text(), "no room")) << dump_text();
  EXPECT_EQ(g.waiting(), 1);
  g.resize(1);
  numbers got;
  co_await take_all(s, got);
  EXPECT_EQ(got, from_to(1, 2));
}
FIBER_TEST(buffered, close_ends_a_pending_next) {
  plant p;
  weir::counting_governor g(2);
  auto s = ahead(items(p, 9, 1h), g);
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto pending = sc.spawn(take_one(s));
    co_await settled();
    co_await s.close();
    EXPECT_EQ(p.closed, 1);
    const int v = co_await pending;
    EXPECT_EQ(v, -1);
  });
}

FIBER_TEST(buffered, one_next_at_a_time) {
  plant p;
  weir::counting_governor g(2);
  auto s = ahead(items(p, 2, 10ms), g);
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto first = sc.spawn(take_one(s));
    co_await settled();
    const std::exception_ptr error = co_await error_of(s.next());
    EXPECT_EQ(code_of(error), errc::stream_busy);
    const int v = co_await first;
    EXPECT_EQ(v, 1);
  });
}
FIBER_TEST(limit, holds_a_permit_while_a_pull_is_pending_and_only_then) {
  plant p;
  weir::counting_governor g(1);
  auto s = limited(items(p, 3, 10ms), g);
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto first = sc.spawn(take_one(s));
    co_await settled();
    EXPECT_EQ(g.active(), 1);
    const int v = co_await first;
    EXPECT_EQ(v, 1);
    EXPECT_EQ(g.active(), 0);
    co_await weir::sleep(1s);
    EXPECT_EQ(p.pulled, 1);  // nothing without a pull
    EXPECT_EQ(sc.size(), 0U);
  });
  numbers rest;
  co_await take_all(s, rest);
  EXPECT_EQ(rest, from_to(2, 3));
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST_IN_EVERY_ORDER(limit, streams_that_share_one_pull_in_turn) {
  weir::counting_governor g(1);
  int pulling = 0;
  auto source = [&](int last) -> weir::stream<int> {
    for (int i = 1; i <= last; ++i) {
      int done = 0;
      {
        const presence here(pulling, done);
        EXPECT_EQ(pulling, 1);
        co_await weir::yield();
      }
      co_yield i;
    }
  };
  auto one = limited(source(3), g);
  auto two = limited(source(3), g);
  numbers first;
  numbers second;
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    sc.spawn(take_all(one, first));
    sc.spawn(take_all(two, second));
    co_await sc.join();
  });
  EXPECT_EQ(first, from_to(1, 3));
  EXPECT_EQ(second, from_to(1, 3));
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(limit, a_pull_that_is_given_up_gives_its_permit_back_and_loses_nothing) {
  plant p;
  weir::counting_governor g(1);
  auto s = limited(items(p, 2, 10ms), g);
  auto won = co_await weir::race(s.next(), weir::sleep(5ms));
  EXPECT_EQ(won.index(), 1U);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(g.waiting(), 0);
  {
    auto taken = co_await g.acquire();
    auto again = co_await weir::race(s.next(), weir::sleep(50ms));
    EXPECT_EQ(again.index(), 1U);
    EXPECT_EQ(g.waiting(), 0);
    EXPECT_EQ(p.pulled, 0);
  }
  numbers got;
  co_await take_all(s, got);
  EXPECT_EQ(got, from_to(1, 2));
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(limit, the_permit_comes_back_after_an_error_and_at_the_end) {
  plant p;
  weir::counting_governor g(1);
  auto s = limited(items(p, 9, {}, 2), g);
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(boom_of(error), 99);
  EXPECT_EQ(g.active(), 0);
  auto open = limited(items(p, 9, 1h), g);
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto pending = sc.spawn(take_one(open));
    co_await settled();
    EXPECT_EQ(g.active(), 1);
    co_await open.close();
    const int v = co_await pending;
    EXPECT_EQ(v, -1);
    EXPECT_EQ(g.active(), 0);
  });
}

// The permit that a waiting pull got serves that pull only.
FIBER_TEST(limit, no_pull_goes_ahead_without_a_permit_after_one_that_had_to_wait) {
  plant p;
  weir::counting_governor g(1);
  auto s = limited(items(p, 3), g);
  std::optional<weir::permit> taken(co_await g.acquire());
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto first = sc.spawn(take_one(s));
    co_await settled();
    taken.reset();
    const int v = co_await first;
    EXPECT_EQ(v, 1);
    taken.emplace(co_await g.acquire());
    auto second = sc.spawn(take_one(s));
    co_await settled();
    EXPECT_EQ(p.pulled, 1);
    EXPECT_EQ(g.waiting(), 1);
    second.cancel();
    taken.reset();
    co_await weir::settle(std::move(second));
  });
  EXPECT_EQ(g.active(), 0);
  taken.emplace(co_await g.acquire());
  auto won = co_await weir::race(s.next(), weir::sleep(5ms));
  EXPECT_EQ(won.index(), 1U);
}
FIBER_TEST(limit, a_capacity_of_0_waits_can_be_cancelled_and_shows_in_the_dump) {
  plant p;
  weir::counting_governor g(0, {.name = "no room"});
  auto s = limited(items(p, 2), g);
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto pending = sc.spawn(take_one(s));
    co_await settled();
    EXPECT_EQ(g.waiting(), 1);
    EXPECT_TRUE(contains(dump_text(), "no room")) << dump_text();
    pending.cancel();
    co_await settled();
    EXPECT_EQ(g.waiting(), 0);
  });
  g.resize(1);
  numbers got;
  co_await take_all(s, got);
  EXPECT_EQ(got, from_to(1, 2));
}

FIBER_TEST(limit, a_wrapped_stream_is_a_limited_one) {
  plant p;
  weir::counting_governor g(1);
  auto s = g.wrap(int_stream(items(p, 3)));
  {
    auto taken = co_await g.acquire();
    auto won = co_await weir::race(s.next(), weir::sleep(10ms));
    EXPECT_EQ(won.index(), 1U);
    EXPECT_EQ(p.pulled, 0);
  }
  numbers got;
  co_await take_all(s, got);
  EXPECT_EQ(got, from_to(1, 3));
  EXPECT_EQ(g.active(), 0);
}

TEST(limit, negative_limits_are_refused) {
  EXPECT_EQ(code_thrown_by([] { (void)weir::limit(-1); }), errc::invalid_argument);
  EXPECT_EQ(code_thrown_by([] { (void)weir::buffered(-1); }), errc::invalid_argument);
}
