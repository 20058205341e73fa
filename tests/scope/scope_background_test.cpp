// SPDX-License-Identifier: MIT
// Services of a scope and its defers, which form one stack, and start(), which waits until a child
// reports that it is up.
#include "scope_support.hpp"

using namespace weir_test;

namespace {

/// Parks until it is popped; then its shielded cleanup takes 10 ms.
weir::task<> service(text_log& log, std::string name) {
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.defer([&]() -> weir::task<> {
      co_await weir::sleep(10ms);
      log.push_back(name);
    });
    co_await weir::sleep(1000h);
    log.push_back("WENT ON");
  });
}

}  // namespace
TEST(background, services_and_defers_are_one_stack_popped_after_body_and_children) {
  for (auto how : {body_ending::value, body_ending::error, body_ending::cancelled}) {
    for_each_order([&](weir::sim::world& w) {
      text_log log;
      w.run([&]() -> weir::task<> {
        auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<int> {
          s.defer([&] { log.push_back("defer 1"); });
          s.background(service(log, "service 1"));
          s.defer([&]() -> weir::task<> {
            co_await weir::sleep(10ms);
            log.push_back("defer 2");
          });
          s.background(service(log, "service 2"));
          s.background(service(log, "service 3"));
          s.spawn([&]() -> weir::task<> {
            end_note child(log, "child");
            co_await weir::sleep(60ms);
          });
          co_await weir::sleep(50ms);
          log.push_back("body");
          if (how == body_ending::error) throw boom(1);
          if (how == body_ending::cancelled) s.cancel();
          if (how == body_ending::cancelled) co_await weir::checkpoint();
          co_return 3;
        }));
        EXPECT_EQ(ended.is_value(), how == body_ending::value);
        EXPECT_EQ(ended.is_error(), how == body_ending::error);
        EXPECT_EQ(ended.is_cancelled(), how == body_ending::cancelled);
      });
      EXPECT_EQ(joined(log), "body,child,service 3,service 2,defer 2,service 1,defer 1");
    });
  }
}
TEST(background, a_service_is_cancelled_only_when_body_and_children_are_done) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    std::optional<weir::future<void>> kept;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      const int value = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
        kept = s.background(park(log, "service"), {.name = "service"});
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(20ms);
          EXPECT_FALSE(kept->done());
          log.push_back("child");
        });
        co_await weir::sleep(5ms);
        co_return 2;
      });
      EXPECT_EQ(value, 2);
      EXPECT_EQ(weir::now() - start, 20ms);
    });
    EXPECT_EQ(joined(log), "child,service");
    ASSERT_TRUE(kept->peek() != nullptr && kept->peek()->is_cancelled());
    EXPECT_EQ(kept->peek()->reason().kind, cancel_kind::scope_ended);
  });
}

TEST(background, a_service_sees_no_cancellation_of_its_scope_until_it_is_popped) {
  for (bool from_outside : {false, true}) {
    for_each_order([&](weir::sim::world& w) {
      text_log log;
      int turns = 0;
      bool popped = false;  // a ready service runs on to its next await after it was popped
      w.run([&]() -> weir::task<> {
        auto run_scope = [&]() -> weir::task<> {
          co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
            s.background([&](weir::context& context) -> weir::task<> {
              while (true) {
                EXPECT_TRUE(popped || !context.cancel_requested());
                co_await weir::sleep(1ms);
                ++turns;
              }
            });
            s.defer([&] { popped = true; });
            s.spawn(slow_to_stop(log, "child"));
            co_await weir::sleep(5ms);
            if (!from_outside) s.cancel("inside");
            co_await weir::sleep(1h);
          });
        };
        co_await weir::with_scope([&](weir::scope& outer) -> weir::task<> {
          auto caller = outer.spawn(weir::settle(run_scope));
          co_await weir::sleep(5ms);
          if (from_outside) caller.cancel("outside");
          co_await outer.idle();
        });
      });
      EXPECT_EQ(joined(log), "child stopped");
      EXPECT_GE(turns, 34);
      EXPECT_LE(turns, 35);
    });
  }
}

TEST(background, the_failure_of_a_service_counts_like_that_of_any_child) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.background(fails_after(5ms, 1));
        s.spawn(park(log, "child"));
        co_await weir::sleep(1h);
        log.push_back("WENT ON");
      }));
      EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 1);
      EXPECT_EQ(weir::now() - start, 5ms);
    });
    EXPECT_EQ(joined(log), "child");
  });
}

FIBER_TEST_IN_EVERY_ORDER(background, a_service_that_ends_by_itself_changes_nothing) {
  const int sum = co_await weir::with_scope([](weir::scope& s) -> weir::task<int> {
    auto quick = s.background(after(5ms, 3));
    auto child = s.spawn(after(10ms, 4));
    const int first = co_await quick;
    co_return first + co_await child;
  });
  EXPECT_EQ(sum, 7);
}

TEST(background, join_does_not_wait_for_services_and_closes_the_scope_before_they_are_popped) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto running = s.background(park(log, "service"));
        s.spawn(sleep_for(10ms));
        co_await s.join();
        EXPECT_EQ(weir::now() - start, 10ms);
        EXPECT_FALSE(running.done());
        co_await weir::sleep(10ms);
        EXPECT_FALSE(running.done());
        log.push_back("body");
      });
    });
    EXPECT_EQ(joined(log), "body,service");
  });
}

TEST(background, the_grace_starts_with_the_first_pop_and_ends_shields_and_defers) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      auto ended = co_await weir::settle(
          weir::with_scope({.grace = 5s}, [&](weir::scope& s) -> weir::task<> {
            s.defer([&] { log.push_back("last defer"); });
            s.background([&]() -> weir::task<> {
              end_note frame(log, "service");
              co_await weir::shield(sleep_for(1000h));
              co_await weir::sleep(1000h);
            });
            s.defer([&]() -> weir::task<> { co_await weir::sleep(2s); });
            co_await weir::sleep(10s);
          }));
      EXPECT_EQ(weir::now() - start, 15s);
      (void)ended;
    });
    EXPECT_EQ(joined(log), "service,last defer");
  });
}

TEST(background, a_child_may_register_a_service_and_a_defer_which_are_popped_like_the_bodys) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.defer([&] { log.push_back("defer 1"); });
        s.spawn([&]() -> weir::task<> {
          s.background(service(log, "service"));
          s.defer([&] { log.push_back("defer 2"); });
          co_await weir::sleep(5ms);
          log.push_back("child");
        });
        co_return;
      });
    });
    EXPECT_EQ(joined(log), "child,defer 2,service,defer 1");
  });
}
FIBER_TEST_IN_EVERY_ORDER(start,
                          the_caller_goes_on_with_the_value_when_the_child_says_that_it_is_up) {
  const auto start = weir::now();
  bool child_finished = false;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    const int port = co_await s.start([&](weir::started<int>& up) -> weir::task<> {
      co_await weir::sleep(10ms);
      up(8080);
      co_await weir::sleep(10ms);
      child_finished = true;
    });
    EXPECT_EQ(port, 8080);
    EXPECT_EQ(weir::now() - start, 10ms);
    EXPECT_FALSE(child_finished);
    EXPECT_EQ(s.size(), 1u);
  });
  EXPECT_TRUE(child_finished);
  EXPECT_EQ(weir::now() - start, 20ms);
}
TEST(start, a_child_may_be_up_without_a_value) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        co_await s.start([&](weir::started<>& up) -> weir::task<> {
          co_await weir::sleep(1ms);
          log.push_back("up");
          up();
        });
        log.push_back("caller");
      });
    });
    EXPECT_EQ(joined(log), "up,caller");
  });
}

// After it is up the child is an ordinary one, so its failure fails the scope.
FIBER_TEST_IN_EVERY_ORDER(start, a_child_that_fails_after_it_was_up_fails_the_scope) {
  int value = 0;
  auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
    value = co_await s.start([](weir::started<int>& up) -> weir::task<> {
      up(5);
      co_await weir::sleep(5ms);
      throw boom(2);
    });
    co_await weir::sleep(1h);
  }));
  EXPECT_EQ(value, 5);
  EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 2);
}
FIBER_TEST_IN_EVERY_ORDER(start,
                          a_child_that_fails_before_it_is_up_gives_its_error_to_the_caller_only) {
  bool sibling_finished = false;
  int caught = 0;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn([&]() -> weir::task<> {
      co_await weir::sleep(50ms);
      sibling_finished = true;
    });
    try {
      co_await s.start([](weir::started<int>&) -> weir::task<> {
        co_await weir::sleep(1ms);
        throw boom(7);
      });
    } catch (const boom& e) {
      caught = e.n;
    }
    EXPECT_FALSE(s.cancel_requested());
    co_await s.join();
  });
  EXPECT_EQ(caught, 7);
  EXPECT_TRUE(sibling_finished);
}
FIBER_TEST_IN_EVERY_ORDER(start, a_child_that_ends_without_being_up_is_never_started) {
  std::error_code code;
  const int value = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
    try {
      co_await s.start([](weir::started<int>&) -> weir::task<> { co_await weir::sleep(1ms); });
    } catch (const weir::error& e) {
      code = e.code();
    }
    co_return co_await s.spawn(after(1ms, 4));
  });
  EXPECT_EQ(code, weir::errc::never_started);
  EXPECT_EQ(value, 4);
}
FIBER_TEST_IN_EVERY_ORDER(start, a_child_that_is_up_twice_gets_already_started) {
  std::error_code code;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    const int value = co_await s.start([&](weir::started<int>& up) -> weir::task<> {
      up(1);
      code = code_thrown_by([&] { up(2); });
      co_return;
    });
    EXPECT_EQ(value, 1);
    co_await s.join();
  });
  EXPECT_EQ(code, weir::errc::already_started);
}
TEST(start, cancelling_the_caller_cancels_the_child_that_is_not_up_yet_and_nothing_else) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto sibling = s.spawn(after(20ms, 3));
        auto caller = s.spawn([&]() -> weir::task<> {
          end_note frame(log, "caller");
          co_await s.start([&](weir::started<>&) -> weir::task<> {
            end_note not_up(log, "child");
            co_await weir::sleep(1h);
          });
          log.push_back("WENT ON");
        });
        co_await weir::sleep(5ms);
        caller.cancel("not needed any more");
        const int value = co_await sibling;
        EXPECT_EQ(value, 3);
        EXPECT_TRUE(caller.done() && caller.peek()->is_cancelled());
        EXPECT_EQ(s.size(), 0u);
        EXPECT_FALSE(s.cancel_requested());
      });
    });
    EXPECT_EQ(joined(log), "child,caller");
  });
}

// Once the child is up it belongs to the scope, and the caller's end is its own affair.
FIBER_TEST_IN_EVERY_ORDER(start, cancelling_the_caller_later_leaves_the_started_child_alone) {
  bool child_finished = false;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto caller = s.spawn([&]() -> weir::task<> {
      co_await s.start([&](weir::started<>& up) -> weir::task<> {
        up();
        co_await weir::sleep(20ms);
        child_finished = true;
      });
      co_await weir::sleep(1h);
    });
    co_await weir::sleep(5ms);
    caller.cancel();
    co_await s.join();
  });
  EXPECT_TRUE(child_finished);
}
TEST(start, on_a_cancelled_scope_the_child_never_starts) {
  for_each_order([](weir::sim::world& w) {
    bool ran = false;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.cancel();
        co_await s.start([&](weir::started<>& up) -> weir::task<> {
          ran = true;
          up();
          co_return;
        });
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_FALSE(ran);
  });
}

// "with_scope ... has joined every child": also one that a service spawns when the last of the
// others has ended, but the body's strand has not had its turn yet.
TEST(background, a_child_that_a_service_spawns_behind_the_last_one_is_joined) {
  for_each_order([](weir::sim::world& w) {
    int spawned = 0;
    int joined = 0;
    w.run([&]() -> weir::task<> {
      weir::resumer<void> wake;
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.background([&]() -> weir::task<> {
          co_await weir::suspend<void>([&](weir::resumer<void> r) { wake = std::move(r); });
          try {
            s.spawn([&]() -> weir::task<> {
              co_await weir::sleep(1ms);
              ++joined;
            });
            ++spawned;
          } catch (const weir::error& e) {
            EXPECT_EQ(e.code(), weir::errc::scope_closed);
          }
          co_await weir::sleep(1000h);
        });
        co_await weir::sleep(1ms);
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(1ms);
          wake.complete();
        });
      });
    });
    EXPECT_EQ(joined, spawned);
  });
}
