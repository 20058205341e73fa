// SPDX-License-Identifier: MIT
// map_async and map_async_unordered: order, errors in their place, permits, progress, and the ends
// of streams and scopes. buffered and limit: stream_buffered_test.cpp; sinks with a governor:
// stream_sink_async_test.cpp.
#include <memory>
#include <optional>

#include "stream_async_support.hpp"

using namespace weir_test;

namespace {

constexpr maker both_makers[] = {&mapped, &unordered};

}  // namespace

FIBER_TEST(map_async, gives_results_in_source_order_whatever_ends_first) {
  plant p;
  const weir::time_point start = weir::now();
  worker fn = [&](int i) { return counted_work(p, (10 - i) * 10ms, i * 10); };
  auto all =
      co_await (int_stream(items(p, 9)) | weir::map_async(3, std::move(fn)) | weir::to_vector());
  EXPECT_EQ(all, tens(1, 9));
  EXPECT_EQ(p.most, 3);
  EXPECT_LT(ms_since(start), 300);  // one after the other it would take 450
  EXPECT_TRUE(p.quiet());
  EXPECT_EQ(p.closed, 1);
}

TEST(map_async, a_permit_is_held_from_the_pull_until_the_value_is_taken) {
  for (maker make : both_makers) {
    in_order([make]() -> task<> {
      plant p;
      weir::counting_governor g(3);
      auto s = make(items(p, 10), g, times_ten(p));
      EXPECT_EQ(g.active(), 0);
      int v = co_await take_one(s);
      EXPECT_EQ(v, 10);
      co_await weir::sleep(1s);
      // Three are done and nobody took them: nothing more is pulled.
      EXPECT_EQ(p.pulled, 4);
      EXPECT_EQ(p.ended, 4);
      EXPECT_EQ(g.active(), 3);
      v = co_await take_one(s);
      EXPECT_EQ(v, 20);
      co_await settled();
      EXPECT_EQ(p.pulled, 5);
      EXPECT_EQ(g.active(), 3);
      numbers rest;
      co_await take_all(s, rest);
      EXPECT_EQ(sorted(rest), tens(3, 10));
      EXPECT_EQ(g.active(), 0);
      EXPECT_EQ(g.available(), 3);
      EXPECT_EQ(p.most, 3);
    });
  }
}

FIBER_TEST(map_async, an_error_arrives_in_its_place_and_later_work_is_cancelled_at_once) {
  plant p;
  weir::counting_governor g(5);
  auto s = mapped(items(p, 100), g, fails_at(p, 3, 5ms, 50ms));
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    numbers got;
    auto reader = sc.spawn(take_until_error(s, got));
    co_await weir::sleep(4ms);
    EXPECT_EQ(p.running, 4);
    co_await weir::sleep(3ms);
    EXPECT_EQ(p.running, 2);  // 4 and 5 are gone, 1 and 2 go on
    EXPECT_EQ(p.pulled, 5);
    const std::exception_ptr error = co_await reader;
    EXPECT_EQ(got, tens(1, 2));
    EXPECT_EQ(boom_of(error), 3);
    EXPECT_TRUE(p.quiet());
    EXPECT_EQ(g.active(), 0);
    auto end = co_await s.next();
    EXPECT_EQ(end, std::nullopt);
  });
  EXPECT_EQ(p.closed, 1);
}

FIBER_TEST(map_async, of_two_errors_the_first_in_source_order_arrives) {
  plant p;
  weir::counting_governor g(4);
  worker fn = [&](int i) {
    if (i == 2) return fails_after(20ms, 2);
    if (i == 3) return fails_after(1ms, 3);
    return counted_work(p, 5ms, i * 10);
  };
  auto s = mapped(items(p, 9), g, fn);
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(got, tens(1, 1));
  EXPECT_EQ(boom_of(error), 2);
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(map_async, an_error_of_the_source_arrives_behind_the_results_of_its_items) {
  plant p;
  weir::counting_governor g(8);
  auto s = mapped(items(p, 9, {}, 3), g, times_ten(p));
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(got, tens(1, 2));
  EXPECT_EQ(boom_of(error), 99);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(p.closed, 1);
}

FIBER_TEST(map_async, an_error_of_an_item_arrives_in_place_of_an_earlier_one_of_the_source) {
  plant p;
  weir::counting_governor g(8);
  worker fn = [](int i) { return fails_after(20ms, i); };
  auto s = mapped(items(p, 9, {}, 3), g, fn);
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(got, numbers());
  EXPECT_EQ(boom_of(error), 1);
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(map_async, callbacks_may_give_values_nothing_or_operations) {
  auto plain = [](int i) { return i * 10; };
  auto all = co_await (weir::from(from_to(1, 4)) | weir::map_async(2, plain) | weir::to_vector());
  EXPECT_EQ(all, tens(1, 4));
  int seen = 0;
  auto waits = [&](int i) {
    seen += i;
    return weir::sleep(i * 1ms);
  };
  const auto count =
      co_await (weir::from(from_to(1, 4)) | weir::map_async(2, waits) | weir::count());
  EXPECT_EQ(count, 4U);
  EXPECT_EQ(seen, 10);
}

FIBER_TEST(map_async, policies_apply_to_its_bodies) {
  int calls = 0;
  auto flaky = [&](int i) {
    auto attempt = [&calls, i]() -> task<int> {
      if (++calls % 2 == 1) throw boom(i);
      co_return i * 10;
    };
    return weir::op(attempt) | weir::retry({.attempts = 3});
  };
  auto all = co_await (weir::from(from_to(1, 3)) | weir::map_async(1, flaky) | weir::to_vector());
  EXPECT_EQ(all, tens(1, 3));
  EXPECT_EQ(calls, 6);
}

FIBER_TEST(map_async_unordered, gives_results_as_they_come) {
  plant p;
  weir::counting_governor g(3);
  worker fn = [&](int i) { return counted_work(p, (4 - i) * 10ms, i * 10); };
  auto s = unordered(items(p, 3), g, fn);
  numbers got;
  co_await take_all(s, got);
  EXPECT_EQ(got, (numbers{30, 20, 10}));
}
FIBER_TEST(map_async_unordered, with_one_permit_is_in_order) {
  plant p;
  weir::counting_governor g(1);
  worker fn = [&](int i) { return counted_work(p, (4 - i) * 10ms, i * 10); };
  auto s = unordered(items(p, 3), g, fn);
  numbers got;
  co_await take_all(s, got);
  EXPECT_EQ(got, tens(1, 3));
  EXPECT_EQ(p.most, 1);
}
FIBER_TEST(map_async_unordered, loses_nothing_if_its_consumer_is_late) {
  plant p;
  weir::counting_governor g(2);
  auto s = unordered(items(p, 4), g, times_ten(p, 1ms));
  const int first = co_await take_one(s);
  numbers got(1, first);
  co_await weir::sleep(10ms);
  co_await take_all(s, got);
  EXPECT_EQ(sorted(got), tens(1, 4));
}

TEST(map_async_unordered, an_error_comes_at_once_when_all_other_work_is_cancelled_and_joined) {
  in_order([]() -> task<> {
    plant p;
    weir::counting_governor g(4);
    text_log log;
    worker fn = [&](int i) { return i == 3 ? fails_after(5ms, 3) : slow_to_stop(log, "w"); };
    auto s = unordered(items(p, 100), g, fn);
    const weir::time_point start = weir::now();
    numbers got;
    const std::exception_ptr error = co_await take_until_error(s, got);
    EXPECT_EQ(boom_of(error), 3);
    EXPECT_TRUE(got.empty());
    EXPECT_EQ(joined(log), "w stopped,w stopped,w stopped");
    EXPECT_EQ(ms_since(start), 35);
    EXPECT_EQ(g.active(), 0);
    EXPECT_EQ(p.pulled, 4);
    EXPECT_EQ(p.closed, 1);
    auto end = co_await s.next();
    EXPECT_EQ(end, std::nullopt);
  });
}

FIBER_TEST(map_async_unordered, an_error_of_the_source_ends_it_too) {
  plant p;
  weir::counting_governor g(4);
  auto s = unordered(items(p, 9, 1ms, 3), g, times_ten(p, 1h));
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(boom_of(error), 99);
  EXPECT_TRUE(p.quiet());
  EXPECT_EQ(g.active(), 0);
}
TEST(map_async, work_progresses_although_nobody_polls) {
  for (maker make : both_makers) {
    in_order([make]() -> task<> {
      plant p;
      weir::counting_governor g(4);
      auto s = make(items(p, 5), g, times_ten(p));
      (void)co_await take_one(s);
      co_await weir::sleep(100ms);
      EXPECT_EQ(p.ended, 5);
      const weir::time_point start = weir::now();
      numbers rest;
      co_await take_all(s, rest);
      EXPECT_EQ(ms_since(start), 0);
    });
  }
}

TEST(map_async, its_work_does_not_count_in_the_scope_and_is_joined_by_it) {
  for (maker make : both_makers) {
    in_order([make]() -> task<> {
      plant p;
      weir::counting_governor g(4);
      text_log log;
      co_await weir::with_scope([&](weir::scope& sc) -> task<> {
        auto s = make(items(p, 9), g, [&](int) { return slow_to_stop(log, "w"); });
        (void)co_await weir::race(s.next(), weir::sleep(5ms));
        EXPECT_EQ(sc.size(), 0U);
        co_await sc.idle();
        EXPECT_EQ(g.active(), 4);
      });
      EXPECT_EQ(counted(log, "w stopped"), 4);
      EXPECT_EQ(g.active(), 0);
      EXPECT_EQ(p.closed, 1);
    });
  }
}

TEST(map_async, destroying_it_cancels_its_work_and_close_waits_for_that) {
  for (bool closing : {false, true}) {
    for (maker make : both_makers) {
      in_order([make, closing]() -> task<> {
        plant p;
        weir::counting_governor g(2);
        text_log log;
        co_await weir::with_scope([&](weir::scope&) -> task<> {
          std::optional<int_stream> s;
          s.emplace(make(items(p, 9), g, [&](int) { return slow_to_stop(log, "w"); }));
          (void)co_await weir::race(s->next(), weir::sleep(5ms));
          if (closing) {
            co_await s->close();
            EXPECT_EQ(counted(log, "w stopped"), 2);
            EXPECT_EQ(g.active(), 0);
            EXPECT_EQ(p.closed, 1);
          } else {
            s.reset();
            EXPECT_TRUE(log.empty());
          }
        });
        EXPECT_EQ(counted(log, "w stopped"), 2);
        EXPECT_EQ(g.active(), 0);
        EXPECT_EQ(p.closed, 1);
      });
    }
  }
}
TEST(map_async,
     a_capacity_of_0_waits_can_be_cancelled_shows_in_the_dump_and_goes_on_after_a_resize) {
  for (maker make : both_makers) {
    in_order([make]() -> task<> {
      plant p;
      weir::counting_governor g(0, {.name = "closed for now"});
      auto s = make(items(p, 3), g, times_ten(p));
      auto first = co_await weir::race(s.next(), weir::sleep(10ms));
      EXPECT_EQ(first.index(), 1U);
      EXPECT_EQ(p.pulled, 0);
      EXPECT_TRUE(contains(dump_text(), "closed for now")) << dump_text();
      g.resize(2);
      numbers got;
      co_await take_all(s, got);
      EXPECT_EQ(sorted(got), tens(1, 3));
    });
  }
}
FIBER_TEST(map_async, a_governor_that_closes_is_an_error_in_its_place) {
  plant p;
  weir::counting_governor g(2);
  auto s = mapped(items(p, 9), g, times_ten(p));
  numbers got;
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto reader = sc.spawn(take_until_error(s, got));
    co_await settled();
    g.close();
    const std::exception_ptr error = co_await reader;
    EXPECT_EQ(code_of(error), errc::governor_closed);
  });
  EXPECT_EQ(got, tens(1, 2));
  EXPECT_EQ(p.closed, 1);
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(map_async, two_streams_share_a_governor) {
  plant p;
  weir::counting_governor g(3);
  auto one = mapped(items(p, 10), g, times_ten(p));
  auto two = unordered(items(p, 10), g, times_ten(p));
  numbers first;
  numbers second;
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    sc.spawn(take_all(one, first));
    sc.spawn(take_all(two, second));
    co_await sc.join();
  });
  EXPECT_EQ(first, tens(1, 10));
  EXPECT_EQ(sorted(second), tens(1, 10));
  EXPECT_LE(p.most, 3);
  EXPECT_EQ(g.active(), 0);
}

TEST(map_async, negative_limits_are_refused) {
  plant p;
  EXPECT_EQ(code_thrown_by([&] { (void)weir::map_async(-1, times_ten(p)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_thrown_by([&] { (void)weir::map_async_unordered(-1, times_ten(p)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_thrown_by([&] { (void)weir::map_async(std::int64_t{1} << 32, times_ten(p)); }),
            errc::invalid_argument);
}
