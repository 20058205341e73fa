// SPDX-License-Identifier: MIT
// always and sometimes: what must hold in every run, and what must hold in at least one.
#include "sim_support.hpp"

using namespace weir_test;

namespace {

/// Asserts something false when it is destroyed, and says that it came past the assertion.
class sore_loser {
 public:
  explicit sore_loser(text_log& log) : log_(log) {}
  sore_loser(const sore_loser&) = delete;
  sore_loser& operator=(const sore_loser&) = delete;
  ~sore_loser() {
    sim::always("never destroyed", false);
    log_.push_back("destroyed");
  }

 private:
  text_log& log_;
};

task<> sore_sleeper(text_log& log) {
  sore_loser local(log);
  co_await weir::sleep(1h);
}

/// Its child asserts something false while it is being cancelled.
task<> cancels_a_sore_sleeper(text_log& log) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(sore_sleeper(log));
    co_await weir::sleep(1ms);
    child.cancel("enough");
    co_await s.join();
  });
}

/// Asserts something false while an exception leaves a block, and catches that exception.
task<> throws_past_a_sore_loser(text_log& log) {
  try {
    sore_loser local(log);
    co_await weir::yield();
    throw boom(1);
  } catch (const boom&) {
    log.push_back("caught");
  }
}

task<> catches_everything() {
  try {
    sim::always("two is three", false);
  } catch (...) {
  }
  co_await weir::yield();
}

std::exception_ptr error_of_run(sim::options options, auto op) {
  return thrown_by([&] { sim::run(options, op); });
}

void expect_violation(const std::exception_ptr& error, std::string_view name) {
  EXPECT_TRUE(holds<sim::failure>(error)) << what_of(error);
  EXPECT_EQ(code_of(error), weir::errc::always_violated);
  EXPECT_TRUE(contains(what_of(error), name)) << what_of(error);
}

}  // namespace

TEST(always, what_holds_changes_nothing) {
  for_each_seed([](sim::options options) {
    auto op = []() -> task<int> {
      sim::always("one is one", true);
      co_await weir::yield();
      co_return 1;
    };
    EXPECT_EQ(sim::run(options, op), 1);
  });
}

TEST(always, a_false_one_ends_the_run_with_its_name_and_the_tree) {
  for_each_seed([](sim::options options) {
    auto op = []() -> task<> {
      co_await weir::with_scope({.name = "yard"}, [](weir::scope& s) -> task<> {
        s.spawn(after(1h, 1), {.name = "horse"});
        co_await weir::sleep(1s);
        sim::always("the gate is shut", false);
      });
    };
    auto error = error_of_run(options, op);
    expect_violation(error, "the gate is shut");
    for (const char* part : {"yard", "horse"})
      EXPECT_TRUE(contains(what_of(error), part)) << what_of(error);
  });
}

TEST(always, it_throws_where_it_stands) {
  text_log log;
  auto error = error_of_run({.seed = 1}, [&]() -> task<> {
    auto thrown = thrown_by([] { sim::always("no", false); });
    log.push_back(thrown != nullptr ? "threw" : "went on");
    expect_violation(thrown, "no");
    co_return;
  });
  EXPECT_EQ(joined(log), "threw");
  expect_violation(error, "no");
}

TEST(always, no_catch_hides_it) {
  for_each_seed([](sim::options options) {
    expect_violation(error_of_run(options, catches_everything), "two is three");
  });
  auto report = sim::explore({.runs = 5}, [] { return catches_everything(); });
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(contains(report.message(), "two is three")) << report;
  EXPECT_TRUE(contains(printed(report), "two is three")) << report;
}

TEST(always, neither_settle_nor_isolate_hides_it) {
  auto settled = []() -> task<> {
    auto child = []() -> task<> {
      sim::always("settled", false);
      co_return;
    };
    auto outcome = co_await weir::settle(child);
    EXPECT_TRUE(outcome.is_error());
  };
  expect_violation(error_of_run({.seed = 1}, settled), "settled");
  auto isolated = []() -> task<> {
    auto child = []() -> task<> {
      sim::always("isolated", false);
      co_return;
    };
    co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
      auto f = s.spawn(child);
      auto error = co_await test_support::attempt([&]() -> weir::future<void>& { return f; });
      EXPECT_TRUE(holds<sim::failure>(error));
    });
  };
  expect_violation(error_of_run({.seed = 1}, isolated), "isolated");
}

TEST(always, a_later_error_of_the_program_does_not_hide_it) {
  auto op = []() -> task<> {
    co_await catches_everything();
    throw boom(1);
  };
  expect_violation(error_of_run({.seed = 1}, op), "two is three");
}

TEST(always, a_replay_names_it_too) {
  auto op = []() -> task<> {
    int left = co_await balance(2);
    try {
      sim::always("no deposit is lost", left == 2);
    } catch (const sim::failure&) {
    }
  };
  auto report = sim::explore({.runs = 1000}, op);
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(contains(report.message(), "no deposit is lost")) << report;
  expect_violation(thrown_by([&] { sim::replay(report.trace(), op); }), "no deposit is lost");
}

TEST(always, its_name_need_not_outlive_the_call) {
  auto op = []() -> task<> {
    for (int i = 0; i < 3; ++i) {
      try {
        sim::always("a name of some length, number " + std::to_string(i), i != 1);
      } catch (const sim::failure&) {
      }
    }
    co_return;
  };
  auto error = error_of_run({.seed = 1}, op);
  expect_violation(error, "a name of some length, number 1");
}

TEST(always, the_first_false_one_is_reported) {
  auto op = []() -> task<> {
    for (const char* name : {"the first", "the second"}) {
      try {
        sim::always(name, false);
      } catch (const sim::failure&) {
      }
    }
    co_return;
  };
  expect_violation(error_of_run({.seed = 1}, op), "the first");
}

TEST(always, a_second_false_one_throws_its_own_name) {
  std::exception_ptr second;
  auto op = [&]() -> task<> {
    (void)thrown_by([] { sim::always("the first", false); });
    second = thrown_by([] { sim::always("the second", false); });
    co_return;
  };
  auto report = sim::explore({.runs = 1}, op);
  expect_violation(second, "the second");
  EXPECT_FALSE(contains(what_of(second), "the first")) << what_of(second);
  EXPECT_TRUE(contains(report.message(), "the first")) << report;
  EXPECT_FALSE(contains(report.message(), "the second")) << report;
}

TEST(always, in_a_destructor_of_a_cancelled_fiber_it_is_recorded_and_does_not_throw) {
  for_each_seed([](sim::options options) {
    text_log log;
    auto error = error_of_run(options, [&] { return cancels_a_sore_sleeper(log); });
    expect_violation(error, "never destroyed");
    EXPECT_EQ(joined(log), "destroyed");
  });
  text_log log;
  auto report = sim::explore({.runs = 3}, [&] { return cancels_a_sore_sleeper(log); });
  EXPECT_TRUE(contains(report.message(), "never destroyed")) << report;
}

TEST(always, in_a_destructor_on_the_way_of_an_exception_it_is_recorded_and_does_not_throw) {
  for_each_seed([](sim::options options) {
    text_log log;
    auto error = error_of_run(options, [&] { return throws_past_a_sore_loser(log); });
    expect_violation(error, "never destroyed");
    EXPECT_EQ(joined(log), "destroyed,caught");
  });
}

TEST(always, on_another_loop_it_is_recorded_too) {
  sim::world w({.seed = 1});
  auto loop = w.loop("a");
  auto error = thrown_by([&] {
    w.run([&]() -> task<> {
      bool ran = false;
      loop.post([&] {
        (void)thrown_by([] { sim::always("over there", false); });
        ran = true;
      });
      while (!ran) co_await weir::sleep(1ms);
    });
  });
  expect_violation(error, "over there");
}

TEST(always, outside_a_simulation_a_false_one_throws) {
  sim::always("fine", true);
  expect_violation(thrown_by([] { sim::always("alone", false); }), "alone");
  expect_violation(thrown_by([] {
                     weir::run([]() -> task<> {
                       co_await weir::yield();
                       sim::always("in production", false);
                     });
                   }),
                   "in production");
  // Nothing records it there: whoever catches it has dealt with it.
  EXPECT_EQ(thrown_by([] { weir::run(catches_everything()); }), nullptr);
}

TEST(sometimes, never_true_over_all_runs_is_a_failure_that_names_it) {
  auto op = []() -> task<> {
    sim::sometimes("it rains", true);
    sim::sometimes("it snows", false);
    sim::sometimes("it hails", false);
    co_return;
  };
  auto report = sim::explore({.runs = 20}, op);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.runs(), 20);
  for (const char* name : {"it snows", "it hails"})
    EXPECT_TRUE(contains(report.message(), name)) << report;
  EXPECT_FALSE(contains(report.message(), "it rains")) << report;
  EXPECT_TRUE(contains(printed(report), "it snows")) << report;
}

TEST(sometimes, once_true_in_one_run_is_enough) {
  auto lucky = number_of(13);
  auto op = [&]() -> task<> {
    sim::sometimes("lucky", weir::random() == lucky);
    sim::sometimes("lucky", false);
    co_return;
  };
  auto enough = sim::explore({.runs = 14}, op);
  EXPECT_TRUE(enough.ok()) << enough;
  auto too_few = sim::explore({.runs = 13}, op);
  EXPECT_FALSE(too_few.ok());
  EXPECT_TRUE(contains(too_few.message(), "lucky")) << too_few;
}

TEST(sometimes, each_exploration_begins_anew) {
  auto op = [](bool condition) {
    return [condition]() -> task<> {
      sim::sometimes("seen", condition);
      co_return;
    };
  };
  EXPECT_TRUE(sim::explore({.runs = 3}, op(true)).ok());
  EXPECT_FALSE(sim::explore({.runs = 3}, op(false)).ok());
  EXPECT_TRUE(sim::explore({.runs = 3}, op(true)).ok());
}

TEST(sometimes, it_finds_an_interleaving_only_if_there_is_one) {
  auto op = []() -> task<> {
    std::string log = co_await conversation(2, 2);
    sim::sometimes("b speaks first", log.front() == 'b');
  };
  EXPECT_TRUE(sim::explore({.runs = 100}, op).ok());
  EXPECT_FALSE(sim::explore({.runs = 100, .strategy = sim::fifo}, op).ok());
}

TEST(sometimes, a_failing_run_comes_first) {
  auto op = []() -> task<> {
    sim::sometimes("never", false);
    throw boom(8);
    co_return;
  };
  auto report = sim::explore({.runs = 5}, op);
  EXPECT_TRUE(contains(report.message(), "boom 8")) << report;
  EXPECT_EQ(report.failures(), 1);
}

TEST(sometimes, in_a_single_run_and_outside_a_simulation_it_does_nothing) {
  auto op = []() -> task<int> {
    sim::sometimes("never", false);
    co_return 1;
  };
  EXPECT_EQ(sim::run({.seed = 1}, op), 1);
  EXPECT_EQ(sim::replay(1, sim::random, op), 1);
  EXPECT_EQ(weir::run(op), 1);
  sim::sometimes("never", false);
}
