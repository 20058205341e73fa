// SPDX-License-Identifier: MIT
// The promise: result and id of an ended run are forgotten `.retention` after its end, never
// earlier; then the id may run again.
#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

durable::engine_options keeping(const stage& on, weir::duration retention) {
  durable::engine_options options = options_for(on);
  options.retention = retention;
  return options;
}

void keeping_session(const stage& on, weir::duration retention, installer setup, user use,
                     weir::duration later = 0ns) {
  sim::run({.seed = 1, .start_time = day0 + later},
           with_open_engine(keeping(on, retention), std::move(setup), std::move(use)));
}

task<int> run_it(durable::engine& e, std::string id, int n, std::string key = {}) {
  auto run = co_await e.start<int>("h", {.id = id, .idempotency = key}, n);
  co_return co_await run.result();
}

task<> expect_unknown(durable::engine& e, std::string id) {
  EXPECT_FALSE(e.get(id).has_value()) << id;
  for (const durable::run_info& info : e.list()) EXPECT_NE(info.id, id);
  EXPECT_FALSE(e.cancel(id));
  EXPECT_FALSE(co_await e.signal(id, "x", 1));
}

task<int> nap_of(int hours) {
  co_await weir::sleep(std::chrono::hours(hours));
  co_return hours;
}

task<int> fails(int n) {
  if (n > 0) throw weir::terminal_error("no " + std::to_string(n));
  co_return n;
}

}  // namespace

TEST(durable_retention, an_ended_run_is_known_until_its_retention_is_over) {
  const stage on;
  keeping_session(on, 1h, as_h(gives_its_input), [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await run_it(e, "r", 1), 1);
    co_await weir::sleep(1h - 1ms);
    EXPECT_EQ(co_await run_it(e, "r", 2), 1);  // attached
    EXPECT_TRUE(e.get("r").has_value());
    co_await weir::sleep(2ms);
    co_await expect_unknown(e, "r");
    EXPECT_EQ(co_await run_it(e, "r", 3), 3);  // another run
    EXPECT_EQ(e.list().size(), 1u);
  });
}

TEST(durable_retention, a_run_is_known_as_long_as_there_is_a_handle_to_it) {
  const stage on;
  keeping_session(on, 1h, as_h(gives_its_input), [](durable::engine& e) -> task<> {
    std::optional run = co_await e.start<int>("h", {.id = "r"}, 1);
    std::optional copy = *run;
    run.reset();
    co_await weir::sleep(2h);
    EXPECT_EQ(co_await copy->result(), 1);
    EXPECT_EQ(co_await run_it(e, "r", 2), 1);  // attached
    copy.reset();
    co_await expect_unknown(e, "r");
    EXPECT_EQ(co_await run_it(e, "r", 3), 3);  // another run
  });
}

TEST(durable_retention, no_result_is_lost_between_a_start_and_the_question_for_it) {
  const stage on;
  keeping_session(on, 0s, as_h(gives_its_input), [](durable::engine& e) -> task<> {
    std::vector<durable::run_handle<int>> runs;
    for (int i = 0; i < 10; ++i) {
      auto run = co_await e.start<int>("h", {}, i);
      runs.push_back(run);
    }
    co_await weir::sleep(1h);
    for (int i = 0; i < 10; ++i) {
      auto question = runs[0].result();
      runs.erase(runs.begin());
      EXPECT_EQ(co_await std::move(question), i);
    }
    EXPECT_TRUE(e.list().empty());
  });
}

TEST(durable_retention, a_handle_keeps_the_next_life_of_its_run_known) {
  const stage on;
  keeping_session(on, 0s, as_h(gives_its_input), [](durable::engine& e) -> task<> {
    std::optional run = co_await e.start<int>("h", {.id = "r"}, 1);
    co_await weir::sleep(1h);
    co_await e.restart("r");
    co_await weir::sleep(1h);
    EXPECT_EQ(co_await run->result(), 1);
    run.reset();
    co_await expect_unknown(e, "r");
  });
}

TEST(durable_retention, counts_over_restarts_from_the_recorded_end) {
  const stage on;
  const auto start = [](durable::engine& e) -> task<> { (void)co_await run_it(e, "r", 1, "k"); };
  keeping_session(on, 1h, as_h(gives_its_input), start);
  auto still = [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await run_it(e, "r", 2), 1);
    EXPECT_EQ(co_await run_it(e, "", 2, "k"), 1);
  };
  keeping_session(on, 1h, as_h(gives_its_input), still, 59min);
  auto over = [](durable::engine& e) -> task<> {
    co_await expect_unknown(e, "r");  // at once, without a turn of the loop in between
    EXPECT_EQ(co_await run_it(e, "s", 4, "k"), 4);
    EXPECT_EQ(co_await run_it(e, "r", 5), 5);
  };
  keeping_session(on, 1h, as_h(gives_its_input), over, 61min);
}

// The clock is earlier than it was, or the option larger: a run whose id was used again stays
// forgotten.
TEST(durable_retention, a_forgotten_run_does_not_come_back) {
  const stage on;
  auto two_of_them = [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await run_it(e, "r", 1), 1);
    EXPECT_EQ(co_await run_it(e, "", 7, "k"), 7);
    co_await weir::sleep(2h);
    EXPECT_EQ(co_await run_it(e, "r", 2), 2);
    EXPECT_EQ(co_await run_it(e, "other", 8, "k"), 8);
  };
  keeping_session(on, 1h, as_h(gives_its_input), two_of_them);
  for (const auto later : {0h, 2h}) {
    keeping_session(
        on, 100h, as_h(gives_its_input),
        [](durable::engine& e) -> task<> {
          EXPECT_EQ(co_await run_it(e, "r", 3), 2);
          EXPECT_EQ(co_await run_it(e, "", 9, "k"), 8);
          EXPECT_EQ(e.list().size(), 2u);
        },
        later);
  }
}

TEST(durable_retention, zero_forgets_as_soon_as_the_end_is_reported) {
  const stage on;
  keeping_session(on, 0s, as_h(gives_its_input), [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await run_it(e, "r", 1), 1);
    co_await weir::sleep(1ms);
    co_await expect_unknown(e, "r");
    EXPECT_EQ(co_await run_it(e, "r", 2), 2);
  });
}

TEST(durable_retention, the_longest_duration_keeps_for_ever) {
  const stage on;
  keeping_session(on, weir::duration::max(), as_h(gives_its_input),
                  [](durable::engine& e) -> task<> {
                    EXPECT_EQ(co_await run_it(e, "r", 1), 1);
                    co_await weir::sleep(24h * 365 * 100);
                    EXPECT_EQ(co_await run_it(e, "r", 2), 1);
                  });
}

TEST(durable_retention, negative_is_refused) {
  const stage on;
  auto body = [&]() -> task<> {
    const auto error = co_await test_support::attempt([&] {
      return durable::with_engine(keeping(on, -1s), [](durable::engine&) -> task<> { co_return; });
    });
    EXPECT_EQ(test_support::code_of(error), errc::invalid_argument);
  };
  sim::run({.seed = 1}, body());
}

TEST(durable_retention, a_wall_clock_that_is_set_back_delays_it) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  auto use = [&](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await run_it(e, "before", 1), 1);
    w.shift_wall_clock(-5h);
    EXPECT_EQ(co_await run_it(e, "after", 2), 2);
    co_await weir::sleep(2h);
    EXPECT_TRUE(e.get("before").has_value());
    EXPECT_FALSE(e.get("after").has_value());  // though it ended later
    co_await weir::sleep(5h);
    EXPECT_FALSE(e.get("before").has_value());
  };
  w.run(with_open_engine(keeping(on, 1h), as_h(gives_its_input), use));
}

TEST(durable_retention, runs_that_failed_or_were_cancelled_keep_their_messages) {
  const stage on;
  auto setup = [](durable::engine& e) {
    e.add("h", fails);
    e.add("asks", asks);
  };
  auto first = [](durable::engine& e) -> task<> {
    (void)co_await test_support::attempt([&] { return run_it(e, "bad", 3); });
    auto run = co_await e.start<std::string>("asks", {.id = "gone"}, 1);
    EXPECT_TRUE(e.cancel("gone", "enough"));
    EXPECT_EQ(co_await ending_of(run), "cancelled");
  };
  auto look = [](durable::engine& e) -> task<> {
    const auto bad = e.get("bad");
    EXPECT_TRUE(bad && bad->state == durable::run_state::failed && bad->message == "no 3");
    const auto gone = e.get("gone");
    EXPECT_TRUE(gone && gone->state == durable::run_state::cancelled);
    EXPECT_EQ(e.list({.state = durable::run_state::failed}).size(), 1u);
    EXPECT_EQ(e.list({.handler = "asks"}).size(), 1u);
    EXPECT_EQ(e.list().size(), 2u);
    const auto error = co_await test_support::attempt([&] { return run_it(e, "bad", 3); });
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), "no 3"));
  };
  keeping_session(on, 24h, setup, first);
  keeping_session(on, 24h, setup, look, 1h);
}

TEST(durable_retention, list_gives_ended_and_other_runs_in_the_order_of_their_starts) {
  const stage on;
  session_of(on, nap_of, [](durable::engine& e) -> task<> {
    for (int i = 0; i < 6; ++i) (void)co_await e.start<int>("h", {.id = std::to_string(i)}, i % 2);
    co_await weir::sleep(1s);
    std::string ids;
    for (const auto& info : e.list()) ids += info.id;
    EXPECT_EQ(ids, "012345");
  });
}

// The caller asks again after a crash or a suspension: its child is not run a second time.
TEST(durable_retention, a_called_run_is_kept_until_its_caller_has_ended) {
  const stage on;
  auto child = [](int n) -> task<int> { return give("child", n); };
  auto calls = [](int n) -> task<int> {
    const int got = co_await weir::call<int>("child", n);
    co_await weir::sleep(1h);
    co_return got + co_await give("after", 1);
  };
  const installer setup = with_child(calls, child);
  life_that_dies_in("after", [&] {
    keeping_session(on, 0s, setup,
                    [](durable::engine& e) -> task<> { EXPECT_EQ(co_await run_it(e, "r", 5), 6); });
  });
  keeping_session(
      on, 0s, setup,
      [](durable::engine& e) -> task<> {
        EXPECT_EQ(co_await run_it(e, "r", 5), 6);
        co_await weir::sleep(1s);
        EXPECT_TRUE(e.list().empty());
      },
      10h);
  EXPECT_EQ(times("child"), 1);
}

TEST(durable_retention, a_called_run_that_ends_while_its_caller_is_suspended_is_not_run_again) {
  const stage on;
  auto child = [](int n) -> task<int> {
    co_await weir::sleep(1h);
    co_return co_await give("child", n);
  };
  auto calls = [](int n) -> task<int> {
    co_return co_await weir::call<int>("child", n, {.id = "c"});
  };
  durable::engine_options options = keeping(on, 0s);
  options.max_live = 1;
  auto use = [](durable::engine& e) -> task<> {
    std::vector<durable::run_handle<int>> runs;
    for (int i = 0; i < 5; ++i)
      runs.push_back(co_await e.start<int>("h", {.id = std::to_string(i)}, 5));
    std::vector<task<int>> results;
    for (auto& run : runs) results.push_back(run.result());
    for (const int value : co_await weir::all(std::move(results))) EXPECT_EQ(value, 5);
  };
  sim::run({.seed = 1, .start_time = day0},
           with_open_engine(options, with_child(calls, child), use));
  EXPECT_EQ(times("child"), 1);
}
