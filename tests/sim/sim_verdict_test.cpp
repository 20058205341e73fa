// SPDX-License-Identifier: MIT
// Runs that do not end by themselves: deadlock, reported with the cycle, and livelock, which ends
// the run like a crash.
#include <functional>
#include <optional>
#include <stop_token>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

using handle = weir::future<int>;

task<int> follow(handle& other) {
  co_await weir::sleep(1ms);  // by then everybody knows everybody
  int value = co_await other;
  co_return value;
}

/// A ring of fibers, each of which awaits the next.
task<> ring(std::vector<std::string> names, bool onlooker) {
  std::vector<handle> members(names.size());
  co_await weir::with_scope({.name = "circle"}, [&](weir::scope& s) -> task<> {
    if (onlooker) s.spawn(follow(members[0]), {.name = "onlooker"});
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto child = s.spawn(follow(members[(i + 1) % names.size()]), {.name = names[i]});
      members[i] = child;
    }
    co_await s.join();
  });
}

/// The line of the text in which the cycle is named.
std::string cycle_line(const std::string& text) {
  auto rest = from(text, "cycle");
  return rest.substr(0, rest.find('\n'));
}

/// Notes how it was destroyed: "normal", or the kind of the reason.
class kind_witness {
 public:
  explicit kind_witness(text_log& log) : log_(log) {}
  kind_witness(const kind_witness&) = delete;
  kind_witness& operator=(const kind_witness&) = delete;
  ~kind_witness() {
    const auto* why = weir::unwinding();
    log_.push_back(why == nullptr ? "normal" : std::string(to_string(why->kind)));
  }

 private:
  text_log& log_;
};

task<> spin(text_log& log) {
  kind_witness w(log);
  auto success = weir::scope_success([&] { log.push_back("SUCCESS"); });
  try {
    for (;;) co_await weir::yield();
  } catch (...) {
    log.push_back("CATCH");
    throw;
  }
}

task<> park(text_log& log) {
  kind_witness w(log);
  co_await weir::sleep(1h);
  log.push_back("WOKE");
}

/// One fiber spins, one sleeps, one is a service; all of them and the body have cleanup.
task<> mill(text_log& log) {
  co_await weir::with_scope({.name = "mill"}, [&](weir::scope& s) -> task<> {
    kind_witness w(log);
    s.defer([&] { log.push_back("DEFER"); });
    s.background(park(log), {.name = "service"});
    auto spinner = spin(log) | weir::finally([&] { log.push_back("FINALLY"); });
    s.spawn(std::move(spinner), {.name = "spinner"});
    s.spawn(park(log), {.name = "sleeper"});
    co_await s.join();
  });
}

task<> turns(int n) {
  for (int i = 0; i < n; ++i) co_await weir::yield();
}

task<> closed_gate() {
  weir::counting_governor gate(0, {.name = "gate"});
  (void)co_await gate.acquire();
}

void expect_nothing_left() {
  EXPECT_EQ(weir::live().loops, 0);
  EXPECT_EQ(weir::live().scopes, 0);
  EXPECT_EQ(weir::live().fibers, 0);
  EXPECT_EQ(weir::live().timers, 0);
}

/// Runs `op` and gives how it failed.
template <class F>
std::exception_ptr verdict(const sim::options& options, F op) {
  return thrown_by([&] { sim::run(options, op); });
}

}  // namespace

TEST(deadlock, it_is_a_failure_with_the_tree) {
  for_each_seed([](sim::options options) {
    auto error = verdict(options, [] { return ring({"egg", "hen"}, false); });
    EXPECT_TRUE(holds<sim::failure>(error)) << what_of(error);
    EXPECT_EQ(code_of(error), weir::errc::deadlock);
    for (const char* part : {"circle", "egg", "hen", "future"})
      EXPECT_TRUE(contains(what_of(error), part)) << what_of(error);
    expect_nothing_left();
  });
}

/// Waits for what only the stop callback of its own context completes.
task<> until_stopped(weir::context& context) {
  const std::stop_token token = context.stop_token();
  std::optional<std::stop_callback<std::function<void()>>> callback;
  co_await weir::shield([&]() -> task<> {
    co_await weir::suspend<void>([&](weir::resumer<void> r) {
      callback.emplace(token, [r]() mutable { r.complete(); });
      return [] { return weir::cancel_result::no; };
    });
  });
  co_await weir::checkpoint();
}

TEST(deadlock, there_is_none_while_a_stop_callback_is_due_to_an_expired_deadline) {
  for_each_seed([](sim::options options) {
    auto error = verdict(options, []() -> task<> {
      EXPECT_THROW(co_await weir::with_timeout(1ms, until_stopped), weir::timeout_error);
    });
    EXPECT_FALSE(error) << what_of(error);
  });
}

TEST(deadlock, a_cycle_of_fibers_is_named) {
  std::vector<std::vector<std::string>> rings{{"egg", "hen"}, {"stone", "scissors", "paper"}};
  for (const auto& names : rings) {
    auto error = verdict({.seed = 1}, [&] { return ring(names, false); });
    auto told = from(what_of(error), "cycle");
    for (const std::string& name : names)
      EXPECT_TRUE(contains(told, name)) << name << " is missing in:\n" << what_of(error);
  }
}

TEST(deadlock, a_fiber_that_awaits_itself_is_a_cycle) {
  auto error = verdict({.seed = 1}, [] { return ring({"narcissus"}, false); });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_TRUE(contains(from(what_of(error), "cycle"), "narcissus")) << what_of(error);
}

TEST(deadlock, who_waits_for_a_cycle_is_no_part_of_it) {
  auto error = verdict({.seed = 1}, [] { return ring({"egg", "hen"}, true); });
  auto line = cycle_line(what_of(error));
  EXPECT_NE(line, "") << what_of(error);
  EXPECT_FALSE(contains(line, "onlooker")) << line;
  EXPECT_TRUE(contains(what_of(error), "onlooker")) << what_of(error);
}

TEST(deadlock, without_a_cycle_none_is_named) {
  auto error = verdict({.seed = 1}, closed_gate);
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "gate")) << what_of(error);
  EXPECT_FALSE(contains(what_of(error), "cycle")) << what_of(error);
}

TEST(deadlock, explore_reports_it_with_tree_and_cycle) {
  for (auto strategy : {sim::random, sim::pct(3), sim::dfs(1)}) {
    SCOPED_TRACE(to_string(strategy));
    auto op = [] { return ring({"egg", "hen"}, false); };
    auto report = sim::explore({.runs = 10, .strategy = strategy}, op);
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.runs(), 1);
    EXPECT_TRUE(contains(report.message(), "deadlock")) << report;
    for (const char* part : {"circle", "egg", "hen"})
      EXPECT_TRUE(contains(report.tree(), part)) << report.tree();
    auto told = from(printed(report), "cycle");
    EXPECT_TRUE(contains(told, "egg") && contains(told, "hen")) << report;
    auto again = thrown_by([&] { sim::replay(report.trace(), op); });
    EXPECT_EQ(code_of(again), weir::errc::deadlock) << what_of(again);
  }
}

TEST(deadlock, a_pending_suspend_does_not_prevent_it) {
  for_each_seed([](sim::options options) {
    weir::resumer<int> kept;
    auto error = verdict(options, [&]() -> task<> {
      (void)co_await weir::suspend<int>([&](weir::resumer<int> r) { kept = r; });
    });
    EXPECT_EQ(code_of(error), weir::errc::deadlock);
    EXPECT_TRUE(contains(what_of(error), "suspend")) << what_of(error);
    kept.complete(1);  // too late, and harmless
    expect_nothing_left();
  });
}

TEST(deadlock, a_live_cancel_source_does_not_prevent_it) {
  weir::cancel_source source;
  weir::resumer<int> kept;
  auto wait = [&]() -> task<> {
    (void)co_await weir::suspend<int>([&](weir::resumer<int> r) { kept = r; });
  };
  auto error = verdict({.seed = 1}, [&] { return weir::with_token(source.token(), wait); });
  EXPECT_EQ(code_of(error), weir::errc::deadlock) << what_of(error);
}

TEST(deadlock, a_timer_that_will_fire_is_no_deadlock) {
  for_each_seed([](sim::options options) {
    weir::resumer<int> kept;
    int value = sim::run(options, [&]() -> task<int> {
      co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
        s.spawn([&]() -> task<> {
          co_await weir::sleep(24h * 365);
          kept.complete(4);
        });
        int got = co_await weir::suspend<int>([&](weir::resumer<int> r) { kept = r; });
        co_return got;
      });
    });
    EXPECT_EQ(value, 4);
  });
}

TEST(livelock, it_ends_the_run_at_max_steps_with_the_tree) {
  for (auto strategy : {sim::fifo, sim::random, sim::pct(3)}) {
    SCOPED_TRACE(to_string(strategy));
    text_log log;
    auto error =
        verdict({.seed = 1, .strategy = strategy, .max_steps = 5000}, [&] { return mill(log); });
    EXPECT_TRUE(holds<sim::failure>(error)) << what_of(error);
    EXPECT_EQ(code_of(error), weir::errc::livelock);
    for (const char* part : {"mill", "spinner", "sleeper"})
      EXPECT_TRUE(contains(what_of(error), part)) << what_of(error);
    expect_nothing_left();
  }
}

TEST(livelock, it_ends_like_a_crash_without_defer_finally_or_catch) {
  for (auto strategy : {sim::fifo, sim::random, sim::pct(3)}) {
    SCOPED_TRACE(to_string(strategy));
    text_log log;
    (void)verdict({.seed = 3, .strategy = strategy, .max_steps = 5000}, [&] { return mill(log); });
    EXPECT_EQ(counted(log, "evicted"), 4) << joined(log);
    EXPECT_EQ(log.size(), 4u) << joined(log);
  }
}

TEST(livelock, what_destructors_do_in_it_wakes_nobody) {
  text_log log;
  weir::resumer<int> kept;
  auto op = [&]() -> task<> {
    weir::counting_governor gate(1, {.name = "gate"});
    auto holder = [&]() -> task<> {
      auto permit = co_await gate.acquire();
      auto answer = weir::scope_exit([&] { kept.complete(1); });
      for (;;) co_await weir::yield();
    };
    auto waiter = [&]() -> task<> {
      auto permit = co_await gate.acquire();
      log.push_back("PERMIT");
    };
    auto listener = [&]() -> task<> {
      (void)co_await weir::suspend<int>([&](weir::resumer<int> r) { kept = r; });
      log.push_back("ANSWER");
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(holder);
      s.spawn(waiter);
      s.spawn(listener);
      co_await s.join();
    });
  };
  auto error = verdict({.seed = 1, .max_steps = 1000}, op);
  EXPECT_EQ(code_of(error), weir::errc::livelock) << what_of(error);
  EXPECT_EQ(joined(log), "");
  expect_nothing_left();
}

TEST(livelock, an_assertion_in_a_destructor_does_not_change_the_verdict) {
  auto op = []() -> task<> {
    auto judge = weir::scope_exit([] { sim::always("a peaceful end", false); });
    for (;;) co_await weir::yield();
  };
  auto error = verdict({.seed = 1, .max_steps = 1000}, op);
  EXPECT_EQ(code_of(error), weir::errc::livelock) << what_of(error);
}

TEST(livelock, a_run_may_take_exactly_max_steps) {
  for (auto strategy : {sim::fifo, sim::random, sim::pct(2)}) {
    SCOPED_TRACE(to_string(strategy));
    auto op = [] { return turns(100); };
    auto steps = sim::explore({.runs = 1, .strategy = strategy}, op).steps();
    EXPECT_GE(steps, 100);
    auto enough = verdict({.strategy = strategy, .max_steps = steps}, op);
    EXPECT_EQ(enough, nullptr) << what_of(enough);
    auto too_few = verdict({.strategy = strategy, .max_steps = steps - 1}, op);
    EXPECT_EQ(code_of(too_few), weir::errc::livelock);
  }
}

TEST(livelock, sleeping_for_ever_is_one_too) {
  auto op = []() -> task<> {
    for (;;) co_await weir::sleep(1h);
  };
  auto error = verdict({.seed = 1, .max_steps = 1000}, op);
  EXPECT_EQ(code_of(error), weir::errc::livelock) << what_of(error);
}

TEST(livelock, without_max_steps_a_run_may_take_long) {
  EXPECT_EQ(verdict({.seed = 1}, [] { return turns(200'000); }), nullptr);
}

TEST(livelock, explore_reports_it_and_the_replay_ends_the_same_way) {
  for (auto strategy : {sim::random, sim::pct(2)}) {
    SCOPED_TRACE(to_string(strategy));
    text_log log;
    auto op = [&] { return mill(log); };
    auto report = sim::explore({.runs = 3, .strategy = strategy, .max_steps = 2000}, op);
    EXPECT_FALSE(report.ok());
    EXPECT_TRUE(contains(report.message(), "livelock")) << report.message();
    EXPECT_TRUE(contains(report.tree(), "spinner")) << report.tree();
    auto again = thrown_by([&] { sim::replay(report.trace(), op); });
    EXPECT_EQ(code_of(again), weir::errc::livelock) << what_of(again);
    expect_nothing_left();
  }
}

TEST(livelock, a_step_limit_below_one_is_an_invalid_argument) {
  auto error = verdict({.seed = 1, .max_steps = 0}, [] { return ready(1); });
  EXPECT_EQ(code_of(error), weir::errc::invalid_argument);
}

TEST(leak, futures_and_resumers_that_outlive_the_run_are_none) {
  handle kept;
  weir::resumer<int> answer;
  auto report = sim::explore({.runs = 5}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto child = s.spawn(after(1s, 5));
      kept = child;
      s.spawn([&]() -> task<> {
        co_await weir::sleep(1s);
        answer.complete(1);
      });
      (void)co_await weir::suspend<int>([&](weir::resumer<int> r) { answer = r; });
    });
  });
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_TRUE(kept.done());
}
