// SPDX-License-Identifier: MIT
// Cancellation inside one loop: when it unwinds a fiber, what it leaves alone, and how scopes,
// children and handles pass it on.
#include <sstream>

#include "scope_support.hpp"

using namespace weir_test;

namespace {

weir::task<> leaf(text_log& log) {
  end_note first(log, "leaf first");
  end_note second(log, "leaf second");
  try {
    co_await weir::sleep(1h);
  } catch (...) {
    log.push_back("CAUGHT");
  }
  log.push_back("WENT ON");
}

weir::task<> middle(text_log& log) {
  end_note local(log, "middle");
  try {
    end_note in_try(log, "middle try");
    co_await leaf(log);
  } catch (const weir::cancelled_error&) {
    log.push_back("CAUGHT");
  } catch (...) {
    log.push_back("CAUGHT");
  }
  log.push_back("WENT ON");
}

enum class awaited { sleep, sleep_until, yield, checkpoint, task, future, settle, scope, timeout };

constexpr awaited every_await[] = {awaited::sleep,      awaited::sleep_until, awaited::yield,
                                   awaited::checkpoint, awaited::task,        awaited::future,
                                   awaited::settle,     awaited::scope,       awaited::timeout};

/// Awaits one thing in a body whose scope is cancelled already, and says whether it went on.
weir::task<bool> goes_on_when_cancelled(awaited what) {
  bool went_on = false;
  auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto done = s.spawn(ready(1));
    co_await s.idle();
    const auto now = weir::now();
    auto empty = [](weir::scope&) -> weir::task<> { co_return; };
    s.cancel("stop");
    if (what == awaited::sleep) co_await weir::sleep(1ms);
    if (what == awaited::sleep_until) co_await weir::sleep_until(now);
    if (what == awaited::yield) co_await weir::yield();
    if (what == awaited::checkpoint) co_await weir::checkpoint();
    if (what == awaited::task) co_await ready(1);
    if (what == awaited::future) co_await done;
    if (what == awaited::settle) (void)co_await weir::settle(ready(1));
    if (what == awaited::scope) co_await weir::with_scope(empty);
    if (what == awaited::timeout) co_await weir::with_timeout(1h, ready(1));
    went_on = true;
  }));
  EXPECT_TRUE(ended.is_cancelled());
  co_return went_on;
}

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(cancel, the_first_reason_of_a_scope_wins_and_is_kept) {
  auto ended = co_await weir::settle(weir::with_scope([](weir::scope& s) -> weir::task<> {
    EXPECT_FALSE(s.cancel_requested());
    EXPECT_EQ(s.reason(), nullptr);
    s.cancel("first");
    s.cancel();
    s.cancel(weir::cancel_reason(cancel_kind::custom, "third"));
    EXPECT_TRUE(s.cancel_requested());
    EXPECT_TRUE(s.reason() != nullptr && s.reason()->kind == cancel_kind::user);
    EXPECT_EQ(message_of(*s.reason()), "first");
    co_await weir::checkpoint();
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(message_of(ended.reason()), "first");
}
TEST(cancel, the_first_reason_of_a_child_wins) {
  for_each_order([](weir::sim::world& w) {
    std::optional<weir::future<void>> stopped;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto child = s.spawn(sleep_for(1h));
        stopped = child;
        co_await weir::sleep(1ms);
        child.cancel(weir::cancel_reason(cancel_kind::custom, "first"));
        child.cancel("second");
      });
    });
    ASSERT_TRUE(stopped->peek() != nullptr && stopped->peek()->is_cancelled());
    EXPECT_EQ(stopped->peek()->reason().kind, cancel_kind::custom);
    EXPECT_EQ(message_of(stopped->peek()->reason()), "first");
  });
}

// Every kind of await that begins after the cancellation unwinds, also a ready one.
FIBER_TEST_IN_EVERY_ORDER(cancel,
                          every_await_that_begins_after_the_cancellation_unwinds_the_fiber) {
  for (awaited what : every_await) {
    const bool went_on = co_await goes_on_when_cancelled(what);
    EXPECT_FALSE(went_on) << "await number " << static_cast<int>(what);
  }
}

// Level-triggered, so a shielded part does not use the cancellation up.
TEST(cancel, the_await_after_each_shielded_part_unwinds) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.cancel("stop");
        co_await weir::shield(sleep_for(1ms));
        log.push_back("first");
        co_await weir::shield(sleep_for(1ms));
        log.push_back("second");
        co_await weir::checkpoint();
        log.push_back("WENT ON");
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_EQ(joined(log), "first,second");
  });
}

// The page unwinds at the next await, which is the one that would enter the scope; the line
// lets the body run up to its first await. Both run no line behind that await.
TEST(cancel, a_fiber_cancelled_before_it_enters_a_scope_gets_no_further_than_the_first_await) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.cancel("stop");
        log.push_back("before");
        co_await weir::with_scope([&](weir::scope&) -> weir::task<> {
          co_await weir::checkpoint();
          log.push_back("INSIDE");
        });
        log.push_back("AFTER");
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_EQ(joined(log), "before");
  });
}
FIBER_TEST_IN_EVERY_ORDER(cancel,
                          a_scope_cancelled_by_its_own_cancel_throws_and_the_code_after_it_runs) {
  std::string message;
  try {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<int> {
      s.cancel("enough");
      co_await weir::sleep(1h);
      co_return 1;
    });
  } catch (const weir::cancelled_error& e) {
    message = message_of(e.reason());
  }
  EXPECT_EQ(message, "enough");
  EXPECT_FALSE(weir::this_context().cancel_requested());
  const int value = co_await after(1ms, 5);
  EXPECT_EQ(value, 5);
}

// The value is what is observed.
TEST(cancel, a_body_that_finished_keeps_its_value_when_the_scope_is_cancelled) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const int late = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
        s.spawn(park(log, "child"));
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(5ms);
          s.cancel("late");
        });
        co_return 1;
      });
      EXPECT_EQ(late, 1);
      const int same_step = co_await weir::with_scope([](weir::scope& s) -> weir::task<int> {
        co_await weir::sleep(1ms);
        s.cancel("and out");
        co_return 2;
      });
      EXPECT_EQ(same_step, 2);
      co_await weir::checkpoint();
    });
    EXPECT_EQ(joined(log), "child");
  });
}
TEST(cancel, an_inner_cancel_leaves_outer_code_alone_and_an_outer_one_reaches_all_inner_scopes) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& outer) -> weir::task<> {
        end_note outer_body(log, "outer body");
        auto cancelled =
            co_await weir::settle(weir::with_scope([&](weir::scope& inner) -> weir::task<> {
              inner.spawn(park(log, "inner child"));
              co_await weir::sleep(1ms);
              inner.cancel();
              co_await weir::checkpoint();
            }));
        EXPECT_TRUE(cancelled.is_cancelled());
        EXPECT_FALSE(outer.cancel_requested());
        co_await weir::sleep(1ms);
        outer.spawn([&]() -> weir::task<> {
          co_await weir::sleep(1ms);
          outer.cancel();
        });
        co_await weir::with_scope([&](weir::scope& inner) -> weir::task<> {
          inner.spawn(park(log, "deep child"));
          co_await weir::with_scope([&](weir::scope& innermost) -> weir::task<> {
            innermost.spawn(park(log, "deepest child"));
            co_await weir::sleep(1h);
          });
        });
        log.push_back("WENT ON");
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    std::sort(log.begin(), log.end());
    EXPECT_EQ(joined(log), "deep child,deepest child,inner child,outer body");
  });
}
FIBER_TEST_IN_EVERY_ORDER(
    cancel, a_timeout_fires_inside_a_shield_though_the_outer_cancellation_does_not_reach_it) {
  const auto start = weir::now();
  bool timed_out = false;
  auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn([&]() -> weir::task<> {
      co_await weir::sleep(5ms);
      s.cancel();
    });
    try {
      co_await weir::shield(weir::with_timeout(20ms, sleep_for(1h)));
    } catch (const weir::timeout_error&) {
      timed_out = true;
    }
    co_await weir::checkpoint();
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_TRUE(timed_out);
  EXPECT_EQ(weir::now() - start, 20ms);
}
TEST(cancel, a_wait_that_cannot_be_cancelled_delivers_its_result_and_the_next_await_unwinds) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      std::optional<weir::resumer<int>> slot;
      const auto start = weir::now();
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto child = s.spawn([&]() -> weir::task<> {
          const int value = co_await weir::suspend<int>([&](weir::resumer<int> r) {
            slot.emplace(std::move(r));
            return [&] {
              log.push_back("asked");
              return weir::cancel_result::no;
            };
          });
          log.push_back("got " + std::to_string(value));
          co_await weir::checkpoint();
          log.push_back("WENT ON");
        });
        co_await weir::sleep(5ms);
        child.cancel("stop");
        EXPECT_EQ(joined(log), "asked");
        co_await weir::sleep(5ms);
        EXPECT_FALSE(child.done());
        slot->complete(7);
        co_await s.join();
        EXPECT_TRUE(child.peek()->is_cancelled());
        EXPECT_EQ(weir::now() - start, 10ms);
      });
    });
    EXPECT_EQ(joined(log), "asked,got 7");
  });
}

// Whichever comes first, the value is either delivered or still in its future.
FIBER_TEST_IN_EVERY_ORDER(cancel, a_value_and_a_cancellation_in_one_instant_never_lose_the_value) {
  int delivered = 0;
  bool went_on = false;
  const int sum = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
    auto source = s.spawn([]() -> weir::task<std::unique_ptr<int>> {
      co_await weir::sleep(10ms);
      co_return std::make_unique<int>(9);
    });
    auto taker = s.spawn([&]() -> weir::task<> {
      auto taken = co_await source.take();
      delivered = *taken;
      co_await weir::checkpoint();
      went_on = true;
    });
    co_await weir::sleep(10ms);
    taker.cancel();
    co_await s.idle();
    EXPECT_FALSE(went_on && delivered == 0);
    if (delivered != 0) co_return delivered;
    auto left = co_await source.take();
    co_return *left;
  });
  EXPECT_EQ(sum, 9);
}
FIBER_TEST_IN_EVERY_ORDER(cancel, cancelling_one_child_leaves_siblings_and_scope_alone) {
  const int value = co_await weir::with_scope([](weir::scope& s) -> weir::task<int> {
    auto stopped = s.spawn(sleep_for(1h));
    auto sibling = s.spawn(after(10ms, 4));
    co_await weir::sleep(5ms);
    stopped.cancel();
    const int result = co_await sibling;
    EXPECT_TRUE(stopped.done() && stopped.peek()->is_cancelled());
    EXPECT_EQ(stopped.peek()->reason().kind, cancel_kind::user);
    EXPECT_FALSE(s.cancel_requested());
    co_return result;
  });
  EXPECT_EQ(value, 4);
}
TEST(cancel, no_catch_block_sees_a_cancellation_and_frames_go_innermost_first) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto child = s.spawn([&]() -> weir::task<> {
          end_note outermost(log, "outermost");
          while (true) co_await middle(log);
        });
        co_await weir::sleep(5ms);
        child.cancel();
        co_await s.join();
      });
    });
    EXPECT_EQ(joined(log), "leaf second,leaf first,middle try,middle,outermost");
  });
}
FIBER_TEST_IN_EVERY_ORDER(cancel, a_timeout_is_an_error_also_for_code_that_was_unwound_by_it) {
  std::optional<cancel_kind> seen;
  auto op = [&]() -> weir::task<> {
    auto look = weir::scope_exit([&] {
      if (weir::unwinding() != nullptr) seen = weir::unwinding()->kind;
    });
    co_await weir::sleep(1h);
  };
  auto ended = co_await weir::settle(weir::with_timeout(10ms, op));
  EXPECT_TRUE(ended.is_error() && holds<weir::timeout_error>(ended.error()));
  EXPECT_FALSE(ended.is_cancelled());
  EXPECT_TRUE(seen == cancel_kind::timeout);
}
FIBER_TEST(cancel, ten_thousand_sleepers_are_gone_in_the_instant_of_the_cancellation) {
  const auto start = weir::now();
  const long timers = live_timers();
  int gone = 0;
  auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (int i = 0; i < 10'000; ++i) {
      s.spawn([&]() -> weir::task<> {
        auto count = weir::scope_exit([&] { ++gone; });
        co_await weir::sleep(1h);
      });
    }
    co_await weir::sleep(10ms);
    EXPECT_EQ(live_timers(), timers + 10'000);
    s.cancel();
    co_await weir::sleep(2h);
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(gone, 10'000);
  EXPECT_EQ(live_timers(), timers);
  EXPECT_EQ(weir::now() - start, 10ms);
}
TEST(cancel, a_child_that_cancels_its_own_scope_runs_on_to_its_next_await) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.spawn([&](weir::context& context) -> weir::task<> {
          end_note frame(log, "frame");
          EXPECT_FALSE(context.cancel_requested());
          EXPECT_EQ(context.reason(), nullptr);
          s.cancel("by a child");
          log.push_back("still here");
          EXPECT_TRUE(context.cancel_requested());
          EXPECT_TRUE(context.reason() != nullptr && message_of(*context.reason()) == "by a child");
          co_await weir::checkpoint();
          log.push_back("WENT ON");
        });
        co_await weir::sleep(1h);
      }));
      EXPECT_TRUE(ended.is_cancelled());
      EXPECT_EQ(message_of(ended.reason()), "by a child");
    });
    EXPECT_EQ(joined(log), "still here,frame");
  });
}
TEST(cancel, a_child_cancelled_before_its_first_turn_never_runs) {
  for_each_order([](weir::sim::world& w) {
    bool ran = false;
    auto held = std::make_shared<int>(1);
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto callable = [held, &ran]() -> weir::task<> {
          ran = true;
          co_return;
        };
        auto child = s.spawn(std::move(callable));
        child.cancel("too soon");
        co_await s.idle();
        EXPECT_TRUE(child.done() && child.peek()->is_cancelled());
        EXPECT_EQ(message_of(child.peek()->reason()), "too soon");
      });
      EXPECT_EQ(held.use_count(), 1);
    });
    EXPECT_FALSE(ran);
  });
}
FIBER_TEST_IN_EVERY_ORDER(cancel,
                          an_arm_that_cannot_be_cancelled_holds_back_the_result_of_its_race) {
  const auto start = weir::now();
  std::optional<weir::resumer<void>> slot;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn([&]() -> weir::task<> {
      co_await weir::sleep(50ms);
      slot->complete();
    });
    auto stubborn = [&]() -> weir::task<int> {
      co_await park_uncancellable(slot);
      co_return 2;
    };
    const int winner = co_await weir::race(after(10ms, 1), stubborn);
    EXPECT_EQ(winner, 1);
    EXPECT_EQ(weir::now() - start, 50ms);
  });
}
