// SPDX-License-Identifier: MIT
// Many children of one scope: they are released when they end, gone before the scope continues, and
// stop spawning when it is cancelled; join and idle wait for exactly the ordinary ones.
#include "scope_support.hpp"

using namespace weir_test;

namespace {

weir::local<int> colour{0};

struct hydra {
  weir::scope& s;
  int started = 0;
  int started_too_late = 0;

  weir::task<> head() {
    ++started;
    if (s.cancel_requested()) ++started_too_late;
    co_await weir::sleep(1ms);
    s.spawn([this] { return head(); });
    s.spawn([this] { return head(); });
  }
};

}  // namespace
TEST(scope_children, a_hundred_thousand_children_leave_nothing_behind) {
  int finished = 0;
  weir::run([&]() -> weir::task<> {
    const auto before = weir::live();
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      for (int i = 0; i < 100'000; ++i) {
        s.spawn([&]() -> weir::task<> {
          co_await weir::yield();
          ++finished;
        });
      }
      EXPECT_EQ(s.size(), 100'000u);
      co_return;
    });
    const auto after_it = weir::live();
    EXPECT_EQ(after_it.fibers, before.fibers);
    EXPECT_EQ(after_it.scopes, before.scopes);
    EXPECT_EQ(after_it.timers, before.timers);
  });
  EXPECT_EQ(finished, 100'000);
}
SCOPE_TEST(scope_children, finished_children_are_released_while_the_scope_stays_open) {
  co_await s.spawn(ready(1));
  const long fibers = live_fibers();
  for (int i = 0; i < 20'000; ++i) co_await s.spawn(ready(i));
  EXPECT_EQ(live_fibers(), fibers);
  EXPECT_EQ(s.size(), 0u);
}
TEST(scope_children, frames_of_children_are_destroyed_before_join_goes_on) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        for (int i = 0; i < 4; ++i) {
          s.spawn([&]() -> weir::task<> {
            end_note ended(log, "child");
            co_await weir::sleep(5ms);
          });
        }
        auto cancelled = s.spawn(park(log, "child"));
        co_await weir::sleep(5ms);
        cancelled.cancel();
        co_await s.join();
        log.push_back("joined");
      });
    });
    EXPECT_EQ(joined(log), "child,child,child,child,child,joined");
  });
}
TEST(scope_children, frames_of_children_are_destroyed_before_the_scope_goes_on) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        end_note body(log, "body");
        for (int i = 0; i < 4; ++i) s.spawn(park(log, "child"));
        co_await weir::sleep(5ms);
        s.cancel();
        co_await weir::sleep(1h);
      }));
      log.push_back("after");
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_EQ(joined(log), "child,child,child,child,body,after");
  });
}

// In the order of production only: all of them are ready, and whoever gets a turn is unwound.
TEST(scope_children, a_cancelled_scope_unwinds_its_children_in_the_order_of_their_spawns) {
  text_log log;
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, [&]() -> weir::task<> {
    auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
      end_note body(log, "body");
      s.spawn(park(log, "1"));
      s.spawn(park(log, "2"));
      s.spawn(park(log, "3"));
      co_await weir::sleep(1ms);
      s.cancel();
      co_await weir::sleep(1h);
    }));
    EXPECT_TRUE(ended.is_cancelled());
  });
  EXPECT_EQ(joined(log), "1,2,3,body");
}

TEST(scope_children,
     a_cancelled_scope_asks_its_children_in_the_order_of_their_spawns_and_then_its_body) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      std::vector<weir::resumer<void>> kept;
      auto asked = [&](std::string name) -> weir::task<> {
        co_await weir::suspend<void>([&](weir::resumer<void> r) {
          kept.push_back(std::move(r));
          return [&log, name] {
            log.push_back(name);
            return weir::cancel_result::done;
          };
        });
      };
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        for (const char* name : {"1", "2", "3"}) s.spawn([&asked, name] { return asked(name); });
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(1ms);
          s.cancel();
        });
        co_await asked("body");
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_EQ(joined(log), "1,2,3,body");
  });
}

TEST(scope_children, the_locals_of_a_cancelled_body_outlive_the_slow_cleanup_of_its_children) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        end_note body(log, "body");
        s.spawn(slow_to_stop(log, "child"));
        co_await weir::sleep(1ms);
        s.cancel();
        co_await weir::sleep(1h);
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_EQ(joined(log), "child stopped,body");
  });
}

// Heads double every millisecond until one child fails; none starts after that.
FIBER_TEST_IN_EVERY_ORDER(scope_children,
                          children_that_spawn_children_stop_in_the_instant_of_a_failure) {
  const auto start = weir::now();
  int started = 0;
  int started_too_late = 0;
  std::optional<hydra> beast;
  auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
    beast.emplace(hydra{s});
    s.spawn(beast->head());
    s.spawn(fails_after(7ms, 5));
    co_return;
  }));
  started = beast->started;
  started_too_late = beast->started_too_late;
  EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 5);
  EXPECT_EQ(weir::now() - start, 7ms);
  EXPECT_GE(started, 127);
  EXPECT_LE(started, 255);
  EXPECT_EQ(started_too_late, 0);
}

// The page has no option of spawn for it; with_local around the op is the override.
TEST(scope_children, a_local_overridden_for_one_child_is_seen_by_that_child_only) {
  for_each_order([](weir::sim::world& w) {
    int overridden = 0;
    int other = 0;
    int nested = 0;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto look = [&]() -> weir::task<> {
          co_await weir::sleep(1ms);
          overridden = colour.get();
          co_await weir::with_scope([&](weir::scope& inner) -> weir::task<> {
            inner.spawn([&]() -> weir::task<> {
              nested = colour.get();
              co_return;
            });
            co_return;
          });
        };
        s.spawn([&]() -> weir::task<> { co_await weir::with_local(colour, 7, look); });
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(1ms);
          other = colour.get();
        });
        co_await s.join();
        EXPECT_EQ(colour.get(), 0);
      });
    });
    EXPECT_EQ(overridden, 7);
    EXPECT_EQ(nested, 7);
    EXPECT_EQ(other, 0);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(scope_children, idle_waits_for_the_children_and_leaves_the_scope_open) {
  const auto start = weir::now();
  s.background([]() -> weir::task<> { co_await weir::sleep(1000h); });
  s.spawn(sleep_for(10ms));
  s.spawn(sleep_for(20ms));
  co_await s.idle();
  EXPECT_EQ(weir::now() - start, 20ms);
  EXPECT_EQ(s.size(), 0u);
  auto again = s.spawn(after(5ms, 3));
  co_await s.idle();
  EXPECT_TRUE(again.done());
  EXPECT_EQ(weir::now() - start, 25ms);
}

SCOPE_TEST_IN_EVERY_ORDER(scope_children, size_counts_ordinary_children_only) {
  EXPECT_EQ(s.size(), 0u);
  s.background([]() -> weir::task<> { co_await weir::sleep(1000h); });
  EXPECT_EQ(s.size(), 0u);
  auto a = s.spawn(sleep_for(5ms));
  auto b = s.spawn(sleep_for(10ms));
  EXPECT_EQ(s.size(), 2u);
  co_await a;
  EXPECT_EQ(s.size(), 1u);
  EXPECT_EQ(weir::this_scope().size(), 1u);
  EXPECT_EQ(weir::this_scope().id(), s.id());
  co_await b;
  EXPECT_EQ(s.size(), 0u);
}
