// SPDX-License-Identifier: MIT
// Composite waits and cancellation: time limits over waits that stop late or not at all, limits of
// one instant, cancellers and start functions that act at once, and arms that cannot be started.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "composite_support.hpp"

using namespace weir_test;
using weir::cancel_result;
using weir::task;

namespace {

/// The words of the timeout_error that `op` ends with.
template <class Op>
task<std::string> timeout_words(Op op) {
  const auto error = co_await error_of(std::move(op));
  EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  co_return what_of(error);
}

constexpr const char* words_of_deadline = "with_deadline";
constexpr const char* words_of_timeout = "time limit of";

weir::time_point in_a_second() { return weir::now() + 1s; }
task<> five_seconds() { co_await weir::sleep(5s); }

using job = std::function<task<int>()>;

}  // namespace

// ------------------------------------------------------------------ time limits

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_timeout_over_a_wait_that_answers_later_is_told_when_that_confirms) {
  held<int> answers;
  event_count discarded("value_discarded");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(2s);
      answers.at(0).complete(1);
      co_await weir::sleep(2s);
      answers.at(1).complete(2);
    });
    const auto t0 = weir::now();
    const auto wait = [&] { return asked_it_says(cancel_result::later, answers); };
    (void)co_await timeout_words(weir::with_timeout(1s, wait()));
    EXPECT_EQ(weir::now() - t0, 2s);
    (void)co_await timeout_words(
        weir::with_timeout(1s, [&]() -> task<int> { co_return co_await wait(); }));
    EXPECT_EQ(weir::now() - t0, 4s);
  });
  EXPECT_EQ(discarded.get(), 2);
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_timeout_over_a_wait_that_answers_no_gives_its_value_as_late) {
  held<int> answers;
  event_count late("late");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(2s);
      answers.at(0).complete(1);
      co_await weir::sleep(2s);
      answers.at(1).complete(2);
    });
    const auto wait = [&] { return asked_it_says(cancel_result::no, answers); };
    int as_wait = co_await weir::with_timeout(1s, wait());
    EXPECT_EQ(as_wait, 1);
    EXPECT_EQ(late.get(), 1);
    int as_task =
        co_await weir::with_timeout(1s, [&]() -> task<int> { co_return co_await wait(); });
    EXPECT_EQ(as_task, 2);
    EXPECT_EQ(late.get(), 2);
  });
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_timeout_over_a_wait_that_answers_no_throws_its_error) {
  held<int> answers;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(2s);
      answers.at(0).fail(std::make_exception_ptr(boom(3)));
    });
    auto error =
        co_await error_of(weir::with_timeout(1s, asked_it_says(cancel_result::no, answers)));
    EXPECT_EQ(boom_of(error), 3);
  });
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          of_limits_over_waits_at_one_instant_the_outer_one_is_reported) {
  auto words = co_await timeout_words(
      weir::with_deadline(in_a_second(), weir::with_timeout(1s, weir::sleep(5s))));
  EXPECT_TRUE(contains(words, words_of_deadline)) << words;
  words = co_await timeout_words(
      weir::with_timeout(1s, weir::with_deadline(in_a_second(), weir::sleep(5s))));
  EXPECT_TRUE(contains(words, words_of_timeout)) << words;
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          of_limits_over_tasks_at_one_instant_the_outer_one_is_reported) {
  auto words = co_await timeout_words(
      weir::with_deadline(in_a_second(), weir::with_timeout(1s, five_seconds())));
  EXPECT_TRUE(contains(words, words_of_deadline)) << words;
  words = co_await timeout_words(
      weir::with_timeout(1s, weir::with_deadline(in_a_second(), five_seconds())));
  EXPECT_TRUE(contains(words, words_of_timeout)) << words;
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          of_a_limit_over_a_task_and_one_over_a_wait_the_outer_one_is_reported) {
  const auto inside = []() -> task<> { co_await weir::with_timeout(1s, weir::sleep(5s)); };
  auto words = co_await timeout_words(weir::with_deadline(in_a_second(), inside));
  EXPECT_TRUE(contains(words, words_of_deadline)) << words;
}

// On the real clock, because virtual time stands still while a fiber runs.
TEST(composite_cancel, a_checkpoint_among_the_arms_that_finds_the_limit_passed_ends_the_whole) {
  weir::run([]() -> task<> {
    auto words = co_await timeout_words(weir::with_timeout(1ms, []() -> task<> {
      const auto busy_until = std::chrono::steady_clock::now() + 3ms;
      while (std::chrono::steady_clock::now() < busy_until) {
      }
      co_await weir::all(weir::sleep(1h), weir::checkpoint());
    }));
    EXPECT_TRUE(contains(words, words_of_timeout)) << words;
    co_await weir::sleep(1ms);
  });
}

// ------------------------------------------------------------------ cancellers that act at once

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_canceller_that_confirms_before_it_answers_later_unwinds_the_fiber) {
  std::optional<weir::resumer<int>> answer;
  text_log log;
  event_count discarded("value_discarded");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn([&](weir::context& c) -> task<> {
      c.defer([&]() -> task<> {
        // A shielded wait after it: the cancellation was used up and must not hit this one.
        auto slept = co_await weir::shield(weir::settle(after(1s, 1)));
        log.push_back(slept.is_value() ? "slept" : "cut short");
      });
      end_note ended(log, "ended");
      (void)co_await asked_it_completes(cancel_result::later, answer, 7);
      log.push_back("NEVER");
    });
    co_await weir::sleep(1s);
    child.cancel("stop");
    co_await s.idle();
    EXPECT_TRUE(child.peek() != nullptr && child.peek()->is_cancelled());
  });
  EXPECT_EQ(joined(log), "ended,slept");
  EXPECT_EQ(discarded.get(), 1);
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_canceller_that_completes_and_answers_no_delivers_its_value) {
  std::optional<weir::resumer<int>> answer;
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn([&]() -> task<> {
      end_note ended(log, "ended");
      int value = co_await asked_it_completes(cancel_result::no, answer, 7);
      log.push_back("got " + std::to_string(value));
      auto slept = co_await weir::shield(weir::settle(after(1s, 1)));
      log.push_back(slept.is_value() ? "slept" : "cut short");
      co_await weir::sleep(1s);
      log.push_back("NEVER");
    });
    co_await weir::sleep(1s);
    child.cancel("stop");
  });
  EXPECT_EQ(joined(log), "got 7,slept,ended");
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_race_whose_canceller_confirms_before_it_answers_later_unwinds) {
  std::optional<weir::resumer<int>> answer;
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn([&]() -> task<> {
      end_note ended(log, "ended");
      co_await weir::race(weir::sleep(1h), asked_it_completes(cancel_result::later, answer, 7));
      log.push_back("NEVER");
    });
    co_await weir::sleep(1s);
    child.cancel("stop");
    co_await s.idle();
    EXPECT_TRUE(child.peek() != nullptr && child.peek()->is_cancelled());
  });
  EXPECT_EQ(joined(log), "ended");
}

// ------------------------------------------------------------------ start functions that cancel

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_suspend_whose_start_cancels_its_own_scope_is_cancelled) {
  held<void> kept;
  text_log log;
  const auto t0 = weir::now();
  auto error = co_await error_of(weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      end_note ended(log, "ended");
      co_await weir::suspend<>([&](weir::resumer<> r) {
        kept.push_back(std::move(r));
        s.cancel("from inside");
      });
      log.push_back("NEVER");
    });
    co_await weir::sleep(1s);
    log.push_back("NEVER");
  }));
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
  EXPECT_EQ(joined(log), "ended");
  EXPECT_EQ(weir::now(), t0);
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          an_arm_whose_start_cancels_the_scope_ends_the_whole_race) {
  held<void> kept;
  text_log log;
  const auto t0 = weir::now();
  const long timers = live_timers();
  auto error = co_await error_of(weir::with_scope([&](weir::scope& s) -> task<> {
    const auto cancelling = [&] {
      return weir::suspend<>([&](weir::resumer<> r) {
        kept.push_back(std::move(r));
        s.cancel("from inside");
      });
    };
    s.spawn([&]() -> task<> {
      end_note ended(log, "first");
      co_await weir::race(cancelling(), weir::sleep(3s));
    });
    s.spawn([&]() -> task<> {
      end_note ended(log, "last");
      co_await weir::race(weir::sleep(3s), cancelling());
    });
    co_await weir::sleep(1s);
  }));
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
  EXPECT_LE(log.size(), 2u);  // whichever came second may never have started
  EXPECT_EQ(weir::now(), t0);
  EXPECT_EQ(live_timers(), timers);
  co_await weir::sleep(10s);
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel,
                          a_start_that_cancels_and_then_answers_no_is_waited_for) {
  held<int> answers;
  text_log log;
  co_await weir::with_scope([&](weir::scope& outer) -> task<> {
    outer.spawn([&]() -> task<> {
      co_await weir::sleep(1s);
      answers.at(0).complete(7);
    });
    auto error = co_await error_of(weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        int value = co_await weir::suspend<int>([&](weir::resumer<int> r) {
          answers.push_back(std::move(r));
          s.cancel("from inside");
          return [] { return cancel_result::no; };
        });
        log.push_back("got " + std::to_string(value));
        co_await weir::yield();
        log.push_back("NEVER");
      });
      co_await weir::sleep(1h);
    }));
    EXPECT_TRUE(holds<weir::cancelled_error>(error));
  });
  EXPECT_EQ(joined(log), "got 7");
}

// ------------------------------------------------------------------ arms that cannot be started

FIBER_TEST_IN_EVERY_ORDER(composite_cancel, an_empty_function_as_a_later_arm_starts_nothing) {
  int started = 0;
  const job full = [&]() -> task<int> {
    ++started;
    co_await weir::sleep(1h);
    co_return 1;
  };
  const auto t0 = weir::now();
  const long fibers = live_fibers();
  auto raced = co_await attempt([&] { return weir::race(full, job()); });
  auto joined_all = co_await attempt([&] { return weir::all(full, full, job()); });
  auto any_of = co_await attempt([&] { return weir::any(full, job(), full); });
  auto in_range = co_await attempt([&] { return weir::all(std::vector<job>{full, job()}); });
  for (const auto& error : {raced, joined_all, any_of, in_range})
    EXPECT_EQ(code_of(error), weir::errc::empty_job) << what_of(error);
  EXPECT_EQ(started, 0);
  EXPECT_EQ(live_fibers(), fibers);
  EXPECT_EQ(weir::now(), t0);
}

FIBER_TEST_IN_EVERY_ORDER(composite_cancel, any_counts_no_failed_arm_as_a_discarded_value) {
  event_count discarded("value_discarded");
  weir::counting_governor closed(1), busy(1);
  closed.close();
  {
    weir::permit ready = co_await weir::any(closed.acquire(), busy.acquire());
  }
  std::optional<weir::permit> kept = co_await busy.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(1s);
      kept.reset();
    });
    const auto t0 = weir::now();
    weir::permit parked = co_await weir::any(closed.acquire(), busy.acquire(), closed.acquire());
    EXPECT_EQ(weir::now() - t0, 1s);
  });
  EXPECT_EQ(static_cast<long>(busy.active()), 0);
  EXPECT_EQ(discarded.get(), 0);
}
