// SPDX-License-Identifier: MIT
// select over a journal.
#include "durable/support/sources.hpp"

using namespace durable_test;

TEST(durable_select, gives_the_index_of_the_first_to_settle) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto a = s.spawn(nap(3h, 1));
          auto b = s.spawn(nap(1h, 2));
          auto c = s.spawn(nap(2h, 3));
          const auto first = co_await weir::select(a, b, c);
          co_await give("first " + std::to_string(first), 0);
          const auto second = co_await weir::select(a, c);
          co_await give("second " + std::to_string(second), 0);
          co_return row(first, second, co_await b);
        });
      },
      "1,1,2");
}

TEST(durable_select, of_settled_ones_gives_the_lowest) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto a = s.spawn(nap(2h, 1));
          auto b = s.spawn(nap(1h, 2));
          (void)co_await a;
          const auto tie = co_await weir::select(a, b);
          co_await give("after", 0);
          co_return std::to_string(tie);
        });
      },
      "0");
}

TEST(durable_select, unwraps_nothing_so_an_error_waits_until_it_is_asked_for) {
  survives(
      [](int) -> task<std::string> {
        auto body = [](weir::scope& s) -> task<std::string> {
          auto good = s.spawn(nap(2h, 1));
          auto bad = s.spawn(fail_after(1h, "broken"));
          const auto first = co_await weir::select(good, bad);
          co_await give("selected " + std::to_string(first), 0);
          std::string heard;
          try {
            (void)co_await bad;
          } catch (const weir::terminal_error& e) {
            heard = said(e, "broken");
          }
          co_return heard + std::to_string(co_await good);
        };
        co_return co_await weir::with_scope({.failure = weir::failure::isolate}, body);
      },
      "broken1");
}

TEST(durable_select, in_a_loop_sees_ticks_until_the_last_branch_fires) {
  // B: select.test, Tokio-style loops.
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto stop = s.spawn(nap(210min, 0));
          std::string seen;
          for (;;) {
            auto tick = s.spawn(nap(1h, 0));
            if (co_await weir::select(stop, tick) == 0) {
              tick.cancel();
              break;
            }
            seen += "t";
            co_await give("tick " + std::to_string(seen.size()), 0);
          }
          co_await give("stopped", 0);
          co_return seen;
        });
      },
      "ttt", at_once);
}

TEST(durable_select, mixes_branches_that_wait_for_journal_and_for_children) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(2h, "p", 4));
          auto journal = s.spawn([]() { return promised("p"); });
          auto routine = s.spawn(give_after(1h, "routine", 5));
          auto slow = s.spawn(nap(3h, 6));
          const auto first = co_await weir::select(journal, routine, slow);
          co_await give("after", 0);
          auto [j, l] = co_await weir::all(journal, slow);
          co_return row(first, j, l);
        });
      },
      "1,4,6");
}

TEST(durable_select, over_children_that_are_combinators_themselves) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto raced = s.spawn([]() { return weir::race(tasks(nap(4h, 1), nap(2h, 2))); });
          auto joined = s.spawn([]() -> task<int> {
            auto [a, b] = co_await weir::all(nap(1h, 3), give("all", 4));
            co_return a + b;
          });
          const auto first = co_await weir::select(raced, joined);
          co_await give("after", 0);
          co_return row(first, co_await joined, co_await raced);
        });
      },
      "1,7,2");
}

TEST(durable_select, over_a_pool_of_children_sees_each_once) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto a = s.spawn(nap(2h, 1));
          auto b = s.spawn(nap(3h, 2));
          auto c = s.spawn(nap(1h, 3));
          std::string order;
          const auto first = co_await weir::select(a, b, c);
          order += std::to_string(first);
          co_await give("first", 0);
          const auto second = co_await weir::select(a, b);
          order += std::to_string(second);
          co_await give("second", 0);
          order += std::to_string(co_await b);
          co_return order;
        });
      },
      "202");
}

TEST(durable_select, inside_children_whose_parent_awaits_them) {
  survives(
      [](int) -> task<std::string> {
        auto chooser = [](std::string name, weir::duration d) -> task<int> {
          co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
            auto timer = s.spawn(nap(2h, 0));
            auto work = s.spawn(give_after(d, name, 1));
            const auto first = co_await weir::select(timer, work);
            timer.cancel();
            work.cancel();
            co_return static_cast<int>(first);
          });
        };
        auto [a, b] = co_await weir::all(chooser("quick", 1h), chooser("slow", 3h));
        co_await give("after", 0);
        co_return row(a, b);
      },
      "1,0");
}

TEST(durable_select, by_several_fibers_on_one_shared_promise) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(90min, "stop", 1));
          auto waits = [&](int hours) -> task<int> {
            const auto won =
                co_await weir::race(weir::sleep(std::chrono::hours(hours)), promised("stop"));
            co_return static_cast<int>(won.index());
          };
          auto [a, b, c] = co_await weir::all(waits(1), waits(2), waits(3));
          co_await give("after", 0);
          co_return row(a, b, c);
        });
      },
      "0,1,1");
}
