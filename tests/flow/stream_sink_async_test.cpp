// SPDX-License-Identifier: MIT
// Sinks with a number or a governor: the permit covers pull and callback, results are in source
// order, and an early exit closes the source once and leaves nothing behind.
#include <memory>
#include <optional>
#include <string>

#include "stream_async_support.hpp"

using namespace weir_test;
using predicate = std::function<task<bool>(int)>;

namespace {

/// Whether an item is `wanted`, after a time that depends on the item.
predicate equals(plant& p, int wanted, std::function<weir::duration(int)> length) {
  return [&p, wanted, length](int i) -> task<bool> {
    return [](plant& at, weir::duration d, int item, int what) -> task<bool> {
      const int done = co_await counted_work(at, d, item);
      co_return done == what;
    }(p, length(i), i, wanted);
  };
}
weir::duration ten_ms(int) { return 10ms; }

}  // namespace
FIBER_TEST(sinks_with_a_governor, for_each_runs_so_many_callbacks_at_once_and_not_more) {
  plant p;
  weir::counting_governor g(3);
  const weir::time_point start = weir::now();
  int seen = 0;
  std::function<task<>(int)> fn = [&](int i) -> task<> {
    seen += i;
    (void)co_await counted_work(p, 10ms, i);
  };
  co_await (int_stream(items(p, 9)) | weir::for_each(fn, g));
  EXPECT_EQ(p.most, 3);
  EXPECT_EQ(p.ended, 9);
  EXPECT_EQ(seen, 45);
  EXPECT_EQ(ms_since(start), 30);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(p.closed, 1);
}
FIBER_TEST(sinks_with_a_governor, results_are_in_source_order) {
  plant p;
  auto source = [&] { return int_stream(items(p, 6, 1ms)); };
  auto all = co_await (source() | weir::to_vector(3));
  EXPECT_EQ(all, from_to(1, 6));
  auto digits = [](int a, int b) { return a * 10 + b; };
  const int folded = co_await (source() | weir::fold(7, digits, 3));
  EXPECT_EQ(folded, 7123456);
  auto reduced = co_await (source() | weir::reduce(digits, 3));
  EXPECT_EQ(reduced, 123456);
  auto first = co_await (source() | weir::first(3));
  EXPECT_EQ(first, 1);
  auto last = co_await (source() | weir::last(3));
  EXPECT_EQ(last, 6);
  const auto count = co_await (source() | weir::count(3));
  EXPECT_EQ(count, 6U);
  EXPECT_EQ(p.opened, 6);
  EXPECT_EQ(p.closed, 6);
}

FIBER_TEST(sinks_with_a_governor, of_an_empty_source_give_what_the_serial_ones_give) {
  plant p;
  auto source = [&] { return int_stream(items(p, 0)); };
  auto add = [](int a, int b) { return a + b; };
  auto all = co_await (source() | weir::to_vector(3));
  EXPECT_TRUE(all.empty());
  const int folded = co_await (source() | weir::fold(7, add, 3));
  EXPECT_EQ(folded, 7);
  auto reduced = co_await (source() | weir::reduce(add, 3));
  EXPECT_EQ(reduced, std::nullopt);
  const bool any = co_await (source() | weir::any_of(equals(p, 1, ten_ms), 3));
  EXPECT_FALSE(any);
  auto found = co_await (source() | weir::find(equals(p, 1, ten_ms), 3));
  EXPECT_EQ(found, std::nullopt);
}
FIBER_TEST(sinks_with_a_governor, any_of_ends_with_the_first_hit_and_leaves_nothing_behind) {
  plant p;
  weir::counting_governor g(4);
  auto length = [](int i) -> weir::duration { return i == 3 ? 20ms : 1h; };
  const weir::time_point start = weir::now();
  const bool hit = co_await (int_stream(items(p, 100)) | weir::any_of(equals(p, 3, length), g));
  EXPECT_TRUE(hit);
  EXPECT_EQ(ms_since(start), 20);
  EXPECT_TRUE(p.quiet());
  EXPECT_EQ(p.closed, 1);
  EXPECT_LE(p.pulled, 5);  // the permit of the hit is free again when it is taken
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(sinks_with_a_governor, slow_predicates_count_after_the_end_of_the_source) {
  plant p;
  const bool any = co_await (int_stream(items(p, 3)) | weir::any_of(equals(p, 1, ten_ms), 4));
  EXPECT_TRUE(any);
  const bool none = co_await (int_stream(items(p, 3)) | weir::none_of(equals(p, 9, ten_ms), 4));
  EXPECT_TRUE(none);
  auto below = [](int i) { return i < 4; };
  const bool all = co_await (int_stream(items(p, 3)) | weir::all_of(below, 4));
  EXPECT_TRUE(all);
  const bool not_all = co_await (int_stream(items(p, 9)) | weir::all_of(below, 4));
  EXPECT_FALSE(not_all);
  EXPECT_EQ(p.opened, p.closed);
}
FIBER_TEST(sinks_with_a_governor, find_gives_the_first_in_source_order_not_the_first_to_finish) {
  plant p;
  weir::counting_governor g(4);
  predicate even = [&](int i) -> task<bool> {
    return [](plant& at, int item) -> task<bool> {
      (void)co_await counted_work(at, item == 2 ? 50ms : 1ms, item);
      co_return item % 2 == 0;
    }(p, i);
  };
  auto found = co_await (int_stream(items(p, 100)) | weir::find(even, g));
  EXPECT_EQ(found, 2);
  EXPECT_TRUE(p.quiet());
  EXPECT_EQ(p.closed, 1);
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(sinks_with_a_governor, find_sees_an_error_before_the_hit_and_none_behind_it) {
  plant p;
  weir::counting_governor g(4);
  auto search = [&](int wanted, int bad) {
    predicate look = [wanted, bad](int i) -> task<bool> {
      return [](int item, int what, int broken) -> task<bool> {
        if (item == broken) throw boom(item);
        co_await weir::sleep(10ms);
        co_return item == what;
      }(i, wanted, bad);
    };
    return int_stream(items(p, 9)) | weir::find(look, g);
  };
  auto found = co_await search(2, 3);
  EXPECT_EQ(found, 2);
  const std::exception_ptr error = co_await error_of(search(3, 2));
  EXPECT_EQ(boom_of(error), 2);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(p.opened, 2);
  EXPECT_EQ(p.closed, 2);
}
FIBER_TEST(sinks_with_a_governor, an_error_of_a_callback_or_of_the_source_ends_everything) {
  plant p;
  weir::counting_governor g(3);
  auto broken = [&](int i) -> task<bool> {
    return [](plant& at, int item) -> task<bool> {
      if (item == 2) throw boom(2);
      (void)co_await counted_work(at, 1h, item);
      co_return true;
    }(p, i);
  };
  const std::exception_ptr first =
      co_await error_of(int_stream(items(p, 9)) | weir::any_of(predicate(broken), g));
  EXPECT_EQ(boom_of(first), 2);
  EXPECT_TRUE(p.quiet());
  EXPECT_EQ(g.active(), 0);
  const std::exception_ptr second =
      co_await error_of(int_stream(items(p, 9, 1ms, 3)) | weir::to_vector(g));
  EXPECT_EQ(boom_of(second), 99);
  EXPECT_TRUE(p.quiet());
  EXPECT_EQ(g.active(), 0);
}
FIBER_TEST(sinks_with_a_governor, a_governor_that_closes_is_an_error) {
  plant p;
  weir::counting_governor g(2);
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto all = sc.spawn(error_of(int_stream(items(p, 9, 10ms)) | weir::to_vector(g)));
    co_await settled();
    g.close();
    const std::exception_ptr error = co_await all;
    EXPECT_EQ(code_of(error), errc::governor_closed);
  });
  EXPECT_EQ(p.closed, 1);
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST_IN_EVERY_ORDER(sinks_with_a_governor,
                          a_cancelled_one_closes_the_source_once_and_gives_back_every_permit) {
  plant p;
  weir::counting_governor g(2);
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto search = sc.spawn(int_stream(items(p, 9)) | weir::find(equals(p, 99, ten_ms), g));
    for (int i = 0; i < 6; ++i) co_await weir::yield();
    search.cancel();
    (void)co_await weir::settle(std::move(search));
    EXPECT_EQ(g.active(), 0);
    EXPECT_EQ(p.opened, p.closed);
  });
}
FIBER_TEST(sinks_with_a_governor,
           a_limit_of_0_waits_and_can_be_cancelled_and_negative_ones_are_refused) {
  plant p;
  auto run = [&] { return int_stream(items(p, 9)) | weir::to_vector(0); };
  auto make = [&] { return weir::with_timeout(10ms, run); };
  const std::error_code code = co_await code_after(make);
  EXPECT_EQ(code, errc::timeout);
  EXPECT_EQ(p.pulled, 0);
  EXPECT_EQ(code_thrown_by([] { (void)weir::to_vector(-1); }), errc::invalid_argument);
}

FIBER_TEST(sinks_with_a_governor, an_unbounded_one_runs_everything_at_once) {
  plant p;
  std::function<task<int>(int)> fn = times_ten(p);
  co_await (int_stream(items(p, 50)) | weir::for_each(fn, weir::unbounded));
  EXPECT_EQ(p.most, 50);
}
