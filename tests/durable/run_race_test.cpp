// SPDX-License-Identifier: MIT
// race and any over a journal. The order of the completions in the journal decides, so a replay
// takes the same branch.
#include "durable/support/sources.hpp"

using namespace durable_test;

TEST(durable_race, of_timers_gives_the_first_to_end_not_the_first_in_line) {
  survives(
      [](int) -> task<std::string> {
        const int won = co_await weir::race(tasks(nap(3h, 1), nap(1h, 2), nap(2h, 3)));
        co_await give("after", 0);
        co_return std::to_string(won);
      },
      "2");
}

TEST(durable_race, of_waits_without_fibers_takes_the_same_branch_again) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(1h, "p", 5));
          const auto won = co_await weir::race(weir::sleep(2h), promised("p"));
          co_await give("after", 0);
          const auto again = co_await weir::race(weir::sleep(1h), promised("never"));
          co_await give("after again", 0);
          co_return std::to_string(won.index()) + std::to_string(again.index());
        });
      },
      "10");
}

TEST(durable_race, gives_the_error_of_the_first_to_end) {
  survives(
      [](int) -> task<std::string> {
        const std::string won =
            co_await value_or(weir::race(tasks(nap(2h, 1), fail_after(1h, "first"))), "first");
        co_await give("after", 0);
        co_return won;
      },
      "!first");
}

TEST(durable_race, of_what_has_ended_gives_the_lowest_at_once) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto a = s.spawn(nap(2h, 1));
          auto b = s.spawn(nap(1h, 2));
          (void)co_await a;
          (void)co_await b;
          const int won = co_await weir::race(a, b);
          co_await give("after", 0);
          co_return std::to_string(won);
        });
      },
      "1");
}

TEST(durable_race, of_children_observes_and_the_losers_go_on) {
  // Given futures, combinators only observe.
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto slow = s.spawn(give_after(2h, "slow", 1));
          auto quick = s.spawn(give_after(1h, "quick", 2));
          const int won = co_await weir::race(slow, quick);
          co_await give("won", 0);
          co_return std::to_string(won) + std::to_string(co_await slow);
        });
      },
      "21");
}

TEST(durable_race, of_operations_cancels_and_joins_the_losers_with_their_cleanup) {
  survives(
      [](int) -> task<std::string> {
        auto loser = []() -> task<int> {
          co_return co_await weir::with_scope([](weir::scope& s) -> task<int> {
            s.defer([]() -> task<> {
              co_await weir::sleep(1h);
              (void)co_await give("undo", 0);
            });
            co_await give("do", 0);
            co_return co_await nap(100h, 1);
          });
        };
        const int won = co_await weir::race(tasks(loser(), nap(1h, 2)));
        co_await give("after", 0);
        co_return std::to_string(won);
      },
      "2", at_once);
}

TEST(durable_race, is_won_by_a_journaled_wait_or_by_a_child_whoever_is_first) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          std::string won;
          for (const int d : {1, 3}) {
            const std::string name = "p" + std::to_string(d);
            s.spawn(resolve_after(2h, name, 8));
            auto child = s.spawn(nap(std::chrono::hours(d), 9));
            won += std::to_string(co_await weir::race(promised(name), child));
            co_await give("after " + name, 0);
            (void)co_await child;
          }
          co_return won;
        });
      },
      "98");
}

TEST(durable_race, of_nothing_is_refused) {
  auto handler = [](int) -> task<std::string> {
    const auto error = co_await test_support::attempt([] { return weir::race(tasks()); });
    co_return test_support::code_of(error) == errc::empty_input ? "refused" : "other";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "refused");
}

TEST(durable_race, with_a_step_whose_body_takes_time_records_who_won) {
  // The second life's step could be quicker or slower: what was recorded counts.
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> task<int> {
      note("begun");
      co_await weir::sleep(noted("begun").size() > 1 ? 5h : 1h);
      co_return 1;
    };
    const int won = co_await weir::race(weir::step("body", body), nap(2h, 2));
    co_await give("won " + std::to_string(won), 0);
    co_return std::to_string(won);
  };
  const stage on;
  life_that_dies_in("won 1", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler, 50h), "1"); });
  EXPECT_EQ(times("begun"), 1);
}

TEST(durable_race, repeated_over_ready_sources_is_always_won_by_the_same) {
  // B: won-flag.test
  survives(
      [](int) -> task<std::string> {
        std::string won;
        auto p = weir::promise<int>("p");
        auto q = weir::promise<int>("q");
        (void)co_await p.resolve(1);
        (void)co_await q.resolve(2);
        for (int i = 0; i < 5; ++i) {
          won += std::to_string(co_await weir::race(p.wait(), q.wait()));
          co_await give("round " + std::to_string(i), 0);
        }
        const bool same = won.find_first_not_of(won[0]) == std::string::npos;
        co_return same ? "same" : won;
      },
      "same");
}

TEST(durable_race, with_one_source_twice_wakes_once) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(1h, "p", 5));
          const int a = co_await weir::race(promised("p"), promised("p"));
          auto child = s.spawn(give_after(1h, "child", 6));
          const int b = co_await weir::race(child, child);
          co_await give("after", 0);
          co_return row(a, b);
        });
      },
      "5,6");
}

TEST(durable_race, of_steps_that_begin_in_one_instant_ends) {
  auto handler = [](int) -> task<std::string> {
    const int won = co_await weir::race(tasks(give("a", 1), give("b", 2)));
    const int first = co_await weir::any(tasks(give("c", 3), give("d", 4)));
    co_await give("after", 0);
    co_return row(won, first);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "1,3");
}

TEST(durable_race, cancels_a_step_whose_body_takes_time_and_records_that) {
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> task<int> {
      note("begins");
      auto g = weir::scope_exit([] { note("unwound"); });
      co_return co_await nap(100h, 1);
    };
    auto slow = [&]() -> task<int> { co_return co_await weir::step("slow", body); };
    const int won = co_await weir::race(tasks(slow(), nap(1h, 2)));
    co_await give("after", 0);
    co_return std::to_string(won);
  };
  const stage on;
  life_that_dies_in("after", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler, 50h), "2"); });
  EXPECT_EQ(times("begins"), 1);
  EXPECT_EQ(times("unwound"), 1);
}

TEST(durable_race, run_twice_over_overlapping_sources_sees_both_results) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto a = s.spawn(nap(1h, 1));
          auto b = s.spawn(nap(2h, 2));
          auto c = s.spawn(nap(3h, 3));
          const int first = co_await weir::race(c, a);
          co_await give("between", 0);
          const int second = co_await weir::race(c, b);
          co_return row(first, second);
        });
      },
      "1,2");
}

TEST(durable_race, of_two_that_end_in_one_instant_has_one_winner) {
  // B: scheduler.test, won-flag under simultaneous settles.
  survives(
      [](int) -> task<std::string> {
        int woken = 0;
        auto racer = [&]() -> task<int> {
          const int won = co_await weir::race(tasks(nap(1h, 1), nap(1h, 2)));
          ++woken;
          co_return won;
        };
        const int won = co_await racer();
        co_await give("won " + std::to_string(won), 0);
        co_return row(won, woken);
      },
      "1,1");
}

// ----------------------------------------------------------------------------------------------
// any

TEST(durable_any, gives_the_first_value_and_skips_earlier_errors) {
  survives(
      [](int) -> task<std::string> {
        const int won = co_await weir::any(tasks(nap(3h, 1), fail_after(1h, "early"), nap(2h, 3)));
        co_await give("after", 0);
        co_return std::to_string(won);
      },
      "3");
}

TEST(durable_any, of_errors_only_gives_all_of_them_in_the_order_of_the_inputs) {
  survives(
      [](int) -> task<std::string> {
        auto v = tasks(fail_after(3h, "a"), fail_after(1h, "b"), fail_after(2h, "c"));
        const std::string heard = co_await value_or(weir::any(std::move(v)), "");
        co_await give("after", 0);
        co_return heard;
      },
      "group: a b c");
}

TEST(durable_any, mixes_promises_and_children) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(reject_after(1h, "p", "no"));
          auto child = s.spawn(give_after(2h, "child", 4));
          const int won = co_await weir::any(promised("p"), child);
          co_await give("after", 0);
          co_return std::to_string(won);
        });
      },
      "4");
}

TEST(durable_any, of_nothing_is_refused) {
  auto handler = [](int) -> task<std::string> {
    const auto error = co_await test_support::attempt([] { return weir::any(tasks()); });
    co_return test_support::code_of(error) == errc::empty_input ? "refused" : "other";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "refused");
}
