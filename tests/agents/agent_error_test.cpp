// SPDX-License-Identifier: MIT
// Errors of agents: in calls, casts and constructors, who gets them, and what happens to the rest.
#include "agent_support.hpp"

using namespace weir_test;

namespace {

weir::agent_options crashing_agent(weir::name name) {
  weir::agent_options options;
  options.name = name;
  options.on_error = weir::on_error::crash;
  return options;
}

}  // namespace
SCOPE_TEST_IN_EVERY_ORDER(agent_error, in_a_call_goes_to_the_caller_and_the_agent_lives) {
  auto c = weir::spawn_agent<counter>(s, {.name = "c"}, 4);
  const auto start = weir::now();
  EXPECT_EQ(boom_of(co_await error_of(c.call(&counter::fail, 1))), 1);
  EXPECT_EQ(boom_of(co_await error_of(c.call(&counter::fail_after, 2ms, 2))), 2);
  EXPECT_EQ(ms_since(start), 2);
  EXPECT_EQ(co_await c.call(&counter::get), 4);
  EXPECT_FALSE(s.cancel_requested());
}

FIBER_TEST_IN_EVERY_ORDER(agent_error, in_a_call_also_crashes_an_agent_that_wants_it) {
  int told = -1;
  std::optional<agent_ref<counter>> c;
  auto body = [&](weir::scope& s) -> task<> {
    c = weir::spawn_agent<counter>(s, crashing_agent("c"));
    told = boom_of(co_await weir::shield(error_of(c->call(&counter::fail, 7))));
    co_await weir::sleep(1000h);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 7);
  EXPECT_EQ(told, 7);
  EXPECT_EQ(co_await c->monitor(), ending::crashed);
  EXPECT_EQ(co_await code_of_call(*c, &counter::get), errc::agent_crashed);
}

FIBER_TEST_IN_EVERY_ORDER(agent_error,
                          in_a_cast_fails_the_owner_with_the_same_error_and_cancels_its_body) {
  text_log log;
  auto body = [&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {.name = "a"}, &log, "a");
    a.cast(&scribe::fail, 3);
    a.cast(&scribe::note, 4);
    co_await park(log, "body cancelled");
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 3);
  EXPECT_EQ(counted(log, "+a"), 1);
  EXPECT_EQ(counted(log, "-a"), 1);
  EXPECT_EQ(counted(log, "a4"), 0);
  EXPECT_EQ(counted(log, "body cancelled"), 1);
}

FIBER_TEST_IN_EVERY_ORDER(agent_error, in_a_cast_after_a_wait_is_a_crash_too) {
  const auto start = weir::now();
  auto body = [&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {.name = "c"});
    c.cast(&counter::fail_after, 5ms, 3);
    co_await weir::sleep(1000h);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 3);
  EXPECT_EQ(ms_since(start), 5);
}
TEST(agent_error, is_a_child_failure_of_the_owner_and_follows_its_rules) {
  for (const weir::failure rule : {weir::failure::wait_for_all, weir::failure::isolate}) {
    in_every_order([&]() -> task<> {
      bool finished = false;
      weir::scope_options options;
      options.failure = rule;
      auto body = [&](weir::scope& s) -> task<> {
        auto c = weir::spawn_agent<counter>(s, {.name = "c"});
        auto beside = weir::spawn_agent<counter>(s, {.name = "beside"}, 5);
        c.cast(&counter::fail, 3);
        co_await weir::sleep(5ms);
        const int n = co_await beside.call(&counter::get);
        finished = n == 5;
      };
      EXPECT_EQ(boom_of(co_await error_of_scope(options, body)), 3);
      EXPECT_TRUE(finished);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(agent_error,
                          of_two_agents_that_crash_reaches_the_owner_as_a_group_if_it_wants_all) {
  weir::scope_options options;
  options.failure = weir::failure::wait_for_all;
  options.errors = weir::errors::all;
  auto body = [&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<counter>(s, {.name = "a"});
    auto b = weir::spawn_agent<counter>(s, {.name = "b"});
    a.cast(&counter::fail_after, 1ms, 1);
    b.cast(&counter::fail_after, 2ms, 2);
    co_await weir::sleep(3ms);
  };
  const std::exception_ptr error = co_await error_of_scope(options, body);
  EXPECT_TRUE(holds<weir::error_group>(error));
  try {
    std::rethrow_exception(error);
  } catch (const weir::error_group& group) {
    EXPECT_EQ(booms_of(group.errors()), (std::vector<int>{1, 2}));
  } catch (...) {
  }
}

namespace {

struct unborn {
  explicit unborn(int n) { throw boom(n); }
  int get() const { return 1; }
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(agent_error, of_a_constructor_is_a_crash_and_whoever_asks_hears_of_it) {
  std::optional<agent_ref<unborn>> a;
  std::error_code queued, later;
  weir::scope_options options;
  options.failure = weir::failure::wait_for_all;
  auto body = [&](weir::scope& s) -> task<> {
    a = weir::spawn_agent<unborn>(s, {.name = "unborn"}, 6);
    EXPECT_EQ(a->cast(&unborn::get), sent::enqueued);
    queued = co_await code_of_call(*a, &unborn::get);
    later = co_await code_of_call(*a, &unborn::get);
    EXPECT_EQ(a->cast(&unborn::get), sent::stopped);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(options, body)), 6);
  EXPECT_EQ(queued, errc::agent_crashed);
  EXPECT_EQ(later, errc::agent_crashed);
  EXPECT_EQ(co_await a->monitor(), ending::crashed);
  co_await a->join();
  EXPECT_EQ(a->info().state, agent_state::ended);
  EXPECT_EQ(a->info().handled, 0U);
  EXPECT_EQ(a->info().dropped, 2U);
}

// ------------------------------------------------------------------ after a crash
FIBER_TEST_IN_EVERY_ORDER(agent_error,
                          after_a_crash_casts_are_dropped_and_counted_and_never_throw) {
  std::optional<agent_ref<counter>> c;
  auto body = [&](weir::scope& s) -> task<> {
    c = weir::spawn_agent<counter>(s, {.name = "c"});
    c->cast(&counter::fail, 1);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(c->cast(&counter::inc, 1), sent::enqueued);
    co_await weir::sleep(1000h);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
  EXPECT_EQ(c->info().dropped, 4U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(c->cast(&counter::inc, 1), sent::stopped);
  EXPECT_EQ(c->info().dropped, 7U);
  EXPECT_EQ(c->info().queued, 0U);
  EXPECT_EQ(c->info().state, agent_state::ended);
  EXPECT_EQ(co_await code_of_call(*c, &counter::get), errc::agent_crashed);
  EXPECT_EQ(co_await code_of_send(*c, &counter::inc, 1), errc::agent_crashed);
  co_await c->stop();
  co_await c->join();
}

FIBER_TEST_IN_EVERY_ORDER(agent_error, of_a_crash_names_the_agent) {
  std::optional<agent_ref<counter>> c;
  auto body = [&](weir::scope& s) -> task<> {
    c = weir::spawn_agent<counter>(s, {.name = "till"});
    c->cast(&counter::fail, 1);
    co_await weir::sleep(1000h);
  };
  EXPECT_NE(co_await error_of_scope(body), nullptr);
  const std::exception_ptr error = co_await error_of(c->call(&counter::get));
  EXPECT_TRUE(holds<weir::agent_error>(error));
  EXPECT_TRUE(contains(what_of(error), "till")) << what_of(error);
}

// ------------------------------------------------------------------ errors that look like endings

namespace {

/// Its handlers fail with errors of weir that belong to somebody else.
class unlucky {
 public:
  task<> push_to(weir::queue<int>* q) { co_await q->push(1); }
  task<> ask(agent_ref<counter> other) { (void)co_await other.call(&counter::get); }
  task<> await_a_cancelled_child() {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto child = s.spawn(weir::sleep(1h));
      co_await weir::yield();
      child.cancel();
      co_await child;
    });
  }
  task<> run_out_of_time() { co_await weir::with_timeout(1ms, weir::sleep(1h)); }
};

/// The end of an agent that is told `handler(args...)` by a cast, and the code of its owner.
template <class Handler, class Arg>
task<> expect_crash(std::error_code expected, Handler handler, Arg arg) {
  std::optional<agent_ref<unlucky>> u;
  auto body = [&](weir::scope& s) -> task<> {
    u = weir::spawn_agent<unlucky>(s, {.name = "unlucky"});
    if constexpr (std::is_same_v<Arg, std::nullptr_t>) {
      u->cast(handler);
    } else {
      u->cast(handler, arg);
    }
    co_await weir::sleep(1000h);
  };
  const std::exception_ptr error = co_await error_of_scope(body);
  EXPECT_EQ(code_of(error), expected) << what_of(error);
  EXPECT_EQ(co_await u->monitor(), ending::crashed);
}

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(agent_error, of_something_else_that_ended_is_a_crash_and_no_normal_end) {
  weir::queue<int> closed(1);
  closed.close();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto dead = weir::spawn_agent<counter>(s, {.name = "dead"});
    co_await dead.stop();
    co_await expect_crash(errc::queue_closed, &unlucky::push_to, &closed);
    co_await expect_crash(errc::agent_stopped, &unlucky::ask, dead);
    co_await expect_crash(errc::cancelled, &unlucky::await_a_cancelled_child, nullptr);
    co_await expect_crash(errc::timeout, &unlucky::run_out_of_time, nullptr);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(agent_error,
                          of_a_call_inside_a_handler_passes_through_the_handler_to_its_caller) {
  auto dead = weir::spawn_agent<counter>(s, {.name = "dead"});
  auto u = weir::spawn_agent<unlucky>(s, {.name = "u"});
  co_await dead.stop();
  EXPECT_EQ(co_await code_of_call(u, &unlucky::ask, dead), errc::agent_stopped);
  EXPECT_EQ(co_await code_of_call(u, &unlucky::await_a_cancelled_child), errc::cancelled);
  EXPECT_EQ(co_await code_of_call(u, &unlucky::run_out_of_time), errc::timeout);
  co_await settled();
  EXPECT_EQ(u.info().state, agent_state::idle);
}

TEST(agent_error, of_a_handler_may_be_anything_that_can_be_thrown) {
  struct thrower {
    void fail() { throw 42; }
  };
  in_every_order([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto t = weir::spawn_agent<thrower>(s, {});
      EXPECT_TRUE(holds<int>(co_await error_of(t.call(&thrower::fail))));
    });
    auto body = [&](weir::scope& s) -> task<> {
      auto t = weir::spawn_agent<thrower>(s, {});
      t.cast(&thrower::fail);
      co_await weir::sleep(1000h);
    };
    EXPECT_TRUE(holds<int>(co_await error_of_scope(body)));
  });
}

// ------------------------------------------------------------------ misuse

SCOPE_TEST(agent_error, of_options_that_cannot_be_is_an_invalid_argument) {
  for (const std::int64_t capacity : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{-1000}}) {
    weir::agent_options options;
    options.capacity = capacity;
    const auto code = code_thrown_by([&] { return weir::spawn_agent<counter>(s, options); });
    EXPECT_EQ(code, errc::invalid_argument) << capacity;
  }
  for (const weir::overflow how :
       {weir::overflow::conflate, weir::overflow::disconnect, weir::overflow::fail_emitter}) {
    weir::agent_options options;
    options.capacity = 1;
    options.overflow = how;
    const auto code = code_thrown_by([&] { return weir::spawn_agent<counter>(s, options); });
    EXPECT_EQ(code, errc::invalid_argument) << static_cast<int>(how);
  }
  co_return;
}

FIBER_TEST(agent_error, of_spawning_into_a_closed_scope_is_that_of_any_child) {
  std::error_code code;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.defer([&] { code = code_thrown_by([&] { return weir::spawn_agent<counter>(s, {}); }); });
    co_return;
  });
  EXPECT_EQ(code, errc::scope_closed);
}
