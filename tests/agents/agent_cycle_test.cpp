// SPDX-License-Identifier: MIT
// Call cycles fail at once and name the agents of the cycle; calls that only look like a cycle are
// answered; what no chain can show is a deadlock with names.
#include <functional>

#include "agent_support.hpp"

using namespace weir_test;

namespace {

using agent_names = text_log;

agent_names chain_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const weir::agent_error& e) {
    return e.chain();
  } catch (...) {
    return {"no agent_error"};
  }
}

/// An agent that knows others and does with them what a test says.
class node {
 public:
  using action = std::function<task<int>(node&)>;

  explicit node(int value = 0) : value_(value) {}
  int value() const { return value_; }
  void link(agent_ref<node> next) { next_.push_back(next); }
  agent_ref<node> next(std::size_t i = 0) const { return next_[i]; }

  /// Calls the next ones, one after the other and each with one step less.
  task<int> go(int steps) {
    if (steps == 0) co_return value_;
    co_return co_await next_[0].call(&node::go, steps - 1);
  }
  task<int> run(action what) { co_return co_await what(*this); }
  void kick(action what) { next_[0].cast(&node::run, std::move(what)); }

 private:
  int value_;
  std::vector<agent_ref<node>> next_;
};

agent_ref<node> make(weir::scope& s, weir::name name, int value = 0) {
  weir::agent_options options;
  options.name = name;
  return weir::spawn_agent<node>(s, options, value);
}

task<> link(agent_ref<node> from, agent_ref<node> to) { co_await from.call(&node::link, to); }

/// The error of an operation must be a call cycle through these, at once.
template <class Op>
task<> expect_cycle(Op op, std::string through) {
  const auto start = weir::now();
  const std::exception_ptr error = co_await error_of(std::move(op));
  EXPECT_EQ(code_of(error), errc::call_cycle) << what_of(error);
  EXPECT_EQ(joined(chain_of(error)), through);
  for (const std::string& name : chain_of(error))
    EXPECT_TRUE(contains(what_of(error), name)) << what_of(error);
  EXPECT_EQ(weir::now(), start);
}

}  // namespace
SCOPE_TEST_IN_EVERY_ORDER(agent_cycle, a_call_to_oneself_fails_at_once_and_the_agent_goes_on) {
  auto a = make(s, "a", 7);
  const node::action ask_myself = [](node&) -> task<int> {
    co_return co_await weir::self<node>().call(&node::value);
  };
  co_await expect_cycle(a.call(&node::run, ask_myself), "a");
  EXPECT_EQ(co_await a.call(&node::value), 7);
}

SCOPE_TEST_IN_EVERY_ORDER(agent_cycle, a_circle_of_two_fails_at_the_second_and_names_both) {
  auto a = make(s, "a", 1);
  auto b = make(s, "b", 2);
  co_await link(a, b);
  co_await link(b, a);
  EXPECT_EQ(co_await a.call(&node::go, 1), 2);
  co_await expect_cycle(a.call(&node::go, 2), "a,b");
  co_await expect_cycle(b.call(&node::go, 2), "b,a");
  EXPECT_EQ(co_await b.call(&node::go, 1), 1);
}

SCOPE_TEST_IN_EVERY_ORDER(agent_cycle, the_chain_is_everybody_who_waits_also_before_the_circle) {
  auto a = make(s, "a");
  auto b = make(s, "b");
  auto c = make(s, "c");
  co_await link(a, b);
  co_await link(b, c);
  co_await link(c, b);
  co_await expect_cycle(a.call(&node::go, 3), "a,b,c");
}

SCOPE_TEST(agent_cycle, a_long_circle_is_found) {
  constexpr int count = 100;
  std::vector<agent_ref<node>> all;
  agent_names through;
  for (int i = 0; i < count; ++i) {
    through.push_back("n" + std::to_string(i));
    all.push_back(make(s, through.back(), i));
  }
  for (std::size_t i = 0; i < count; ++i) co_await link(all[i], all[(i + 1) % count]);
  EXPECT_EQ(co_await all[0].call(&node::go, count - 1), count - 1);
  co_await expect_cycle(all[0].call(&node::go, count), joined(through));
}

SCOPE_TEST_IN_EVERY_ORDER(agent_cycle, the_chain_goes_through_child_fibers) {
  auto a = make(s, "a");
  auto b = make(s, "b");
  co_await link(a, b);
  co_await link(b, a);
  const node::action in_a_grandchild = [](node& n) -> task<int> {
    auto next = n.next();
    auto inner = [&](weir::scope& in) -> task<int> {
      co_return co_await in.spawn(next.call(&node::go, 1));
    };
    auto outer = [&](weir::scope& out) -> task<int> {
      co_return co_await out.spawn(
          [&]() -> task<int> { co_return co_await weir::with_scope(inner); });
    };
    co_return co_await weir::with_scope({.failure = weir::failure::isolate}, outer);
  };
  co_await expect_cycle(a.call(&node::run, in_a_grandchild), "a,b");
  const node::action in_a_region = [](node& n) -> task<int> {
    auto next = n.next();
    auto calls = [&]() -> task<int> { co_return co_await next.call(&node::go, 1); };
    co_return co_await weir::with_timeout(1h, weir::shield(calls));
  };
  co_await expect_cycle(a.call(&node::run, in_a_region), "a,b");
}

SCOPE_TEST_IN_EVERY_ORDER(agent_cycle, the_chain_goes_through_operations_on_other_loops) {
  const weir::loop_thread t(s, {.name = "there"});
  const weir::loop_ref there = t;
  auto a = make(s, "a", 3);
  const node::action from_there = [there](node&) -> task<int> {
    auto me = weir::self<node>();
    auto calls = [&]() -> task<int> { co_return co_await me.call(&node::value); };
    co_return co_await weir::on(there, calls);
  };
  const auto error = co_await error_of(a.call(&node::run, from_there));
  EXPECT_EQ(code_of(error), errc::call_cycle) << what_of(error);
  EXPECT_EQ(joined(chain_of(error)), "a");
  EXPECT_EQ(co_await a.call(&node::value), 3);
}

FIBER_TEST_IN_EVERY_ORDER(agent_cycle, the_chain_goes_across_loops) {
  co_await weir::with_scope([&](weir::scope& outer) -> task<> {
    const weir::loop_thread one(outer, {.name = "one"});
    const weir::loop_thread two(outer, {.name = "two"});
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<node>(s, {.name = "a"}, 1);
      auto b = weir::spawn_agent<node>(s, {.name = "b", .on = one}, 2);
      auto c = weir::spawn_agent<node>(s, {.name = "c", .on = two}, 3);
      co_await link(a, b);
      co_await link(b, c);
      co_await link(c, a);
      EXPECT_EQ(co_await a.call(&node::go, 2), 3);
      co_await expect_cycle(a.call(&node::go, 3), "a,b,c");
      co_await expect_cycle(b.call(&node::go, 3), "b,c,a");
    });
  });
}

// ------------------------------------------------------------------ no cycles

FIBER_TEST_IN_EVERY_ORDER(agent_cycle, a_cast_starts_a_new_chain) {
  int answer = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = make(s, "a", 7);
    auto b = make(s, "b");
    co_await link(a, b);
    co_await link(b, a);
    const node::action ask_back = [&answer](node& n) -> task<int> {
      answer = co_await n.next().call(&node::value);
      co_return 0;
    };
    co_await a.call(&node::kick, ask_back);
    co_await settled();
  });
  EXPECT_EQ(answer, 7);
}

SCOPE_TEST_IN_EVERY_ORDER(agent_cycle,
                          agents_that_were_asked_before_and_have_answered_are_not_in_the_chain) {
  auto a = make(s, "a", 1);
  auto b = make(s, "b", 2);
  auto c = make(s, "c", 3);
  co_await link(a, b);
  co_await link(a, c);
  co_await link(b, c);
  co_await link(c, b);
  const node::action ask_in_turn = [](node& n) -> task<int> {
    const int first = co_await n.next(0).call(&node::go, 1);
    const int second = co_await n.next(1).call(&node::go, 1);
    const auto [x, y] =
        co_await weir::all(n.next(0).call(&node::value), n.next(1).call(&node::value));
    co_return first * 1000 + second * 100 + x * 10 + y;
  };
  EXPECT_EQ(co_await a.call(&node::run, ask_in_turn), 3223);
}

SCOPE_TEST_IN_EVERY_ORDER(agent_cycle, two_ways_to_one_agent_are_no_circle) {
  auto a = make(s, "a");
  auto b = make(s, "b");
  auto c = make(s, "c");
  auto d = make(s, "d", 4);
  co_await link(a, b);
  co_await link(a, c);
  co_await link(b, d);
  co_await link(c, d);
  const node::action both = [](node& n) -> task<int> {
    const auto [x, y] =
        co_await weir::all(n.next(0).call(&node::go, 1), n.next(1).call(&node::go, 1));
    co_return x + y;
  };
  EXPECT_EQ(co_await a.call(&node::run, both), 8);
}

namespace {

/// Starts a fiber that outlives the handler and calls the agent back.
class starter {
 public:
  explicit starter(weir::scope& own) : own_(own) {}
  int value() const { return 5; }
  void start(int* answer, agent_ref<node> through) {
    auto me = weir::self<starter>();
    own_.spawn([me, answer, through]() mutable -> task<> {
      co_await weir::sleep(5ms);
      const node::action back = [me](node&) mutable -> task<int> {
        co_return co_await me.call(&starter::value);
      };
      const int direct = co_await me.call(&starter::value);
      *answer = direct + co_await through.call(&node::run, back);
    });
  }

 private:
  weir::scope& own_;
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(agent_cycle, a_handler_that_has_finished_does_not_make_a_circle) {
  int answer = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto b = make(s, "b");
    auto a = weir::spawn_agent<starter>(s, {.name = "a"});
    co_await a.call(&starter::start, &answer, b);
    co_await weir::sleep(10ms);
    EXPECT_EQ(answer, 10);
  });
}

// ------------------------------------------------------------------ deadlock

namespace {

class partner {
 public:
  void meet(agent_ref<partner> other) { other_ = other; }
  task<> visit() {
    co_await weir::sleep(1ms);
    co_await other_->call(&partner::home);
  }
  void home() {}

 private:
  std::optional<agent_ref<partner>> other_;
};

task<> two_that_visit_each_other() {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<partner>(s, {.name = "romeo"});
    auto b = weir::spawn_agent<partner>(s, {.name = "juliet"});
    co_await a.call(&partner::meet, b);
    co_await b.call(&partner::meet, a);
    a.cast(&partner::visit);
    b.cast(&partner::visit);
    co_await a.join();
  });
}

}  // namespace
TEST(agent_cycle, two_that_call_each_other_from_unrelated_messages_are_a_deadlock_with_names) {
  const auto error =
      thrown_by([] { in_order([]() -> task<> { return two_that_visit_each_other(); }); });
  EXPECT_EQ(code_of(error), errc::deadlock);
  for (const char* name : {"romeo", "juliet"})
    EXPECT_TRUE(contains(what_of(error), name)) << what_of(error);
  const auto real = thrown_by([] { weir::run(two_that_visit_each_other()); });
  EXPECT_EQ(code_of(real), errc::deadlock);
  for (const char* name : {"romeo", "juliet"})
    EXPECT_TRUE(contains(what_of(real), name)) << what_of(real);
}

TEST(agent_cycle, a_wait_for_an_agent_that_nobody_will_ever_wake_is_a_deadlock_with_its_name) {
  const auto error = thrown_by([] {
    in_order([]() -> task<> {
      co_await weir::with_scope([](weir::scope& s) -> task<> {
        auto c = weir::spawn_agent<counter>(s, {.name = "idler"});
        (void)co_await c.monitor();
      });
    });
  });
  EXPECT_EQ(code_of(error), errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "idler")) << what_of(error);
}
