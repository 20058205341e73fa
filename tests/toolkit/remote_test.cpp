// SPDX-License-Identifier: MIT
// What on and pool have in common, in a simulation: how limits, cancellation, force and cleanup
// travel to an operation on another loop, and what comes back.
#include <memory>
#include <optional>
#include <utility>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

/// Runs `body(scope&, remote)` twice: with a loop beside the caller's and with a pool of one.
/// `remote(op)` is the operation that runs `op` there.
template <class F>
void on_a_loop_and_in_a_pool(F body) {
  in_every_order([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const weir::loop_thread t(s, {.name = "there"});
      const weir::loop_ref there = t;
      auto remote = [there](auto op) { return weir::on(there, std::move(op)); };
      co_await body(s, remote);
    });
  });
  in_every_order([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::pool p(s, {.name = "p", .workers = 1});
      auto remote = [&p](auto op) { return p.run(std::move(op)); };
      co_await body(s, remote);
    });
  });
}

task<> shielded(weir::duration d) { co_await weir::shield(weir::sleep(d)); }

task<int> late_value() {
  co_await shielded(60ms);
  co_return 7;
}
task<int> late_error() {
  co_await shielded(60ms);
  throw boom(7);
}

/// How often an event happened on this loop.
auto count_events(std::string_view name, std::string_view object, int& number) {
  return weir::on_event([=, &number](const weir::event_info& e) {
    if (e.name == name && (object.empty() || e.object == object)) ++number;
  });
}

}  // namespace

// ------------------------------------------------------------------ limits

TEST(remote, a_value_that_comes_after_the_limit_is_delivered_and_called_late) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    int late = 0;
    int discarded = 0;
    const auto watch = count_events("late", "with_timeout", late);
    const auto other = count_events("value_discarded", "", discarded);
    const auto start = weir::now();
    EXPECT_EQ(co_await weir::with_timeout(20ms, remote(late_value)), 7);
    EXPECT_EQ(ms_since(start), 60);
    EXPECT_EQ(late, 1);
    EXPECT_EQ(discarded, 0);
  });
}

TEST(remote, an_error_that_comes_after_the_limit_is_thrown_and_the_timeout_suppressed) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    int suppressed = 0;
    const auto watch = count_events("suppressed", "with_timeout", suppressed);
    const auto error = co_await error_of(weir::with_timeout(20ms, remote(late_error)));
    EXPECT_EQ(boom_of(error), 7);
    EXPECT_EQ(suppressed, 1);
  });
}

TEST(remote, an_operation_that_its_limit_ends_is_a_timeout_after_it_was_joined) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    bool unwound = false;
    auto op = [&]() -> task<> {
      const auto guard = weir::scope_exit([&] { unwound = true; });
      co_await forever();
    };
    const auto start = weir::now();
    const auto error = co_await error_of(weir::with_timeout(20ms, remote(op)));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_TRUE(unwound);
    EXPECT_EQ(ms_since(start), 20);
  });
}

TEST(remote, the_deadline_of_a_caller_is_no_error_that_the_caller_could_catch) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    bool caught = false;
    auto call = [&]() -> task<> {
      try {
        co_await remote(forever);
      } catch (...) {
        caught = true;
      }
    };
    EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(weir::with_timeout(20ms, call))));
    EXPECT_FALSE(caught);
  });
}

TEST(remote, the_deadline_around_a_shield_does_not_end_what_runs_inside_it) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    int done = 0;
    auto op = [&]() -> task<> {
      co_await weir::sleep(60ms);
      ++done;
    };
    auto call = [&]() -> task<> { co_await weir::shield(remote(op)); };
    co_await weir::with_timeout(20ms, call);
    EXPECT_EQ(done, 1);
  });
}

// ------------------------------------------------------------------ nothing is silent

TEST(remote, what_arrives_for_a_cancelled_caller_is_an_event) {
  on_a_loop_and_in_a_pool([](weir::scope& s, auto remote) -> task<> {
    int suppressed = 0;
    int discarded = 0;
    auto fails = s.spawn([&]() -> task<> { (void)co_await remote(late_error); });
    co_await weir::sleep(20ms);
    {
      const auto watch = count_events("suppressed", "", suppressed);
      fails.cancel();
      const auto ended_fails = co_await weir::settle(fails);
      EXPECT_TRUE(ended_fails.is_cancelled());
    }
    EXPECT_EQ(suppressed, 1);
    auto gives = s.spawn([&]() -> task<> { (void)co_await remote(late_value); });
    co_await weir::sleep(20ms);
    const auto watch = count_events("value_discarded", "", discarded);
    gives.cancel();
    const auto ended_gives = co_await weir::settle(gives);
    EXPECT_TRUE(ended_gives.is_cancelled());
    EXPECT_EQ(discarded, 1);
  });
}

TEST(remote, an_operation_whose_cleanup_fails_has_failed) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    auto op = [](weir::context& c) -> task<std::unique_ptr<int>> {
      c.defer([] { throw boom(1); });
      c.defer([] { throw boom(2); });
      co_return std::make_unique<int>(3);
    };
    auto end = co_await weir::settle(remote(op));
    EXPECT_TRUE(end.is_error());
    EXPECT_EQ(boom_of(end.error()), 2);
  });
}

TEST(remote, the_failed_cleanup_of_an_operation_that_failed_does_not_replace_its_error) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    auto op = [](weir::context& c) -> task<> {
      c.defer([] { throw boom(1); });
      throw boom(2);
      co_return;
    };
    EXPECT_EQ(boom_of(co_await error_of(remote(op))), 2);
  });
}

FIBER_TEST_IN_EVERY_ORDER(pool, the_failed_cleanup_of_a_submitted_job_is_an_error_of_the_pool) {
  auto body = [](weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([](weir::context& c) -> task<int> {
      c.defer([] { throw boom(1); });
      co_return 2;
    }));
    EXPECT_EQ(boom_of(co_await error_of(p.close())), 1);
  };
  co_await weir::with_pool({.workers = 1}, body);
}

// ------------------------------------------------------------------ shields and grace

TEST(remote, a_shield_with_a_limit_has_it_from_the_moment_at_which_the_cancellation_arrives) {
  on_a_loop_and_in_a_pool([](weir::scope& s, auto remote) -> task<> {
    co_await weir::sleep(1min);  // the clock is far from its beginning
    bool finished = false;
    auto op = [&]() -> task<> {
      co_await weir::shield(10s, weir::sleep(9s));
      finished = true;
    };
    auto caller = s.spawn([&]() -> task<> { co_await remote(op); });
    co_await weir::sleep(20ms);
    caller.cancel();
    const auto ended_caller = co_await weir::settle(caller);
    EXPECT_FALSE(ended_caller.is_error());
    EXPECT_TRUE(finished);
  });
}

FIBER_TEST_IN_EVERY_ORDER(pool, cancel_leaves_shields_with_a_limit_their_time) {
  co_await weir::sleep(1min);
  bool finished = false;
  auto body = [&](weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([&]() -> task<> {
      co_await weir::shield(10s, weir::sleep(9s));
      finished = true;
    }));
    co_await weir::sleep(20ms);
    p.cancel();
    co_await p.close();
    EXPECT_TRUE(finished);
  };
  co_await weir::with_pool({.workers = 1}, body);
}

TEST(remote, what_a_defer_waits_for_elsewhere_ends_with_the_grace) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    auto op = [] { return shielded(1h); };
    const auto start = weir::now();
    auto body = [&](weir::scope& s) -> task<> {
      s.defer([&]() -> task<> { co_await remote(op); });
      co_return;
    };
    const auto error = co_await error_of(weir::with_scope({.grace = 100ms}, body));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_EQ(ms_since(start), 100);
  });
}

TEST(remote, the_end_of_the_grace_reaches_what_was_asked_to_stop_before) {
  on_a_loop_and_in_a_pool([](weir::scope&, auto remote) -> task<> {
    auto op = [] { return shielded(1h); };
    const auto start = weir::now();
    auto body = [&](weir::scope& s) -> task<> {
      s.defer([&]() -> task<> { co_await weir::with_timeout(10ms, remote(op)); });
      co_return;
    };
    EXPECT_NE(co_await error_of(weir::with_scope({.grace = 100ms}, body)), nullptr);
    EXPECT_EQ(ms_since(start), 100);
    auto service = [&](weir::scope& s) -> task<> {
      s.background([&]() -> task<> { co_await remote(op); });
      co_await weir::yield();
      co_await weir::sleep(1ms);
    };
    co_await weir::with_scope({.grace = 100ms}, service);
    EXPECT_EQ(ms_since(start), 201);
  });
}

// ------------------------------------------------------------------ what stays home

TEST(remote, a_wait_for_a_scope_or_group_that_is_carried_to_another_loop_is_refused) {
  on_a_loop_and_in_a_pool([](weir::scope& outer, auto remote) -> task<> {
    auto carry = [&](auto wait) {
      return remote([kept = std::move(wait)]() mutable -> task<> { co_await std::move(kept); });
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(weir::sleep(5ms));
      EXPECT_EQ(code_of(co_await error_of(carry(s.idle()))), errc::wrong_loop);
      EXPECT_EQ(code_of(co_await error_of(carry(s.join()))), errc::wrong_loop);
      co_await s.join();
    });
    co_await weir::with_group([&](weir::group& g) -> task<> {
      g.go(weir::sleep(5ms));
      EXPECT_EQ(code_of(co_await error_of(carry(g.wait()))), errc::wrong_loop);
      co_await g.wait();
    });
    EXPECT_FALSE(outer.cancel_requested());
  });
}
