// SPDX-License-Identifier: MIT
// Concurrent streams in every order, and the ends of scopes while such a stream is alive.
#include <memory>
#include <optional>

#include "stream_async_support.hpp"

using namespace weir_test;

namespace {

int_stream mapped_ahead(int_stream source, weir::counting_governor& g, worker fn) {
  return std::move(source) | weir::map_async(g, std::move(fn)) | weir::buffered(2);
}

constexpr maker all_makers[] = {&mapped, &unordered, &mapped_ahead};

task<int> after_yields(int yields, int value) {
  for (int i = 0; i < yields; ++i) co_await weir::yield();
  co_return value;
}
task<int> fails_after_yields(int yields, int number) {
  for (int i = 0; i < yields; ++i) co_await weir::yield();
  throw boom(number);
}

weir::stream<int> yielding_items(plant& p, int last) {
  ++p.opened;
  int open = 0;
  const presence using_it(open, p.closed);
  for (int i = 1; i <= last; ++i) {
    co_await weir::yield();
    ++p.pulled;
    co_yield i;
  }
}

}  // namespace

TEST(stream_async_order, everything_arrives_once_and_every_permit_comes_back) {
  for (maker make : all_makers) {
    for_each_order([make](weir::sim::world& w) {
      w.run([make]() -> task<> {
        plant p;
        weir::counting_governor g(2);
        worker fn = [](int i) { return after_yields(4 - i, i * 10); };
        auto s = make(yielding_items(p, 4), g, fn);
        numbers got;
        co_await take_all(s, got);
        EXPECT_EQ(make == &unordered ? sorted(got) : got, tens(1, 4));
        EXPECT_EQ(g.active(), 0);
        EXPECT_EQ(p.closed, 1);
      });
    });
  }
}
TEST(stream_async_order, a_next_that_loses_a_race_loses_no_value) {
  for (maker make : all_makers) {
    for_each_order([make](weir::sim::world& w) {
      w.run([make]() -> task<> {
        plant p;
        weir::counting_governor g(2);
        weir::event tick;
        worker fn = [](int i) { return after_yields(i % 2, i * 10); };
        auto s = make(yielding_items(p, 4), g, fn);
        numbers got;
        auto ticking = [&]() -> task<> {
          for (int i = 0; i < 8; ++i) {
            tick.set();
            co_await weir::yield();
          }
        };
        co_await weir::with_scope([&](weir::scope& sc) -> task<> {
          sc.spawn(ticking());
          for (;;) {
            auto won = co_await weir::race(s.next(), tick.wait());
            tick.reset();
            if (won.index() == 1) continue;
            if (!std::get<0>(won)) break;
            got.push_back(*std::get<0>(won));
          }
        });
        EXPECT_EQ(make == &unordered ? sorted(got) : got, tens(1, 4));
        EXPECT_EQ(g.active(), 0);
      });
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(stream_async_order,
                          an_error_is_the_first_in_source_order_behind_all_earlier_results) {
  plant p;
  weir::counting_governor g(3);
  worker fn = [](int i) {
    return i >= 3 ? fails_after_yields(5 - i, i) : after_yields(3 - i, i * 10);
  };
  auto s = mapped(yielding_items(p, 9), g, fn);
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(got, tens(1, 2));
  EXPECT_EQ(boom_of(error), 3);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(p.closed, 1);
}

TEST(stream_async_order, a_stream_that_is_dropped_at_any_moment_leaves_nothing_behind) {
  for (maker make : all_makers) {
    for_each_order([make](weir::sim::world& w) {
      w.run([make]() -> task<> {
        plant p;
        weir::counting_governor g(2);
        co_await weir::with_scope([&](weir::scope& sc) -> task<> {
          auto consumer = [&]() -> task<> {
            worker fn = [](int i) { return after_yields(i, i * 10); };
            auto s = make(yielding_items(p, 9), g, fn);
            (void)co_await take_one(s);
            (void)co_await take_one(s);
          };
          auto reader = sc.spawn(consumer());
          for (int i = 0; i < 5; ++i) co_await weir::yield();
          reader.cancel();
          co_await weir::settle(std::move(reader));
        });
        EXPECT_EQ(g.active(), 0);
        EXPECT_EQ(p.opened, p.closed);
      });
    });
  }
}

TEST(stream_async_order, a_stream_that_outlives_the_scope_of_its_first_pull_is_interrupted) {
  for (maker make : all_makers) {
    in_order([make]() -> task<> {
      plant p;
      weir::counting_governor g(2);
      auto s = make(items(p, 1000), g, times_ten(p));
      co_await weir::with_scope([&](weir::scope&) -> task<> {
        const int first = co_await take_one(s);
        EXPECT_EQ(first, 10);
      });
      EXPECT_TRUE(p.quiet());
      numbers rest;
      const std::exception_ptr error = co_await take_until_error(s, rest);
      EXPECT_EQ(code_of(error), errc::stream_interrupted);
      EXPECT_EQ(rest, tens(2, 1 + static_cast<int>(rest.size())));
      auto end = co_await s.next();
      EXPECT_EQ(end, std::nullopt);
      EXPECT_EQ(g.active(), 0);
    });
  }
}

FIBER_TEST(stream_async_order, regions_without_children_do_not_own_the_work) {
  plant p;
  weir::counting_governor g(2);
  auto s = mapped(items(p, 4), g, times_ten(p));
  auto first = [&] { return take_one(s); };
  const int a = co_await weir::with_timeout(1s, first);
  EXPECT_EQ(a, 10);
  auto settling = co_await weir::settle(first);
  EXPECT_EQ(settling.value(), 20);
  numbers rest;
  co_await take_all(s, rest);
  EXPECT_EQ(rest, tens(3, 4));
}

TEST(stream_async_order, a_cancelled_scope_ends_the_work_and_the_source_once) {
  for (maker make : all_makers) {
    in_order([make]() -> task<> {
      plant p;
      weir::counting_governor g(3);
      auto body = [&](weir::scope& sc) -> task<> {
        auto consumer = [&]() -> task<> {
          auto s = make(items(p, 9), g, times_ten(p, 1h));
          (void)co_await take_one(s);
        };
        sc.spawn(consumer());
        co_await settled();
        EXPECT_EQ(p.running, 3);
        sc.cancel("enough");
        co_await settled();
      };
      auto run = [&] { return weir::with_scope(body); };
      (void)co_await weir::settle(run);
      EXPECT_TRUE(p.quiet());
      EXPECT_EQ(p.closed, 1);
      EXPECT_EQ(p.ended, 0);
      EXPECT_EQ(g.active(), 0);
    });
  }
}

TEST(stream_async_order, the_end_of_the_program_waits_for_the_work_of_streams_of_its_main_fiber) {
  for (bool simulated : {false, true}) {
    plant p;
    text_log log;
    auto body = [&]() -> task<> {
      worker fn = [&](int) { return slow_to_stop(log, "w"); };
      auto s = int_stream(items(p, 9)) | weir::map_async(2, std::move(fn));
      (void)co_await weir::race(s.next(), weir::sleep(5ms));
    };
    if (simulated) {
      in_order(body);
    } else {
      weir::run(body);
    }
    EXPECT_EQ(counted(log, "w stopped"), 2);
    EXPECT_EQ(p.closed, 1);
  }
}

TEST(stream_async_order, a_stream_may_outlive_the_loop) {
  plant p;
  std::optional<int_stream> s;
  s.emplace(int_stream(items(p, 9)) | weir::map_async(2, times_ten(p)));
  in_order([&]() -> task<> { (void)co_await take_one(*s); });
  EXPECT_TRUE(p.quiet());
  s.reset();
}

TEST(stream_async_order, a_crash_ends_streams_shares_and_their_work_at_any_moment) {
  for (maker make : all_makers) {
    for_each_order([make](weir::sim::world& w) {
      w.run([&w, make]() -> task<> {
        auto life = [make]() -> task<> {
          plant p;
          weir::counting_governor g(2);
          co_await weir::with_scope([&](weir::scope& s) -> task<> {
            worker fn = [](int i) { return after_yields(i % 3, i * 10); };
            auto hot = weir::share(s, make(yielding_items(p, 100), g, fn), {.capacity = 1});
            auto sub = hot.subscribe();
            numbers got;
            co_await take_all(sub, got);
          });
        };
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          auto lost = s.spawn(weir::settle(weir::on(w.loop("a"), life)));
          for (int i = 0; i < 10; ++i) co_await weir::yield();
          w.crash("a");
          co_await s.join();
        });
      });
    });
  }
}

// Whichever move of an item or of a result throws: that is the error of the stream.
TEST(stream_async_order, a_move_that_throws_is_the_error_of_the_stream) {
  for (int fuse = 1; fuse <= 40; ++fuse) {
    SCOPED_TRACE(fuse);
    in_order([&]() -> task<> {
      auto make = []() -> weir::stream<brittle> {
        for (int i = 0; i < 3; ++i) {
          brittle item(i);
          co_yield item;
        }
      };
      const auto work = [](brittle b) -> task<brittle> {
        co_await weir::sleep(1ms);
        co_return b;
      };
      brittle::fuse = fuse;
      const auto ordered = co_await error_of(make() | weir::map_async(2, work) | weir::count());
      EXPECT_TRUE(ordered == nullptr || boom_of(ordered) >= 0) << what_of(ordered);
      brittle::fuse = fuse;
      const auto unordered =
          co_await error_of(make() | weir::map_async_unordered(2, work) | weir::count());
      EXPECT_TRUE(unordered == nullptr || boom_of(unordered) >= 0) << what_of(unordered);
      brittle::fuse = 0;
    });
  }
}
