// SPDX-License-Identifier: MIT
// Why something crashed: on_crash, the events `crash` and `restart` with their errors, and what is
// reported when a supervisor gives up (the page's chapter of that name).
#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

struct fragile {
  void crash(int n) { throw boom(n); }
  int get() const { return 7; }
  task<int> slow() {
    co_await weir::sleep(1h);
    co_return 1;
  }
};

struct seen_crash {
  std::string child;
  int number;
  std::uint64_t restarts;
  bool will_restart;
  bool operator==(const seen_crash&) const = default;
};

/// Writes down what on_crash says.
auto write_to(std::vector<seen_crash>& seen) {
  return [&seen](const weir::crash_info& c) {
    seen.push_back({std::string(c.child), boom_of(c.error), c.restarts, c.will_restart});
  };
}

/// Runs the supervisor as a child, and `body` beside it, in one scope; what left the scope.
template <class F>
task<std::exception_ptr> outcome_beside(weir::supervisor& sup, F body) {
  auto out = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(sup.run(), {.name = "sup"});
    co_await body(s);
  }));
  co_return out.is_error() ? out.error() : nullptr;
}

bool is_limit(const std::exception_ptr& e) { return holds<weir::restart_limit_error>(e); }

}  // namespace

// "fn(const crash_info&) with child, error, restarts, will_restart, before the restart"
FIBER_TEST_IN_EVERY_ORDER(supervisor_crash, on_crash_tells_child_error_restarts_and_what_follows) {
  std::vector<seen_crash> seen;
  weir::supervisor sup({.name = "root", .max_restarts = 1});
  auto a = sup.add<fragile>({.name = "a"});
  sup.on_crash(write_to(seen));
  const auto error = co_await outcome_beside(sup, [&](weir::scope&) -> task<> {
    (void)a.cast(&fragile::crash, 1);
    (void)a.cast(&fragile::crash, 2);  // dropped with the first life
    while (seen.empty()) co_await weir::yield();
    EXPECT_EQ(co_await a.call(&fragile::get), 7);
    (void)a.cast(&fragile::crash, 3);
    co_await weir::sleep(1h);
  });
  EXPECT_TRUE(is_limit(error));
  EXPECT_EQ(seen, (std::vector<seen_crash>{{"a", 1, 0, true}, {"a", 3, 1, false}}));
}

// The neighbours: a failing constructor, a task, a temporary child, a child that fails while it is
// being stopped, a nested supervisor that gives up.
FIBER_TEST(supervisor_crash, every_life_that_ends_with_an_error_is_told) {
  std::vector<seen_crash> seen;
  weir::supervisor sup({.name = "root"});
  auto temporary = sup.add<fragile>({.name = "temporary", .restart = restart::temporary});
  auto fails_when_stopped = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.spawn([]() -> task<> {
        auto out = co_await weir::settle(weir::sleep(1h));
        (void)out;
      });
      co_await weir::sleep(1ms);
      throw boom(5);
    });
  };
  sup.add_task({.name = "task", .restart = restart::temporary}, fails_when_stopped);
  weir::supervisor inner({.name = "inner", .max_restarts = 0});
  auto below = inner.add<fragile>({.name = "below"});
  auto ref = sup.add_supervisor({.name = "inner", .restart = restart::transient}, std::move(inner));
  ref.on_crash(write_to(seen));
  bool limit = false;
  sup.on_crash([&](const weir::crash_info& c) {
    if (c.child == "inner") {
      limit = is_limit(c.error) && !c.will_restart;
    } else {
      write_to(seen)(c);
    }
  });
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(sup.run());
    (void)temporary.cast(&fragile::crash, 1);
    co_await temporary.join();
    (void)below.cast(&fragile::crash, 2);
    co_await weir::sleep(1s);
    co_await sup.stop();
  });
  EXPECT_TRUE(limit);
  EXPECT_EQ(seen, (std::vector<seen_crash>{
                      {"temporary", 1, 0, false}, {"below", 2, 0, false}, {"task", 5, 0, false}}));
}

TEST(supervisor_crash, a_failed_start_is_told_and_a_listener_that_throws_is_counted) {
  struct unmade {
    unmade() { throw boom(4); }
  };
  weir::sim::run({.seed = 1}, []() -> task<> {
    std::vector<seen_crash> seen;
    text_log failed;
    auto sub = weir::on_event([&](const weir::event_info& e) {
      if (e.name == "observer_failed") failed.push_back(what_of(e.error));
    });
    weir::supervisor sup({.name = "root"});
    sup.on_crash([](const weir::crash_info&) { throw boom(9); });
    sup.on_crash(write_to(seen));
    (void)sup.add<unmade>({.name = "unmade"});
    auto out = co_await weir::settle(sup.run());
    EXPECT_TRUE(out.is_error() && boom_of(out.error()) == 4);
    EXPECT_EQ(seen, (std::vector<seen_crash>{{"unmade", 4, 0, false}}));
    EXPECT_EQ(failed.size(), 1u);
  });
}

// on_crash runs between two decisions: what it adds is started.
FIBER_TEST_IN_EVERY_ORDER(supervisor_crash, a_listener_may_add_a_child) {
  weir::supervisor sup({.name = "root"});
  auto a = sup.add<fragile>({.name = "a"});
  std::optional<weir::agent_ref<fragile>> spare;
  sup.on_crash([&](const weir::crash_info&) { spare = sup.add<fragile>({.name = "spare"}); });
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(sup.run());
    (void)a.cast(&fragile::crash, 1);
    while (!spare) co_await weir::yield();
    EXPECT_EQ(co_await spare->call(&fragile::get), 7);
    EXPECT_EQ(co_await a.call(&fragile::get), 7);
    co_await sup.stop();
  });
}

// "events crash and restart carry the error (event_info::error), and on_event(all_loops, fn) sees
// them from every loop"
TEST(supervisor_crash, events_carry_the_error_and_all_loops_sees_those_of_other_loops) {
  for_each_order([](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far");
    w.run([&]() -> task<> {
      text_log here, everywhere;
      const auto add_to = [](text_log& log) {
        return [&log](const weir::event_info& e) {
          if (e.name == "crash" || e.name == "restart")
            log.push_back(std::string(e.name) + " " + std::to_string(boom_of(e.error)));
        };
      };
      auto sub = weir::on_event(add_to(here));
      auto all = weir::on_event(weir::all_loops, add_to(everywhere));
      weir::supervisor sup({.name = "root"});
      auto a = sup.add<fragile>({.name = "a", .on = far});
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(sup.run());
        (void)a.cast(&fragile::crash, 3);
        while (here.empty()) co_await weir::yield();
        co_await sup.stop();
      });
      EXPECT_EQ(joined(here), "restart 3");
      EXPECT_EQ(joined(everywhere), "crash 3,restart 3");
    });
  });
}

// ------------------------------------------------------------------ the cause wins
//
// "When a supervisor gives up, its restart_limit_error is what leaves run and its scope: never the
// "has ended" of an agent that it took down"

namespace {

/// Calls until it fails.
task<> client(weir::agent_ref<fragile> whom) {
  for (;;) (void)co_await whom.call(&fragile::get);
}

/// Agents on all loops; each is called by somebody in the scope of run(), one crashes too often.
task<std::exception_ptr> give_up_beside_clients(std::vector<weir::loop_ref> loops,
                                                strategy how = strategy::one_for_one) {
  weir::supervisor sup({.name = "root", .strategy = how, .max_restarts = 0});
  std::vector<weir::agent_ref<fragile>> agents;
  for (std::size_t i = 0; i < loops.size(); ++i)
    agents.push_back(
        sup.add<fragile>({.name = weir::name("a" + std::to_string(i)), .on = loops[i]}));
  co_return co_await outcome_beside(sup, [&](weir::scope& s) -> task<> {
    for (const auto& a : agents) s.spawn(client(a), {.name = "client"});
    for (auto n = weir::random() % 4; n > 0; --n) co_await weir::yield();
    (void)agents[weir::random() % agents.size()].cast(&fragile::crash, 1);
    co_await weir::sleep(1h);
  });
}

}  // namespace

TEST(supervisor_crash, the_cause_leaves_the_scope_when_agents_are_on_other_loops) {
  for (strategy how : all_strategies) {
    for_each_order([how](weir::sim::world& w) {
      const weir::loop_ref far = w.loop("far"), further = w.loop("further");
      w.run([&]() -> task<> {
        std::vector<weir::loop_ref> loops{weir::this_loop(), far, further};
        const auto error = co_await give_up_beside_clients(std::move(loops), how);
        EXPECT_TRUE(is_limit(error)) << what_of(error);
      });
    });
  }
}

// The supervisor itself runs on another loop than its clients, which are in the scope that waits.
TEST(supervisor_crash, the_cause_leaves_the_scope_that_waits_for_a_supervisor_elsewhere) {
  for_each_order([](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far"), further = w.loop("further");
    w.run([&]() -> task<> {
      auto out = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
        std::optional<weir::agent_ref<fragile>> a;  // one thread runs all simulated loops
        auto services = [&]() -> task<> {
          weir::supervisor sup({.name = "root", .max_restarts = 0});
          a = sup.add<fragile>({.name = "a", .on = further});
          (void)sup.add<fragile>({.name = "b"});
          co_await sup.run();
        };
        auto nested = [&](weir::scope&) -> task<> { co_await weir::on(far, services); };
        s.spawn([&]() -> task<> { co_await weir::with_scope(nested); });
        while (!a) co_await weir::yield();
        s.spawn(client(*a));
        (void)a->cast(&fragile::crash, 1);
        co_await weir::sleep(1h);
      }));
      EXPECT_TRUE(out.is_error() && is_limit(out.error()))
          << (out.is_error() ? what_of(out.error()) : "no error");
    });
  });
}

// The neighbours of a scope: a combinator and a group.
TEST(supervisor_crash, the_cause_leaves_a_combinator_and_a_group) {
  for_each_order([](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far");
    w.run([&]() -> task<> {
      for (const bool in_group : {false, true}) {
        weir::supervisor sup({.name = "root", .max_restarts = 0});
        auto a = sup.add<fragile>({.name = "a", .on = far});
        (void)sup.add<fragile>({.name = "b", .on = far});
        (void)a.cast(&fragile::crash, 1);
        auto jobs = [&](weir::group& g) -> task<> {
          g.go(sup.run());
          g.go(client(a));
          co_await g.wait();
        };
        auto both = [&]() -> task<> { (void)co_await weir::all(sup.run(), client(a)); };
        weir::outcome<void> out;
        if (in_group) {
          out = co_await weir::settle(weir::with_group({}, jobs));
        } else {
          out = co_await weir::settle(both);
        }
        EXPECT_TRUE(out.is_error() && is_limit(out.error()))
            << in_group << (out.is_error() ? what_of(out.error()) : "no error");
      }
    });
  });
}

// A nested supervisor gives up, and then the one around it, unless a client has ended the scope
// before: what leaves is the error of one of them.
TEST(supervisor_crash, the_cause_leaves_the_scope_of_nested_supervisors) {
  for_each_order([](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far");
    w.run([&]() -> task<> {
      weir::supervisor sup({.name = "outer", .max_restarts = 0});
      weir::supervisor inner({.name = "inner", .max_restarts = 0});
      auto a = inner.add<fragile>({.name = "a", .on = far});
      auto b = inner.add<fragile>({.name = "b"});
      (void)sup.add_supervisor({.name = "inner"}, std::move(inner));
      const auto error = co_await outcome_beside(sup, [&](weir::scope& s) -> task<> {
        s.spawn(client(a));
        s.spawn(client(b));
        (void)b.cast(&fragile::crash, 1);
        co_await weir::sleep(1h);
      });
      EXPECT_TRUE(is_limit(error)) << what_of(error);
    });
  });
}

// Who is not in the scope of run() gets the refusal, which says why.
FIBER_TEST(supervisor_crash, elsewhere_the_refusal_stays_and_names_the_supervisor) {
  weir::supervisor sup({.name = "root", .max_restarts = 0});
  auto a = sup.add<fragile>({.name = "a"});
  (void)a.cast(&fragile::crash, 1);
  EXPECT_TRUE((co_await weir::settle(sup.run())).is_error());
  auto out = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(client(a));
    co_return;
  }));
  EXPECT_TRUE(out.is_error());
  EXPECT_EQ(code_of(out.error()), errc::agent_stopped);
  EXPECT_TRUE(contains(what_of(out.error()), "supervisor 'root' gave up")) << what_of(out.error());
}

// ".max_restarts = weir::unbounded is allowed"; "its text names the first and the last error"
FIBER_TEST(supervisor_crash, the_text_of_the_limit_names_the_first_and_the_last_error) {
  weir::supervisor sup({.name = "root", .max_restarts = 3});
  int lives = 0;
  sup.add_task({.name = "task"}, [&]() -> task<> {
    ++lives;
    throw std::runtime_error("failure " + std::to_string(lives));
    co_return;
  });
  auto out = co_await weir::settle(sup.run());
  const std::string text = what_of(out.error());
  EXPECT_TRUE(contains(text, "the first: failure 1; the last: failure 4")) << text;
  EXPECT_TRUE(contains(weir::describe(out.error()), "supervisor 'root'"));
}
