// SPDX-License-Identifier: MIT
// sim::world: several named loops on one thread and one clock, with messages between them.
#include <memory>
#include <set>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

/// A fiber waits here until so many functions on other loops have arrived.
class gate {
 public:
  explicit gate(int expected) : left_(expected) {}
  void arrive() {
    if (--left_ == 0) waiting_.complete();
  }
  task<> wait() {
    co_await weir::suspend<void>([this](weir::resumer<void> r) {
      if (left_ <= 0) {
        r.complete();
      } else {
        waiting_ = std::move(r);
      }
    });
  }

 private:
  int left_;
  weir::resumer<void> waiting_;
};

/// Waits until everything that the caller has posted to `to` has run there.
task<> drained(weir::loop_ref to) {
  gate done(1);
  to.post([&] { done.arrive(); });
  co_await done.wait();
}

/// Two loops post three messages each to a third one; gives the order of their arrival.
std::string relay(const sim::options& options) {
  std::string log;
  sim::world w(options);
  auto a = w.loop("a"), b = w.loop("b"), c = w.loop("c");
  w.run([&]() -> task<> {
    gate all(6);
    for (char number : {'1', '2', '3'}) {
      for (char name : {'a', 'b'}) {
        auto arrive = [&, name, number] {
          log += name;
          log += number;
          all.arrive();
        };
        (name == 'a' ? a : b).post([&, arrive] { c.post(arrive); });
      }
    }
    co_await all.wait();
  });
  return log;
}

/// What is left of `log` if only the messages of `name` are kept.
std::string only(char name, const std::string& log) {
  std::string kept;
  for (std::size_t i = 0; i + 1 < log.size(); i += 2)
    if (log[i] == name) kept += log[i + 1];
  return kept;
}

}  // namespace

TEST(world, a_loop_is_known_by_its_name) {
  sim::world w({.seed = 1});
  auto a = w.loop("a"), b = w.loop("b");
  EXPECT_EQ(w.loop("a"), a);
  EXPECT_EQ(w.loop(std::string("a")), a);
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(a.alive());
  EXPECT_TRUE(b.alive());
  w.run([&]() -> task<> {
    EXPECT_EQ(w.loop("a"), a);
    EXPECT_FALSE(weir::this_loop() == a);
    co_return;
  });
  EXPECT_EQ(w.loop("a"), a);
}

TEST(world, a_posted_function_runs_on_its_loop) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    auto a = w.loop("a");
    w.run([&]() -> task<> {
      gate done(1);
      weir::loop_ref there, here = weir::this_loop(), back;
      EXPECT_TRUE(a.post([&] {
        there = weir::this_loop();
        here.post([&] {
          back = weir::this_loop();
          done.arrive();
        });
      }));
      co_await done.wait();
      EXPECT_EQ(there, a);
      EXPECT_EQ(back, here);
    });
  });
}

TEST(world, messages_of_one_poster_to_one_loop_stay_in_order) {
  for_each_seed([](sim::options options) {
    std::string log = relay(options);
    EXPECT_EQ(only('a', log), "123") << log;
    EXPECT_EQ(only('b', log), "123") << log;
  });
}

TEST(world, deliveries_of_different_posters_interleave) {
  std::set<std::string> random_orders, pct_orders;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    random_orders.insert(relay({.seed = seed, .strategy = sim::random}));
    pct_orders.insert(relay({.seed = seed, .strategy = sim::pct(3)}));
  }
  EXPECT_GE(random_orders.size(), 10u);  // of 20
  EXPECT_GE(pct_orders.size(), 2u);
}

TEST(world, one_seed_gives_one_order) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    for (auto strategy : {sim::random, sim::pct(3), sim::fifo}) {
      sim::options options{.seed = seed, .strategy = strategy};
      EXPECT_EQ(relay(options), relay(options)) << to_string(strategy) << ", seed " << seed;
    }
  }
  EXPECT_EQ(relay({.seed = 1}), relay({.seed = 2}));  // fifo does not look at the seed
}

TEST(world, which_of_two_loops_is_first_is_a_choice) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    sim::world w({.seed = seed, .strategy = sim::random});
    auto a = w.loop("a"), b = w.loop("b");
    std::string log;
    w.run([&]() -> task<> {
      a.post([&] { log += 'a'; });
      b.post([&] { log += 'b'; });
      co_await drained(a);
      co_await drained(b);
    });
    orders.insert(log);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
}

TEST(world, explore_finds_a_race_between_messages) {
  auto op = [](sim::world& w) -> task<> {
    int value = 0;
    auto store = w.loop("store"), left = w.loop("left"), right = w.loop("right");
    gate done(2);
    auto put = [&](int number) {
      return [&, number] {
        value = number;
        done.arrive();
      };
    };
    left.post([&] { store.post(put(1)); });
    right.post([&] { store.post(put(2)); });
    co_await done.wait();
    if (value != 2) throw boom(value);
  };
  EXPECT_TRUE(sim::explore({.runs = 5, .strategy = sim::fifo}, op).ok());
  for (auto strategy : {sim::random, sim::pct(2), sim::dfs(2)}) {
    SCOPED_TRACE(to_string(strategy));
    auto report = sim::explore({.runs = 1000, .strategy = strategy}, op);
    EXPECT_TRUE(contains(report.message(), "boom 1")) << report;
    auto again = thrown_by([&] { sim::replay(report.trace(), op); });
    EXPECT_EQ(boom_of(again), 1) << what_of(again);
    EXPECT_EQ(report.trace().preemptions(), 1u) << report.trace();
  }
}

TEST(world, every_run_of_explore_has_a_world_of_its_own) {
  int deliveries = 0;
  auto report = sim::explore({.runs = 20, .check_every = 20}, [&](sim::world& w) {
    return [](sim::world& in, int& count) -> task<> {
      auto a = in.loop("a");
      a.post([&] { ++count; });
      co_await drained(a);
      sim::always("main is not a", !(weir::this_loop() == a));
    }(w, deliveries);
  });
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_EQ(deliveries, 21);  // one of the seeds runs twice
}

TEST(world, run_and_replay_hand_the_world_to_the_program_too) {
  auto op = [](sim::world& w) -> task<bool> {
    auto a = w.loop("a");
    co_await drained(a);
    co_return a.alive();
  };
  EXPECT_TRUE(sim::run({.seed = 1, .strategy = sim::random}, op));
  EXPECT_TRUE(sim::replay(1, sim::pct(2), op));
}

TEST(world, a_message_on_its_way_keeps_time_and_verdict_waiting) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    auto a = w.loop("a"), b = w.loop("b");
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      bool woke = false, woke_before = false;
      gate done(1);
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          co_await weir::sleep(1ns);
          woke = true;
        });
        co_await weir::yield();
        auto look = [&] {
          woke_before = woke;
          done.arrive();
        };
        a.post([&] { b.post([&] { a.post(look); }); });
        co_await done.wait();
        EXPECT_EQ(weir::now(), t0);
        co_await s.join();
      });
      EXPECT_FALSE(woke_before);
      EXPECT_EQ(weir::now() - t0, 1ns);
    });
  });
}

TEST(world, several_runs_share_loops_and_time_goes_on) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    auto a = w.loop("a");
    auto sleep_and_look = []() -> task<weir::time_point> {
      co_await weir::sleep(1h);
      co_return weir::now();
    };
    auto first = w.run(sleep_and_look);
    auto second = w.run(sleep_and_look);
    EXPECT_EQ(second - first, 1h);
    EXPECT_EQ(w.loop("a"), a);
    EXPECT_TRUE(a.alive());
    auto wall = w.run([]() -> task<weir::wall_time> { co_return weir::wall_now(); });
    EXPECT_EQ(wall, weir::wall_time(std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)) + 2h);
  });
}

TEST(world, each_run_has_a_main_loop_of_its_own) {
  sim::world w({.seed = 1});
  auto here = []() -> task<weir::loop_ref> { co_return weir::this_loop(); };
  auto first = w.run(here);
  EXPECT_FALSE(first.alive());
  EXPECT_FALSE(first.post([] {}));
  auto second = w.run(here);
  EXPECT_FALSE(first == second);
}

TEST(world, what_was_posted_in_one_run_arrives_in_the_next) {
  sim::world w({.seed = 1});
  auto a = w.loop("a");
  std::string log;
  w.run([&]() -> task<> {
    a.post([&] { log += '1'; });
    co_return;
  });
  a.post([&] { log += '2'; });
  w.run([&]() -> task<> { co_await drained(a); });
  EXPECT_EQ(log, "12");
}

TEST(world, what_was_never_delivered_is_destroyed_with_the_world) {
  auto token = std::make_shared<int>(1);
  bool ran = false;
  {
    sim::world w({.seed = 1});
    w.loop("a").post([&, token] { ran = true; });
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_FALSE(ran);
}

TEST(world, after_its_end_its_loops_are_not_alive) {
  weir::loop_ref a;
  {
    sim::world w({.seed = 1});
    a = w.loop("a");
    EXPECT_TRUE(a.alive());
  }
  EXPECT_FALSE(a.alive());
  EXPECT_FALSE(a.post([] {}));
  EXPECT_EQ(weir::live().loops, 0);
}

TEST(world, a_failing_program_leaves_the_world_usable) {
  sim::world w({.seed = 1});
  auto a = w.loop("a");
  EXPECT_EQ(boom_of(thrown_by([&] { return w.run(fails_after(1s, 3)); })), 3);
  EXPECT_TRUE(a.alive());
  w.run([&]() -> task<> { co_await drained(a); });
  EXPECT_EQ(w.run(after(1s, 4)), 4);
}

TEST(world, a_deadlock_or_livelock_of_one_run_leaves_the_world_usable) {
  auto usable_after = [](auto program, weir::errc verdict) {
    sim::world w({.seed = 1, .max_steps = 1000});
    auto a = w.loop("a");
    EXPECT_EQ(code_of(thrown_by([&] { w.run(program); })), verdict);
    EXPECT_EQ(w.run(after(1s, 4)), 4);
    EXPECT_TRUE(w.loop("a").alive());
    w.run([&]() -> task<> { co_await drained(w.loop("a")); });
    return a.alive();
  };
  auto stuck = []() -> task<> {
    weir::counting_governor closed(0);
    (void)co_await closed.acquire();
  };
  auto busy = []() -> task<> {
    for (;;) co_await weir::yield();
  };
  EXPECT_TRUE(usable_after(stuck, weir::errc::deadlock));
  EXPECT_TRUE(usable_after(busy, weir::errc::livelock));
}

TEST(world, what_destructors_post_in_a_livelock_reaches_no_other_loop) {
  std::string log;
  bool accepted = true;
  {
    sim::world w({.seed = 1, .max_steps = 1000});
    auto a = w.loop("a");
    auto error = thrown_by([&] {
      w.run([&]() -> task<> {
        auto guard = weir::scope_exit([&] { accepted = a.post([&] { log += "FROM THE DEAD"; }); });
        for (;;) co_await weir::yield();
      });
    });
    EXPECT_EQ(code_of(error), weir::errc::livelock) << what_of(error);
  }
  EXPECT_FALSE(accepted);
  EXPECT_EQ(log, "");
}

TEST(world, a_run_inside_its_run_is_refused) {
  sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    auto error = thrown_by([&] { return w.run(ready(1)); });
    EXPECT_EQ(code_of(error), weir::errc::nested_run);
    co_return;
  });
}

TEST(world, a_program_that_destroys_its_own_world_ends_the_process) {
  auto w = std::make_unique<sim::world>();
  auto op = [&]() -> task<> {
    w.reset();
    co_return;
  };
  EXPECT_DEATH(w->run(op), "a sim::world was destroyed by a program that runs in it");
}

TEST(world, between_two_runs_the_dump_names_its_loops) {
  sim::world w;
  (void)w.loop("a");
  (void)w.loop("b");
  w.run([]() -> task<> { co_return; });
  std::ostringstream out;
  weir::dump(out);
  EXPECT_TRUE(contains(out.str(), "loop 'a' is simulated and does not run now")) << out.str();
  EXPECT_TRUE(contains(out.str(), "loop 'b'")) << out.str();
}

TEST(world, its_wall_clock_starts_where_the_options_say) {
  weir::wall_time start = std::chrono::sys_days(std::chrono::year(2038) / 1 / 19);
  sim::world w({.start_time = start});
  auto wall = []() -> task<weir::wall_time> {
    co_await weir::sleep(1ns);
    co_return weir::wall_now();
  };
  EXPECT_EQ(w.run(wall), start + 1ns);
  EXPECT_EQ(sim::run({.start_time = start}, wall), start + 1ns);
}

TEST(world, bad_options_are_invalid_arguments) {
  auto refusal = [](const sim::options& options) {
    return code_of(thrown_by([&] { sim::world w(options); }));
  };
  EXPECT_EQ(refusal({.strategy = sim::pct(0)}), weir::errc::invalid_argument);
  EXPECT_EQ(refusal({.strategy = sim::dfs(1)}), weir::errc::invalid_argument);
  EXPECT_EQ(refusal({.max_steps = 0}), weir::errc::invalid_argument);
  EXPECT_EQ(refusal({}), std::error_code());
}
