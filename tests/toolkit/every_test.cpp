// SPDX-License-Identifier: MIT
// every: when the runs start, and how it ends.
#include "toolkit_support.hpp"

using namespace weir_test;

static_assert(std::is_trivially_destructible_v<weir::every_options>);
static_assert(std::is_aggregate_v<weir::every_options>);

namespace {

/// Logs when it starts, takes as long as it is told and fails at run number `last`.
class metronome {
 public:
  explicit metronome(std::size_t last, std::vector<weir::duration> lengths = {})
      : last_(last), lengths_(std::move(lengths)), start_(weir::now()) {}

  task<> operator()() {
    started.push_back(ms_since(start_));
    EXPECT_EQ(++running_, 1) << "two runs at once";
    const std::size_t i = started.size() - 1;
    if (!lengths_.empty()) co_await weir::sleep(lengths_[i % lengths_.size()]);
    --running_;
    if (started.size() == last_) throw boom(static_cast<int>(last_));
  }

  std::vector<long> started;

 private:
  std::size_t last_;
  std::vector<weir::duration> lengths_;
  weir::time_point start_;
  int running_ = 0;
};

using times = std::vector<long>;

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(
    every, the_first_run_starts_after_one_interval_and_the_next_one_interval_after_each_end) {
  metronome job(4, {25ms, 0ms, 5ms, 1ms});
  auto run = [&] { return job(); };
  const auto error = co_await error_of(weir::every(10ms, run));
  EXPECT_EQ(boom_of(error), 4);
  EXPECT_EQ(job.started, (times{10, 45, 55, 70}));
}

FIBER_TEST_IN_EVERY_ORDER(every, an_error_stops_it_and_is_rethrown_unchanged) {
  std::exception_ptr thrown;
  int runs = 0;
  auto job = [&]() -> task<> {
    if (++runs < 3) co_return;
    thrown = std::make_exception_ptr(boom(3));
    std::rethrow_exception(thrown);
  };
  const auto error = co_await error_of(weir::every(1ms, job));
  EXPECT_TRUE(error == thrown);
  co_await weir::sleep(1s);
  EXPECT_EQ(runs, 3);
}

FIBER_TEST(every, a_callable_that_throws_before_it_makes_a_task_stops_it_too) {
  int runs = 0;
  auto job = [&] {
    if (++runs == 2) throw boom(2);
    return weir::sleep(1ms);
  };
  const auto error = co_await error_of(weir::every(1ms, job));
  EXPECT_EQ(boom_of(error), 2);
}

FIBER_TEST(every, the_interval_is_counted_from_the_await_and_not_from_the_call) {
  metronome job(1);
  auto run = [&] { return job(); };
  auto later = weir::every(10ms, run);
  co_await weir::sleep(1h);
  const auto begun = weir::now();
  (void)co_await error_of(std::move(later));
  EXPECT_EQ(ms_since(begun), 10);
}

// ------------------------------------------------------------------ fixed rate

FIBER_TEST_IN_EVERY_ORDER(every, at_a_fixed_rate_the_starts_do_not_drift) {
  metronome job(6, {3ms, 0ms, 9ms, 10ms, 1ms});
  auto run = [&] { return job(); };
  const auto error = co_await error_of(weir::every(10ms, {.fixed_rate = true}, run));
  EXPECT_EQ(boom_of(error), 6);
  EXPECT_EQ(job.started, (times{10, 20, 30, 40, 50, 60}));
}

FIBER_TEST_IN_EVERY_ORDER(every,
                          at_a_fixed_rate_missed_starts_are_skipped_and_counted_once_per_gap) {
  std::vector<std::uint64_t> missed;
  auto sub = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "every_skipped" && e.object == "every") missed.push_back(e.number);
  });
  // Ends: 35 (misses 20, 30), 45, 60 (on time), 101 (misses 70 to 100), 140 (misses 120, 130).
  metronome job(6, {25ms, 5ms, 10ms, 41ms, 30ms, 1ms});
  auto run = [&] { return job(); };
  const auto error = co_await error_of(weir::every(10ms, {.fixed_rate = true}, run));
  EXPECT_EQ(boom_of(error), 6);
  EXPECT_EQ(job.started, (times{10, 40, 50, 60, 110, 140}));
  EXPECT_EQ(missed, (std::vector<std::uint64_t>{2, 4, 2}));
}

FIBER_TEST(every, at_a_fixed_delay_nothing_is_ever_skipped) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  metronome job(3, {95ms});
  auto run = [&] { return job(); };
  (void)co_await error_of(weir::every(10ms, run));
  EXPECT_EQ(counted(events, "every_skipped"), 0);
}

// On the real clock, because virtual time stands still while a fiber runs.
TEST(every, a_run_that_never_suspends_counts_to_its_end) {
  weir::run([]() -> task<> {
    std::uint64_t missed = 0;
    auto sub = weir::on_event([&](const weir::event_info& e) {
      if (e.name == "every_skipped") missed += e.number;
    });
    int runs = 0;
    auto job = [&]() -> task<> {
      if (++runs == 2) throw boom(2);
      (void)weir::now();  // from here on the loop believes that no time passes
      const auto until = std::chrono::steady_clock::now() + 5ms;
      while (std::chrono::steady_clock::now() < until) {
      }
      co_return;
    };
    (void)co_await error_of(weir::every(1ms, {.fixed_rate = true}, job));
    EXPECT_GE(missed, 3u);
  });
}

// ------------------------------------------------------------------ cancellation

FIBER_TEST_IN_EVERY_ORDER(every, a_cancellation_ends_it_at_once_before_between_and_during_runs) {
  const auto start = weir::now();
  const long timers = live_timers();
  text_log log;
  auto job = [&]() -> task<> {
    end_note run(log, "run");
    co_await weir::sleep(10ms);
  };
  auto periodic = [&] { return weir::every(10ms, job); };
  for (auto limit : {5ms, 15ms, 25ms}) {
    const auto error = co_await error_of(weir::with_timeout(limit, periodic));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
  }
  EXPECT_EQ(ms_since(start), 45);
  EXPECT_EQ(log.size(), 2u);  // none, one that was cut, one that was whole
  EXPECT_EQ(live_timers(), timers);
}

FIBER_TEST_IN_EVERY_ORDER(every, no_run_begins_after_the_cancellation) {
  int runs = 0;
  int runs_at_cancel = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto job = [&]() -> task<> {
      ++runs;
      co_return;
    };
    auto periodic = s.spawn(weir::every(10ms, job));
    co_await weir::sleep(10ms);  // the instant of the first run
    periodic.cancel();
    runs_at_cancel = runs;
    (void)co_await error_of(periodic.take());
  });
  EXPECT_EQ(runs, runs_at_cancel);
}

FIBER_TEST_IN_EVERY_ORDER(every, in_a_cancelled_fiber_nothing_runs) {
  int runs = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn([&]() -> task<> {
      auto job = [&]() -> task<> {
        ++runs;
        co_return;
      };
      co_await weir::shield(weir::sleep(5ms));
      co_await weir::every(1ms, job);
    });
    co_await weir::sleep(1ms);
    child.cancel("enough");
    const auto error = co_await error_of(child.take());
    EXPECT_TRUE(holds<weir::cancelled_error>(error));
  });
  EXPECT_EQ(runs, 0);
}

// ------------------------------------------------------------------ what a run is

FIBER_TEST_IN_EVERY_ORDER(every, values_waits_futures_and_contexts_are_fine) {
  std::size_t number = 0;
  auto with_value = [&]() -> task<int> {
    if (++number == 2) throw boom(1);
    co_return 5;
  };
  const auto first = co_await error_of(weir::every(1ms, with_value));
  EXPECT_EQ(boom_of(first), 1);

  int runs = 0;
  auto with_wait = [&] {
    ++runs;
    return weir::sleep(1ms);
  };
  const auto limit = co_await error_of(weir::with_timeout(10ms, weir::every(1ms, with_wait)));
  EXPECT_TRUE(holds<weir::timeout_error>(limit));
  EXPECT_EQ(runs, 5);

  auto with_context = [](weir::context& c) -> task<> {
    EXPECT_EQ(&c, &weir::this_context());
    throw boom(2);
    co_return;
  };
  const auto last = co_await error_of(weir::every(1ms, with_context));
  EXPECT_EQ(boom_of(last), 2);
}

FIBER_TEST_IN_EVERY_ORDER(every, what_a_run_defers_is_done_before_the_next_run) {
  text_log log;
  int runs = 0;
  auto job = [&](weir::context& c) -> task<> {
    log.push_back("run");
    c.defer([&]() -> task<> {
      co_await weir::sleep(3ms);
      log.push_back("defer");
    });
    if (++runs == 2) throw boom(1);
    co_return;
  };
  const auto start = weir::now();
  (void)co_await error_of(weir::every(10ms, job));
  EXPECT_EQ(joined(log), "run,defer,run,defer");
  EXPECT_EQ(ms_since(start), 26);
}

FIBER_TEST(every, a_failing_defer_of_a_run_stops_it) {
  auto job = [](weir::context& c) -> task<> {
    c.defer([] { throw boom(7); });
    co_return;
  };
  const auto error = co_await error_of(weir::every(1ms, job));
  EXPECT_EQ(boom_of(error), 7);
}

FIBER_TEST(every, a_move_only_callable_is_kept_for_as_long_as_it_runs) {
  int sum = 0;
  task<> periodic = [&] {
    auto job = [&sum, step = std::make_unique<int>(2)]() -> task<> {
      sum += *step;
      co_return;
    };
    return weir::every(1ms, std::move(job));
  }();
  (void)co_await error_of(weir::with_timeout(10ms, std::move(periodic)));
  EXPECT_EQ(sum, 20);
}

FIBER_TEST(every, a_huge_interval_is_as_good_as_never) {
  auto job = []() -> task<> { throw boom(1); };
  for (bool fixed : {false, true}) {
    auto periodic = [&] { return weir::every(std::chrono::hours::max(), {fixed}, job); };
    const auto error = co_await error_of(weir::with_timeout(24h * 365, periodic));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
  }
}

// ------------------------------------------------------------------ misuse

FIBER_TEST(every, an_interval_that_is_not_positive_is_refused_before_an_empty_job) {
  auto job = []() -> task<> { co_return; };
  for (auto interval : {0ms, -5ms}) {
    EXPECT_EQ(code_thrown_by([&] { (void)weir::every(interval, job); }), errc::invalid_argument);
    EXPECT_EQ(code_thrown_by([&] { (void)weir::every(interval, callable{}); }),
              errc::invalid_argument);
  }
  EXPECT_EQ(code_thrown_by([&] { (void)weir::every(5ms, callable{}); }), errc::empty_job);
  EXPECT_EQ(code_thrown_by([&] { (void)weir::every(5ms, function_pointer{nullptr}); }),
            errc::empty_job);
  EXPECT_EQ(code_thrown_by([&] { (void)weir::every(5ms, {.fixed_rate = true}, callable{}); }),
            errc::empty_job);
  co_return;
}
