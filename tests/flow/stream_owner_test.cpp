// SPDX-License-Identifier: MIT
// "The work of a stream (children of concurrent stages) belongs to the child that pulls it: a
// `background` child's stream lives until that child ends." A pull outside of a child is one in the
// body of a scope, which then owns the work.
#include <optional>
#include <string>

#include "flow_support.hpp"
#include "stream_support.hpp"

using namespace weir_test;
using int_queue = weir::queue<int>;

namespace {

/// Counts those that are at work, and keeps what they did.
struct workshop {
  auto work() {
    return [this](int n) -> task<int> {
      const auto one_less = weir::scope_exit([this] { --busy; });
      ++busy;
      co_await weir::sleep(1ms);
      done.push_back(n);
      co_return n;
    };
  }
  int busy = 0;
  numbers done;
};

task<> for_ever(workshop& w) {
  co_await (weir::iota(0) | weir::map_async(2, w.work()) | weir::for_each([](int) {}));
}

}  // namespace

// "Services end last": what defers still give to it is done.
FIBER_TEST_IN_EVERY_ORDER(stream_owner,
                          a_service_with_a_concurrent_sink_works_until_the_defers_have_run) {
  int_queue q(1);
  workshop shop;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.background(q.stream() | weir::for_each(shop.work(), 2));
    s.defer([&]() -> task<> {
      co_await q.push(3);
      co_await weir::sleep(10ms);
      EXPECT_EQ(sorted(shop.done), (numbers{1, 2, 3}));
    });
    co_await q.push(1);
    co_await q.push(2);
  });
  EXPECT_EQ(shop.busy, 0);
}

TEST(stream_owner, every_concurrent_stage_of_a_service_works_until_the_defers_have_run) {
  const auto works = [](auto stage) {
    in_order([&]() -> task<> {
      int_queue q(4);
      numbers seen;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.background(q.stream() | std::move(stage) |
                     weir::for_each([&](int n) { seen.push_back(n); }));
        s.defer([&]() -> task<> {
          co_await q.push(2);
          co_await weir::sleep(1s);
        });
        co_await q.push(1);
        co_await weir::sleep(1s);
      });
      EXPECT_EQ(seen, (numbers{1, 2}));
    });
  };
  const auto same = [](int n) -> task<int> { co_return n; };
  works(weir::map_async(2, same));
  works(weir::map_async_unordered(2, same));
  works(weir::buffered(2));
  works(weir::buffer(2, weir::overflow::wait));
  works(weir::conflate([](int, int n) { return n; }));
  works(weir::debounce(1ms));
  works(weir::sample(1ms));
  works(weir::delay(1ms));
  works(weir::flat_map(2, [](int n) { return weir::once(n); }));
}

// "Nothing that was spawned outlives it": the child ends when the work of its streams has.
FIBER_TEST_IN_EVERY_ORDER(stream_owner, a_child_ends_when_the_work_of_its_streams_is_joined) {
  workshop shop;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto pulls = s.spawn([&]() -> task<> {
      auto numbers = weir::iota(0) | weir::map_async(3, shop.work());
      auto first = co_await numbers.next();
      EXPECT_EQ(first, 0);
    });
    EXPECT_EQ(s.size(), 1U);
    co_await pulls;
    EXPECT_EQ(shop.busy, 0);
    EXPECT_EQ(s.size(), 0U);
    co_await s.idle();
  });
}

FIBER_TEST_IN_EVERY_ORDER(stream_owner, a_cancelled_service_takes_the_work_of_its_streams_along) {
  workshop shop;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto service = s.background(for_ever(shop));
    co_await weir::sleep(5ms);
    EXPECT_EQ(s.size(), 0U);  // neither services nor what works for them
    service.cancel();
    co_await weir::settle([&]() -> task<> { co_await service; });
    EXPECT_EQ(shop.busy, 0);
  });
}

// join() and idle() wait for the ordinary children, not for services and what works for them.
FIBER_TEST(stream_owner, join_does_not_wait_for_the_streams_of_services) {
  workshop shop;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto service = s.background(for_ever(shop));
    s.spawn(weir::sleep(3ms));
    co_await s.idle();
    s.spawn(weir::sleep(3ms));
    co_await s.join();
    EXPECT_FALSE(service.done());
    EXPECT_FALSE(shop.done.empty());
  });
  EXPECT_EQ(shop.busy, 0);
}

FIBER_TEST(stream_owner, a_stream_that_outlives_the_child_that_pulled_it_first_is_interrupted) {
  workshop shop;
  auto items = weir::iota(0) | weir::map_async(2, shop.work());
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    co_await s.spawn([&]() -> task<> { (void)co_await items.next(); });
    EXPECT_EQ(shop.busy, 0);
    const std::exception_ptr error = co_await attempt([&]() -> task<> {
      for (int i = 0; i < 5; ++i) (void)co_await items.next();
    });
    EXPECT_EQ(code_of(error), weir::errc::stream_interrupted);
    EXPECT_NE(weir::describe(error).find("first pulled has ended"), std::string::npos);
  });
}

// Regions and the arms of combinators are no children: the stream goes on after them.
FIBER_TEST_IN_EVERY_ORDER(stream_owner,
                          a_stream_goes_on_after_the_race_in_which_it_was_pulled_first) {
  workshop shop;
  auto items = weir::iota(0) | weir::map_async(2, shop.work());
  auto pull = [&]() -> task<int> { co_return (co_await items.next()).value(); };
  auto first = co_await weir::race(pull, weir::never<int>().next());
  EXPECT_EQ(std::get<0>(first), 0);
  auto second = co_await weir::with_timeout(1s, pull());
  EXPECT_EQ(second, 1);
  auto third = co_await items.next();
  EXPECT_EQ(third, 2);
  co_await items.close();
  EXPECT_EQ(shop.busy, 0);
}

// What is shielded works on, with everything that works for it.
FIBER_TEST_IN_EVERY_ORDER(stream_owner,
                          a_shielded_child_of_a_cancelled_scope_keeps_the_work_of_its_streams) {
  workshop shop;
  numbers seen;
  auto all = [&]() -> task<> {
    co_await (weir::iota(0, 4) | weir::map_async(2, shop.work()) |
              weir::for_each([&](int n) { seen.push_back(n); }));
  };
  auto out = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> { co_await weir::shield(all); });
    co_await weir::sleep(1ms);
    s.cancel();
    co_await weir::sleep(1s);
  }));
  EXPECT_FALSE(out.is_error() && !out.is_cancelled());
  EXPECT_EQ(seen, (numbers{0, 1, 2, 3}));
}

// "true: starts at once as a child of the building fiber's scope": whoever builds may leave.
SCOPE_TEST_IN_EVERY_ORDER(stream_owner, what_a_child_prepopulates_outlives_the_child) {
  std::optional<weir::any_stream<int>> items;
  co_await s.spawn([&]() -> task<> {
    items.emplace(weir::iota(0, 3) | weir::buffered(2, true));
    co_return;
  });
  numbers seen;
  co_await take_all(*items, seen);
  EXPECT_EQ(seen, (numbers{0, 1, 2}));
}

FIBER_TEST(stream_owner, what_a_service_prepopulates_ends_with_the_service) {
  int_queue q(4);
  numbers seen;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.background([&]() -> task<> {
      auto items = q.stream() | weir::buffered(2, true);
      co_await take_all(items, seen);
    });
    s.defer([&]() -> task<> {
      co_await q.push(2);
      co_await weir::sleep(1ms);
    });
    co_await q.push(1);
  });
  EXPECT_EQ(seen, (numbers{1, 2}));
}

FIBER_TEST(stream_owner, a_dump_shows_the_work_below_the_child_that_pulls) {
  workshop shop;
  co_await weir::with_scope({.name = "house"}, [&](weir::scope& s) -> task<> {
    s.background(for_ever(shop), {.name = "puller"});
    co_await weir::sleep(5ms);
    const std::string text = dump_text();
    const auto puller = text.find("service 'puller'");
    EXPECT_NE(puller, std::string::npos) << text;
    EXPECT_NE(text.find("fiber 'stream'", puller), std::string::npos) << text;
  });
}

// A defer runs when its scope has joined its children, so the defer owns the work that it starts.
FIBER_TEST_IN_EVERY_ORDER(stream_owner, what_a_defer_has_pulled_from_ends_with_the_defer) {
  workshop shop;
  int after = -1;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.defer([&] { after = shop.busy; });
    s.defer([&]() -> task<> {
      auto all = weir::iota(0) | weir::map_async(2, shop.work());
      auto first = co_await all.next();
      EXPECT_EQ(first, 0);
    });
    co_return;
  });
  EXPECT_EQ(after, 0);
}

TEST(stream_owner, the_work_of_a_defer_is_joined_if_its_grace_is_over) {
  const auto joins = [](weir::duration before) {
    for_each_order([&](weir::sim::world& w) {
      workshop shop;
      int after = -1;
      w.run([&]() -> task<> {
        auto body = [&](weir::scope& s) -> task<> {
          s.defer([&] { after = shop.busy; });
          s.defer([&] { return for_ever(shop); });
          s.defer([&]() -> task<> { co_await weir::sleep(before); });
          co_return;
        };
        auto end = co_await weir::settle(weir::with_scope({.grace = 5ms}, body));
        EXPECT_TRUE(end.is_error());
      });
      EXPECT_EQ(after, 0);
    });
  };
  joins(1ms);  // over while it pulls
  joins(1h);   // over before it begins
}
