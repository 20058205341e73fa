// SPDX-License-Identifier: MIT
// on, spawn_on and loop_thread in a simulation: what travels between two loops, in every order.
#include <memory>
#include <optional>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

weir::local<int> tag_of_caller(0);

/// Runs `body(scope&, loop_ref)` with a loop beside the caller's.
template <class F>
auto beside(F body) {
  return [body]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread t(s, {.name = "there"});
      co_await body(s, weir::loop_ref(t));
    });
  };
}

}  // namespace

TEST(on, the_value_comes_back_and_the_operation_ran_on_the_other_loop) {
  in_every_order(beside([](weir::scope&, weir::loop_ref there) -> task<> {
    const weir::loop_ref home = weir::this_loop();
    auto op = [&]() -> task<std::unique_ptr<int>> {
      EXPECT_EQ(weir::this_loop(), there);
      co_await weir::sleep(5ms);
      co_return std::make_unique<int>(7);
    };
    const auto start = weir::now();
    auto got = co_await weir::on(there, op);
    EXPECT_EQ(*got, 7);
    EXPECT_EQ(weir::this_loop(), home);
    EXPECT_EQ(ms_since(start), 5);
    co_await weir::on(there, weir::sleep(1ms));
    EXPECT_EQ(ms_since(start), 6);
  }));
}

TEST(on, the_error_comes_back_unchanged) {
  in_every_order(beside([](weir::scope&, weir::loop_ref there) -> task<> {
    auto op = []() -> task<> {
      throw boom(3);
      co_return;
    };
    EXPECT_EQ(boom_of(co_await error_of(weir::on(there, op))), 3);
    EXPECT_EQ(boom_of(co_await error_of(weir::on(there, fails_after(1ms, 4)))), 4);
  }));
}

TEST(on, a_cancelled_caller_waits_until_the_other_side_has_unwound) {
  in_every_order(beside([](weir::scope& s, weir::loop_ref there) -> task<> {
    text_log log;
    auto remote = [&]() -> task<> { (void)co_await slow_to_stop(log, "remote"); };
    auto caller = s.spawn(weir::on(there, remote));
    co_await weir::sleep(10ms);
    const auto start = weir::now();
    caller.cancel(weir::cancel_reason(weir::cancel_kind::user, "enough"));
    auto end = co_await weir::settle(caller);
    EXPECT_TRUE(end.is_cancelled());
    EXPECT_EQ(joined(log), "remote stopped");
    EXPECT_EQ(ms_since(start), 30);
  }));
}

TEST(on, cancelled_at_any_moment_the_caller_is_cancelled_or_has_the_value) {
  in_every_order(beside([](weir::scope& s, weir::loop_ref there) -> task<> {
    int alive = 0;
    auto remote = [&]() -> task<int> {
      ++alive;
      struct leave {
        int& n;
        ~leave() { --n; }
      } guard{alive};
      co_await weir::yield();
      co_return 5;
    };
    auto caller = s.spawn(weir::on(there, remote));
    for (int i = 0; i < 3; ++i) co_await weir::yield();
    caller.cancel();
    auto end = co_await weir::settle(caller);
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(end.is_error());
    if (end.is_value()) {
      EXPECT_EQ(end.value(), 5);
    }
  }));
}

TEST(on, the_deadline_of_the_caller_is_one_over_there) {
  in_every_order(beside([](weir::scope&, weir::loop_ref there) -> task<> {
    const auto start = weir::now();
    bool unwound = false;
    auto remote = [&](weir::context& c) -> task<> {
      struct leave {
        bool& flag;
        ~leave() { flag = true; }
      } guard{unwound};
      EXPECT_TRUE(c.deadline().has_value());
      EXPECT_EQ((c.deadline().value_or(start) - start) / 1ms, 20);
      co_await forever();
    };
    auto call = [&]() -> task<> { co_await weir::on(there, remote); };
    auto limited = [&]() -> task<> { co_await weir::with_timeout(20ms, call); };
    EXPECT_TRUE(holds<weir::timeout_error>(co_await attempt(limited)));
    EXPECT_TRUE(unwound);
    EXPECT_EQ(ms_since(start), 20);
  }));
}

TEST(on, a_time_limit_directly_around_it_is_a_deadline_over_there) {
  in_every_order(beside([](weir::scope&, weir::loop_ref there) -> task<> {
    const auto start = weir::now();
    auto remote = [&](weir::context& c) -> task<long> {
      co_return (c.deadline().value_or(start) - start) / 1ms;
    };
    EXPECT_EQ(co_await weir::with_timeout(20ms, weir::on(there, remote)), 20);
  }));
}

TEST(on, locals_of_the_caller_are_visible_over_there) {
  in_every_order(beside([](weir::scope&, weir::loop_ref there) -> task<> {
    EXPECT_EQ(tag_of_caller.get(), 0);
    auto caller = [&]() -> task<int> {
      auto remote = [&]() -> task<int> { co_return tag_of_caller.get(); };
      co_return co_await weir::on(there, remote);
    };
    EXPECT_EQ(co_await weir::with_local(tag_of_caller, 9, caller), 9);
    EXPECT_EQ(co_await caller(), 0);
  }));
}

FIBER_TEST_IN_EVERY_ORDER(
    on, a_loop_that_ends_cancels_and_joins_its_remote_children_and_their_callers_hear_it) {
  text_log log;
  std::optional<weir::loop_ref> there;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    std::optional<weir::child<weir::outcome<void>>> caller;
    co_await weir::with_loop_thread([&](weir::loop_thread& t) -> task<> {
      there = t;
      auto remote = [&]() -> task<> { (void)co_await slow_to_stop(log, "child"); };
      caller = s.spawn(weir::settle(weir::on(t, remote)));
      co_await weir::sleep(10ms);
    });
    EXPECT_EQ(joined(log), "child stopped");
    EXPECT_EQ(code_of((co_await *caller).error()), errc::loop_gone);
    EXPECT_FALSE(there->alive());
    bool ran = false;
    auto late = [&]() -> task<> {
      ran = true;
      co_return;
    };
    EXPECT_EQ(code_of(co_await error_of(weir::on(*there, late))), errc::loop_gone);
    EXPECT_FALSE(there->post([&] { ran = true; }));
    EXPECT_FALSE(ran);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(
    on, callers_at_the_end_of_the_loop_get_the_value_or_loop_gone_and_nothing_else) {
  std::vector<weir::child<weir::outcome<int>>> callers;
  co_await weir::with_loop_thread([&](weir::loop_thread& t) -> task<> {
    for (int i = 0; i < 3; ++i) callers.push_back(s.spawn(weir::settle(weir::on(t, ready(i)))));
    co_await weir::yield();
  });
  for (int i = 0; i < 3; ++i) {
    auto end = co_await callers[static_cast<std::size_t>(i)];
    if (end.is_value()) {
      EXPECT_EQ(end.value(), i);
    } else {
      EXPECT_EQ(code_of(end.error()), errc::loop_gone);
    }
  }
}

TEST(on, of_two_remote_operations_in_a_race_the_loser_is_cancelled_and_joined) {
  in_every_order(beside([](weir::scope& s, weir::loop_ref there) -> task<> {
    weir::loop_thread other(s, {.name = "other"});
    text_log log;
    auto loser = [&]() -> task<int> { co_return co_await slow_to_stop(log, "loser"); };
    const auto start = weir::now();
    auto won = co_await weir::race(weir::on(there, after(5ms, 1)), weir::on(other, loser));
    (void)won;
    EXPECT_EQ(joined(log), "loser stopped");
    EXPECT_EQ(ms_since(start), 35);
  }));
}

TEST(on, works_from_inside_a_remote_child_and_back_home_and_on_the_own_loop) {
  in_every_order(beside([](weir::scope&, weir::loop_ref there) -> task<> {
    const weir::loop_ref home = weir::this_loop();
    auto back = [&]() -> task<int> {
      EXPECT_EQ(weir::this_loop(), home);
      co_await weir::sleep(1ms);
      co_return 2;
    };
    auto remote = [&]() -> task<int> { co_return 1 + co_await weir::on(home, back); };
    EXPECT_EQ(co_await weir::on(there, remote), 3);
    EXPECT_EQ(co_await weir::on(home, back), 2);
  }));
}

TEST(on, a_cancellation_travels_through_two_loops) {
  in_every_order(beside([](weir::scope& s, weir::loop_ref there) -> task<> {
    const weir::loop_ref home = weir::this_loop();
    text_log log;
    auto innermost = [&]() -> task<int> { co_return co_await slow_to_stop(log, "inner"); };
    auto remote = [&]() -> task<int> { co_return co_await weir::on(home, innermost); };
    auto caller = s.spawn(weir::on(there, remote));
    co_await weir::sleep(10ms);
    caller.cancel();
    EXPECT_TRUE((co_await weir::settle(caller)).is_cancelled());
    EXPECT_EQ(joined(log), "inner stopped");
  }));
}

TEST(on, of_a_loop_that_crashes_the_caller_hears_loop_gone_and_nothing_gets_out) {
  for_each_seed([](weir::sim::options options) {
    weir::sim::world w(options);
    auto a = w.loop("a");
    w.run([&]() -> task<> {
      bool finished = false;
      auto victim = [&]() -> task<> {
        co_await forever();
        finished = true;
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto caller = s.spawn(weir::settle(weir::on(a, victim)));
        for (unsigned i = 0; i < options.seed % 5; ++i) co_await weir::yield();
        w.crash("a");
        auto end = co_await std::move(caller);
        EXPECT_EQ(code_of(end.error()), errc::loop_gone);
        EXPECT_EQ(code_of(co_await error_of(weir::on(a, forever()))), errc::loop_gone);
      });
      EXPECT_FALSE(finished);
    });
  });
}

TEST(on, the_remote_child_of_a_caller_that_crashes_goes_on_with_the_defaults_of_its_locals) {
  for_each_seed([](weir::sim::options options) {
    weir::sim::world w(options);
    auto a = w.loop("a");
    auto b = w.loop("b");
    int before = -1, after = -1;
    w.run([&]() -> task<> {
      auto child = [&]() -> task<> {
        before = tag_of_caller.get();
        co_await weir::sleep(2s);
        after = tag_of_caller.get();
      };
      auto nested = [&]() -> task<> { co_await weir::all(child, weir::sleep(1s)); };
      auto calls = [&]() -> task<> { co_await weir::on(b, nested); };
      auto caller = [&]() -> task<> { co_await weir::with_local(tag_of_caller, 9, calls); };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(weir::settle(weir::on(a, caller)));
        co_await weir::sleep(1s);
        w.crash("a");
        co_await weir::sleep(1min);
      });
    });
    EXPECT_EQ(before, 9);
    EXPECT_EQ(after, 0);
  });
}

TEST(on, the_remote_child_of_a_caller_that_crashes_ends_by_itself_and_its_answer_is_dropped) {
  for_each_seed([](weir::sim::options options) {
    weir::sim::world w(options);
    auto a = w.loop("a");
    auto b = w.loop("b");
    int alive = 0;
    w.run([&]() -> task<> {
      auto child = [&]() -> task<> {
        ++alive;
        struct leave {
          int& n;
          ~leave() { --n; }
        } guard{alive};
        co_await weir::sleep(1h);
      };
      auto caller = [&]() -> task<> { co_await weir::on(b, child); };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto outer = s.spawn(weir::settle(weir::on(a, caller)));
        co_await weir::sleep(1ms);
        EXPECT_EQ(alive, 1);
        w.crash("a");
        EXPECT_EQ(code_of((co_await std::move(outer)).error()), errc::loop_gone);
        co_await weir::sleep(2h);
        EXPECT_EQ(alive, 0);
      });
    });
  });
}

TEST(on, spawn_on_gives_a_child_of_the_scope_that_runs_over_there) {
  in_every_order(beside([](weir::scope& s, weir::loop_ref there) -> task<> {
    auto where = [&]() -> task<bool> {
      co_await weir::sleep(1ms);
      co_return weir::this_loop() == there;
    };
    auto child = s.spawn_on(there, where);
    EXPECT_TRUE(co_await child);
    auto endless = s.spawn_on(there, forever);
    co_await weir::sleep(1ms);
    endless.cancel();
    EXPECT_TRUE((co_await weir::settle(endless)).is_cancelled());
  }));
}

TEST(on, two_loops_that_wait_for_each_other_are_a_deadlock_with_both_in_the_tree) {
  auto program = beside([](weir::scope&, weir::loop_ref there) -> task<> {
    auto keeps = [keep = weir::resumer<>()](weir::resumer<> r) mutable { keep = std::move(r); };
    co_await weir::on(there, weir::suspend(std::move(keeps)));
  });
  EXPECT_EQ(code_of(thrown_by([&] { in_order(program); })), errc::deadlock);
}

FIBER_TEST(loop_thread, made_on_a_loop_without_a_scope_would_deadlock) {
  EXPECT_EQ(code_of(thrown_by([] { weir::loop_thread t; })), errc::would_deadlock);
  EXPECT_EQ(code_of(thrown_by([] { weir::runtime rt({.threads = 2}); })), errc::would_deadlock);
  co_return;
}

SCOPE_TEST_IN_EVERY_ORDER(loop_thread, destroying_the_handle_changes_nothing) {
  std::optional<weir::loop_thread> t(std::in_place, s);
  const weir::loop_ref there = *t;
  t.reset();
  EXPECT_TRUE(there.alive());
  EXPECT_EQ(co_await weir::on(there, after(1ms, 4)), 4);
}

FIBER_TEST_IN_EVERY_ORDER(loop_thread, of_a_scope_whose_body_ends_at_once_the_loop_ends_too) {
  weir::loop_ref there;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    const weir::loop_thread t(s);
    there = t;
    co_return;
  });
  EXPECT_FALSE(there.alive());
}

FIBER_TEST_IN_EVERY_ORDER(loop_thread, with_loop_thread_gives_the_value_of_its_body_and_its_error) {
  weir::loop_ref there;
  const int got =
      co_await weir::with_loop_thread({.name = "mine"}, [&](weir::loop_thread& t) -> task<int> {
        there = t;
        co_return co_await weir::on(t, ready(6));
      });
  EXPECT_EQ(got, 6);
  EXPECT_FALSE(there.alive());
  auto failing = [] {
    return weir::with_loop_thread(
        [](weir::loop_thread& t) -> task<> { (void)co_await weir::on(t, fails_after(1ms, 8)); });
  };
  EXPECT_EQ(boom_of(co_await attempt(failing)), 8);
}

TEST(runtime, any_is_the_one_with_the_fewest_unfinished_remote_children) {
  in_every_order([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.name = "rt", .threads = 3});
      EXPECT_EQ(rt.size(), 3U);
      std::vector<weir::child<void>> parked;
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(rt.any(), rt.at(i));
        parked.push_back(s.spawn_on(rt.any(), forever));
        co_await weir::sleep(1ms);
      }
      parked[1].cancel();
      (void)co_await weir::settle(parked[1]);
      EXPECT_EQ(rt.any(), rt.at(1));
      EXPECT_EQ(code_of(thrown_by([&] { (void)rt.at(3); })), errc::invalid_argument);
      s.cancel();
    });
  });
  auto none = []() -> task<> {
    return weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 0});
      co_return;
    });
  };
  EXPECT_EQ(code_of(thrown_by([&] { in_order(none); })), errc::invalid_argument);
}
