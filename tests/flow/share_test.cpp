// SPDX-License-Identifier: MIT
// share: when the source starts and stops, what subscribers see of its end and its errors, and that
// it does not starve the loop.
#include <optional>

#include "flow_support.hpp"

using namespace weir_test;
using shared_ints = weir::shared_stream<int>;
using subscription = weir::subscription<int>;
using weir::overflow;
using weir::when;

namespace {

/// What happened to a source.
struct history {
  int pulled = 0;
  int opened = 0;
  int closed = 0;
};

class in_use {
 public:
  explicit in_use(history& h) : h_(h) { ++h.opened; }
  in_use(const in_use&) = delete;
  in_use& operator=(const in_use&) = delete;
  ~in_use() { ++h_.closed; }

 private:
  history& h_;
};

/// 1, 2, ... `last`, one each `every`.
weir::stream<int> counted_ticks(history& h, int last, weir::duration every = 10ms) {
  const in_use using_it(h);
  for (int i = 1; i <= last; ++i) {
    co_await weir::sleep(every);
    ++h.pulled;
    co_yield i;
  }
}

weir::stream<int> fails_after_two(history& h) {
  const in_use using_it(h);
  co_yield 1;
  co_yield 2;
  co_await weir::sleep(10ms);
  throw boom(5);
}

/// Never waits.
weir::stream<int> torrent(history& h) {
  const in_use using_it(h);
  for (;;) co_yield h.pulled++;
}

}  // namespace
FIBER_TEST(share, starts_with_the_first_subscriber_and_stops_with_the_last) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, counted_ticks(h, 1000));
    co_await weir::sleep(1s);
    EXPECT_EQ(h.opened, 0);
    EXPECT_EQ(hot.subscribers(), 0U);
    {
      auto one = hot.subscribe();
      auto two = hot.subscribe();
      const int a = co_await take_one(one);
      const int b = co_await take_one(two);
      EXPECT_EQ(a, 1);
      EXPECT_EQ(b, 1);
      EXPECT_EQ(h.opened, 1);
      EXPECT_EQ(hot.subscribers(), 2U);
    }
    EXPECT_EQ(hot.subscribers(), 0U);
    co_await settled();
    EXPECT_EQ(h.closed, 1);
    EXPECT_TRUE(hot.closed());
    const int pulled = h.pulled;
    co_await weir::sleep(1s);
    EXPECT_EQ(h.pulled, pulled);
    auto late = hot.subscribe();
    auto end = co_await late.next();
    EXPECT_EQ(end, std::nullopt);
  });
  EXPECT_EQ(h.opened, 1);
  EXPECT_EQ(h.closed, 1);
}

FIBER_TEST(share, goes_on_while_one_of_two_subscribers_stays) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, counted_ticks(h, 3));
    std::optional<subscription> leaves(hot.subscribe());
    auto stays = hot.subscribe();
    (void)co_await take_one(*leaves);
    leaves.reset();
    numbers got;
    co_await take_all(stays, got);
    EXPECT_EQ(got, from_to(1, 3));
  });
  EXPECT_EQ(h.pulled, 3);
  EXPECT_EQ(h.closed, 1);
}

FIBER_TEST(share, starts_now_if_asked_and_goes_on_without_subscribers_if_asked) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, counted_ticks(h, 10), {.start = when::now, .stop = when::never});
    co_await weir::sleep(35ms);
    EXPECT_EQ(h.pulled, 3);
    {
      auto sub = hot.subscribe();
      const int seen = co_await take_one(sub);
      EXPECT_EQ(seen, 4);
    }
    co_await weir::sleep(25ms);
    EXPECT_EQ(h.pulled, 6);
    auto again = hot.subscribe();
    numbers got;
    co_await take_all(again, got);
    EXPECT_EQ(got, from_to(7, 10));
    EXPECT_TRUE(hot.closed());
  });
  EXPECT_EQ(h.closed, 1);
}

FIBER_TEST(share, subscribe_without_options_uses_those_of_the_share) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, counted_ticks(h, 9),
                           {.capacity = 2,
                            .overflow = overflow::drop_oldest,
                            .start = when::now,
                            .stop = when::never,
                            .replay = 1});
    co_await weir::sleep(15ms);
    auto sub = hot.subscribe();
    auto other = hot.subscribe({.overflow = overflow::conflate});
    co_await weir::sleep(200ms);
    numbers got;
    co_await take_all(sub, got);
    EXPECT_EQ(got, from_to(8, 9));
    EXPECT_EQ(sub.missed_total(), 7U);  // 1 was replayed, and lost again
    const int latest = co_await take_one(other);
    EXPECT_EQ(latest, 9);
  });
}

FIBER_TEST(share, a_slow_subscriber_slows_the_source_down) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, torrent(h), {.capacity = 3});
    auto sub = hot.subscribe();
    co_await settled();
    EXPECT_LE(h.pulled, 5);
    for (int i = 0; i < 10; ++i) {
      const int seen = co_await take_one(sub);
      EXPECT_EQ(seen, i);
    }
    co_await settled();
    EXPECT_LE(h.pulled, 15);
  });
  EXPECT_EQ(h.closed, 1);
}
FIBER_TEST(share, a_source_error_reaches_every_subscriber_after_its_items_and_not_the_scope) {
  history h;
  bool went_on = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, fails_after_two(h));
    auto one = hot.subscribe();
    auto two = hot.subscribe();
    (void)co_await take_one(one);
    (void)co_await take_one(one);
    co_await weir::sleep(50ms);
    EXPECT_TRUE(hot.closed());
    for (int i = 1; i <= 2; ++i) {
      const int seen = co_await take_one(two);
      EXPECT_EQ(seen, i);
    }
    const std::exception_ptr first = co_await error_of(one.next());
    const std::exception_ptr second = co_await error_of(two.next());
    EXPECT_EQ(boom_of(first), 5);
    EXPECT_EQ(boom_of(second), 5);
    auto end = co_await one.next();
    EXPECT_EQ(end, std::nullopt);
    went_on = true;
  });
  EXPECT_TRUE(went_on);
  EXPECT_EQ(h.closed, 1);
}

FIBER_TEST(share, a_source_error_without_subscribers_is_a_failure_of_the_scope) {
  history h;
  auto body = [&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, fails_after_two(h), {.start = when::now, .stop = when::never});
    co_await weir::sleep(1h);
  };
  auto make = [&] { return weir::with_scope(body); };
  const std::exception_ptr error = co_await attempt(make);
  EXPECT_EQ(boom_of(error), 5);
  EXPECT_EQ(h.closed, 1);
}
FIBER_TEST(share, the_end_of_the_scope_stops_a_source_that_waits) {
  history h;
  const weir::time_point start = weir::now();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, counted_ticks(h, 10, 1h));
    auto sub = hot.subscribe();
    co_await settled();
    EXPECT_EQ(h.opened, 1);
  });
  EXPECT_EQ(h.closed, 1);
  EXPECT_LT(ms_since(start), 10);
}

// Nobody is left waiting for a source that is gone, and it does not look like its end.
TEST(share, subscribers_that_outlive_the_scope_are_told_that_the_source_was_interrupted) {
  for (bool waiting : {false, true}) {
    in_order([waiting]() -> task<> {
      history h;
      std::optional<shared_ints> hot;
      std::optional<subscription> sub;
      co_await weir::with_scope([&](weir::scope& outer) -> task<> {
        std::optional<weir::child<std::exception_ptr>> parked;
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          hot.emplace(weir::share(s, counted_ticks(h, 10)));
          sub.emplace(hot->subscribe());
          const int first = co_await take_one(*sub);
          EXPECT_EQ(first, 1);
          if (waiting) parked.emplace(outer.spawn(error_of(sub->next())));
          co_await settled();
        });
        EXPECT_EQ(h.closed, 1);
        EXPECT_TRUE(hot->closed());
        std::exception_ptr error;
        if (waiting) {
          error = co_await std::move(*parked);
        } else {
          error = co_await error_of(sub->next());
        }
        EXPECT_EQ(code_of(error), errc::stream_interrupted);
        auto end = co_await sub->next();
        EXPECT_EQ(end, std::nullopt);
      });
    });
  }
}

FIBER_TEST(share,
           a_share_that_never_started_because_its_scope_was_cancelled_leaves_nobody_waiting) {
  history h;
  std::optional<shared_ints> hot;
  auto body = [&](weir::scope& s) -> task<> {
    s.cancel("enough");
    hot.emplace(weir::share(s, counted_ticks(h, 10)));
    co_await settled();
  };
  auto run = [&] { return weir::with_scope(body); };
  (void)co_await weir::settle(run);
  auto sub = hot->subscribe();
  const std::exception_ptr error = co_await error_of(sub.next());
  EXPECT_EQ(code_of(error), errc::stream_interrupted);
  EXPECT_EQ(h.opened, 0);
}

FIBER_TEST(share, a_handle_that_is_gone_leaves_its_subscriptions_alone) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = std::make_unique<shared_ints>(weir::share(s, counted_ticks(h, 3)));
    auto sub = hot->subscribe();
    hot.reset();
    numbers got;
    co_await take_all(sub, got);
    EXPECT_EQ(got, from_to(1, 3));
  });
  EXPECT_EQ(h.closed, 1);
}

FIBER_TEST(share, a_handle_that_nobody_subscribes_to_does_not_keep_the_scope) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, counted_ticks(h, 3));
    EXPECT_EQ(s.size(), 0U);
    co_await settled();
  });
  EXPECT_EQ(h.opened, 0);
}
TEST(share, a_source_that_never_waits_does_not_starve_the_loop) {
  for (bool heard : {false, true}) {
    in_order([heard]() -> task<> {
      history h;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto hot = weir::share(
            s, torrent(h),
            {.overflow = overflow::drop_oldest, .start = when::now, .stop = when::never});
        std::optional<subscription> sub;
        if (heard) sub.emplace(hot.subscribe());
        for (int i = 0; i < 20; ++i) co_await weir::yield();
        EXPECT_GT(h.pulled, 0);
        EXPECT_LT(h.pulled, 50'000);
      });
      EXPECT_EQ(h.closed, 1);
    });
  }
}

FIBER_TEST(share, a_source_that_never_waits_stops_when_the_last_subscriber_leaves) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, torrent(h), {.overflow = overflow::drop_oldest});
    {
      auto sub = hot.subscribe();
      (void)co_await take_one(sub);
    }
    co_await settled();  // virtual time passes only when nothing runs any more
    EXPECT_TRUE(hot.closed());
    EXPECT_EQ(h.closed, 1);
  });
}

FIBER_TEST_IN_EVERY_ORDER(share, comings_and_goings_in_every_order_lose_nothing) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, counted_ticks(h, 4, 1ms), {.capacity = 1});
    auto stays = hot.subscribe();
    auto visitor = [&]() -> task<> {
      auto sub = hot.subscribe();
      const int first = co_await take_one(sub);
      const int second = co_await take_one(sub);
      EXPECT_TRUE(first == -1 || second == -1 || second == first + 1);
    };
    s.spawn(visitor());
    s.spawn(visitor());
    numbers got;
    co_await take_all(stays, got);
    EXPECT_EQ(got, from_to(1, 4));
    co_await s.join();
  });
  EXPECT_EQ(h.opened, 1);
  EXPECT_EQ(h.closed, 1);
}

FIBER_TEST(share, misuse_is_refused_with_a_clear_error) {
  history h;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    const weir::share_options wrong[] = {{.capacity = 0},
                                         {.capacity = -1},
                                         {.overflow = overflow::reject},
                                         {.overflow = overflow::stop},
                                         {.start = when::never},
                                         {.start = when::no_subscribers},
                                         {.stop = when::now},
                                         {.stop = when::first_subscriber},
                                         {.replay = -1}};
    for (const weir::share_options& options : wrong)
      EXPECT_EQ(code_thrown_by([&] { (void)weir::share(s, counted_ticks(h, 3), options); }),
                errc::invalid_argument);
    auto hot = weir::share(s, counted_ticks(h, 3));
    const auto code = code_thrown_by([&] { (void)hot.subscribe({.overflow = overflow::stop}); });
    EXPECT_EQ(code, errc::invalid_argument);
    co_await settled();
    EXPECT_EQ(h.opened, 0);  // a refused subscriber starts nothing
    EXPECT_EQ(hot.subscribers(), 0U);
  });
}
