// SPDX-License-Identifier: MIT
// Composite waits whose arms refuse or delay their withdrawal: arms that answer `no` or `later`,
// that complete one another, that cancel the whole, or that are refused.
#include <optional>
#include <string>
#include <variant>

#include "composite_support.hpp"

using namespace weir_test;
using weir::cancel_result;
using weir::task;

namespace {

long out(const weir::counting_governor& g) { return static_cast<long>(g.active()); }

struct weight_of {
  long operator()(const weir::permit& p) const { return static_cast<long>(p.weight()); }
  long operator()(weir::unit) const { return 0; }
};

/// Races a sleep of a second against a heavy and a light request, in the order that `arms` gives,
/// while both units are out and one comes back after half a second.
template <class Arms>
task<> race_for_permits(bool light_is_first, Arms arms) {
  weir::counting_governor g(2);
  weir::permit kept = co_await g.acquire();
  weir::permit released = co_await g.acquire();
  const auto t0 = weir::now();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(500ms);
      released.release();
    });
    auto winner = co_await arms(g);
    const long weight = std::visit(weight_of(), winner);
    EXPECT_EQ(weight, light_is_first ? 1 : 0);
    EXPECT_EQ(weir::now() - t0, light_is_first ? 500ms : 1000ms);
    EXPECT_EQ(out(g), 1 + weight);
    EXPECT_EQ(queued(g), 0);
  });
  EXPECT_EQ(out(g), 1);
}

/// Two requests of one governor park: the heavy one in front, and one unit comes back, which only
/// the light one could use.
struct parked_behind_a_heavy_request {
  weir::counting_governor g{2};
  std::optional<weir::permit> kept;
  std::optional<weir::permit> released;

  task<> take_all() {
    kept = co_await g.acquire();
    released = co_await g.acquire();
  }
  auto both() { return weir::race(g.acquire(2), g.acquire(1)); }
};

using parked_permits = parked_behind_a_heavy_request;

/// Cancels a child that waits for `wait(answers)` after a second, and answers another second later.
template <class T, class Wait>
task<> cancel_then_answer(held<T>& answers, T value, Wait wait) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(wait);
    co_await weir::sleep(1s);
    child.cancel("stop");
    co_await weir::sleep(1s);
    EXPECT_FALSE(child.done());
    answers.at(0).complete(std::move(value));
    co_await s.idle();
    EXPECT_TRUE(child.done());
  });
}

}  // namespace

// ------------------------------------------------------------------ arms that say no or later

TEST(composite, a_race_waits_for_losers_that_answer_no_or_later_and_counts_their_values) {
  for (cancel_result how : {cancel_result::no, cancel_result::later}) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        held<int> answers;
        event_count discarded("value_discarded");
        const auto t0 = weir::now();
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          s.spawn([&]() -> task<> {
            co_await weir::sleep(2s);
            answers.at(0).complete(1);
            co_await weir::sleep(1s);
            answers.at(1).complete(2);
          });
          auto winner = co_await weir::race(asked_it_says(how, answers), weir::sleep(1s),
                                            asked_it_says(how, answers));
          EXPECT_EQ(winner.index(), 1u);
          EXPECT_EQ(weir::now() - t0, 3s);
        });
        EXPECT_EQ(discarded.get(), 2);
      });
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          losers_that_complete_while_they_are_asked_do_not_hold_the_winner_back) {
  std::optional<weir::resumer<int>> first, second;
  const auto t0 = weir::now();
  auto winner =
      co_await weir::race(asked_it_completes(cancel_result::no, first, 1),
                          asked_it_completes(cancel_result::later, second, 2), weir::sleep(1s));
  EXPECT_EQ(winner.index(), 2u);
  EXPECT_EQ(weir::now() - t0, 1s);
  co_await weir::sleep(1s);
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          a_cancelled_race_delivers_the_result_of_an_arm_that_answers_no) {
  held<int> answers;
  text_log log;
  co_await cancel_then_answer(answers, 7, [&]() -> task<> {
    end_note ended(log, "ended");
    int value = co_await weir::race(asked_it_says(cancel_result::no, answers), after(1h, 1));
    log.push_back("got " + std::to_string(value));
    co_await weir::sleep(1s);
    log.push_back("NEVER");
  });
  EXPECT_EQ(joined(log), "got 7,ended");
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          a_cancelled_race_of_waits_delivers_the_result_of_an_arm_that_answers_no) {
  held<int> answers;
  text_log log;
  co_await cancel_then_answer(answers, 7, [&]() -> task<> {
    end_note ended(log, "ended");
    auto value = co_await weir::race(asked_it_says(cancel_result::no, answers), weir::sleep(1h));
    log.push_back("got " + std::to_string(std::get<0>(value)));
    co_await weir::sleep(1s);
    log.push_back("NEVER");
  });
  EXPECT_EQ(joined(log), "got 7,ended");
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          a_cancelled_race_whose_arm_answers_later_unwinds_when_that_confirms) {
  held<int> answers;
  text_log log;
  event_count discarded("value_discarded");
  co_await cancel_then_answer(answers, 7, [&]() -> task<> {
    end_note ended(log, "ended");
    co_await weir::race(asked_it_says(cancel_result::later, answers), weir::sleep(1h));
    log.push_back("NEVER");
  });
  EXPECT_EQ(joined(log), "ended");
  EXPECT_EQ(discarded.get(), 1);
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          all_that_is_cancelled_while_one_arm_answers_no_takes_no_permit) {
  weir::counting_governor g(1);
  weir::permit first = co_await g.acquire();
  held<int> answers;
  text_log log;
  co_await cancel_then_answer(answers, 5, [&]() -> task<> {
    end_note ended(log, "ended");
    co_await weir::all(g.acquire(), asked_it_says(cancel_result::no, answers));
    log.push_back("NEVER");
  });
  EXPECT_EQ(joined(log), "ended");
  EXPECT_EQ(out(g), 1);
  EXPECT_EQ(queued(g), 0);
  first.release();
  EXPECT_EQ(out(g), 0);
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          all_that_is_cancelled_while_one_arm_answers_no_gives_its_permit_back) {
  weir::counting_governor g(1);
  held<int> answers;
  co_await cancel_then_answer(answers, 5, [&]() -> task<> {
    co_await weir::all(g.acquire(), asked_it_says(cancel_result::no, answers));
    co_await weir::sleep(1s);
  });
  EXPECT_EQ(out(g), 0);
}

FIBER_TEST_IN_EVERY_ORDER(composite, all_whose_withdrawn_arm_has_no_value_delivers_nothing) {
  held<std::string> unanswered, answers;
  bool went_on = false;
  co_await cancel_then_answer(answers, std::string(60, 'x'), [&]() -> task<> {
    co_await weir::all(asked_it_says(cancel_result::done, unanswered),
                       asked_it_says(cancel_result::no, answers));
    went_on = true;
  });
  EXPECT_FALSE(went_on);
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          any_that_is_cancelled_while_one_arm_answers_no_takes_no_permit) {
  weir::counting_governor g(1);
  weir::permit first = co_await g.acquire();
  held<int> answers;
  co_await cancel_then_answer(answers, 5, [&]() -> task<> {
    auto got = co_await weir::any(g.acquire(), asked_it_says(cancel_result::no, answers));
    EXPECT_EQ(got.index(), 1u);
    co_await weir::sleep(1s);
  });
  EXPECT_EQ(out(g), 1);
  EXPECT_EQ(queued(g), 0);
  first.release();
  EXPECT_EQ(out(g), 0);
}

// ------------------------------------------------------------------ two arms on one governor

FIBER_TEST_IN_EVERY_ORDER(composite,
                          a_race_of_two_requests_to_one_governor_is_exact_in_every_order) {
  using governor = weir::counting_governor;
  const auto nap = [] { return weir::sleep(1s); };
  co_await race_for_permits(
      false, [&](governor& g) { return weir::race(nap(), g.acquire(2), g.acquire(1)); });
  co_await race_for_permits(
      true, [&](governor& g) { return weir::race(nap(), g.acquire(1), g.acquire(2)); });
  co_await race_for_permits(
      false, [&](governor& g) { return weir::race(g.acquire(2), nap(), g.acquire(1)); });
  co_await race_for_permits(
      true, [&](governor& g) { return weir::race(g.acquire(1), nap(), g.acquire(2)); });
  co_await race_for_permits(
      false, [&](governor& g) { return weir::race(g.acquire(2), g.acquire(1), nap()); });
  co_await race_for_permits(
      true, [&](governor& g) { return weir::race(g.acquire(1), g.acquire(2), nap()); });
}

FIBER_TEST_IN_EVERY_ORDER(composite, a_ready_request_behind_one_that_is_not_wins_at_once) {
  weir::counting_governor g(2), h(1);
  weir::permit kept = co_await g.acquire();
  const auto t0 = weir::now();
  {
    weir::permit won = co_await weir::race(g.acquire(2), g.acquire(1), h.acquire(1));
    EXPECT_EQ(static_cast<long>(won.weight()), 1);
    EXPECT_EQ(out(g) + out(h), 2);
  }
  EXPECT_EQ(weir::now(), t0);
  EXPECT_EQ(out(g), 1);
  EXPECT_EQ(out(h), 0);
  EXPECT_EQ(queued(g), 0);
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          requests_that_complete_one_another_are_cancelled_without_losing_a_unit) {
  parked_permits p;
  co_await p.take_all();
  bool went_on = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn([&]() -> task<> {
      weir::permit won = co_await p.both();
      co_await weir::sleep(1h);
      went_on = true;
    });
    co_await weir::sleep(1s);
    p.released->release();
    child.cancel("stop");
    co_await s.idle();
  });
  EXPECT_FALSE(went_on);
  EXPECT_EQ(out(p.g), 1);
  EXPECT_EQ(queued(p.g), 0);
}

FIBER_TEST_IN_EVERY_ORDER(composite,
                          requests_that_complete_one_another_under_a_timeout_lose_no_unit) {
  parked_permits p;
  co_await p.take_all();
  event_count late("late");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(500ms);
      p.released->release();
    });
    const auto t0 = weir::now();
    std::optional<weir::permit> won;
    try {
      won = co_await weir::with_timeout(1s, p.both());
    } catch (const weir::timeout_error&) {
    }
    EXPECT_EQ(weir::now() - t0, 1s);
    EXPECT_EQ(late.get(), won ? 1 : 0);
    EXPECT_EQ(out(p.g), won ? 2 : 1);
    EXPECT_EQ(queued(p.g), 0);
  });
  EXPECT_EQ(out(p.g), 1);
}

SCOPE_TEST_IN_EVERY_ORDER(composite, two_arms_may_wait_for_one_scope_to_be_idle) {
  const auto t0 = weir::now();
  s.spawn(sleep_for(1s));
  co_await weir::race(s.idle(), s.idle());
  EXPECT_EQ(weir::now() - t0, 1s);
  s.spawn(sleep_for(1s));
  co_await weir::all(s.idle(), s.idle(), s.idle());
  EXPECT_EQ(weir::now() - t0, 2s);
  s.spawn(sleep_for(2s));
  co_await weir::race(s.idle(), weir::sleep(1s), s.idle());
  EXPECT_EQ(weir::now() - t0, 3s);
  co_await weir::race(s.idle(), s.idle());
  EXPECT_EQ(weir::now() - t0, 4s);
}
