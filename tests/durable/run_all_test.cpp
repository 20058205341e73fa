// SPDX-License-Identifier: MIT
// all, all_settled and settle over a journal.
#include "durable/support/sources.hpp"

using namespace durable_test;

TEST(durable_all, of_steps_and_timers_waits_for_every_one_and_keeps_their_order) {
  survives(
      [](int) -> task<std::string> {
        auto v = tasks(give_after(3h, "c", 1), give_after(1h, "a", 2), give_after(2h, "b", 3));
        const std::vector<int> all = co_await weir::all(std::move(v));
        co_await give("after", 0);
        co_return text(all);
      },
      "1,2,3");
}

TEST(durable_all, of_promises_keeps_their_order_whatever_the_order_of_resolution) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(3h, "x", 1));
          s.spawn(resolve_after(1h, "y", 2));
          s.spawn(resolve_after(2h, "z", 3));
          auto [x, y, z] = co_await weir::all(promised("x"), promised("y"), promised("z"));
          co_await give("after", 0);
          co_return row(x, y, z);
        });
      },
      "1,2,3");
}

TEST(durable_all, gives_the_first_error_and_cancels_the_rest) {
  survives(
      [](int) -> task<std::string> {
        auto v =
            tasks(give_after(3h, "never", 1), fail_after(1h, "first"), fail_after(2h, "second"));
        std::string heard;
        try {
          (void)co_await weir::all(std::move(v));
        } catch (const weir::terminal_error& e) {
          heard = said(e, "first");
        }
        co_await give("after", 0);
        co_return heard;
      },
      "first");
}

TEST(durable_all, is_fail_fast_for_every_mix_of_inputs) {
  // Not as in sdk-gen: a later input's error does not wait for the earlier inputs.
  auto handler = [](int) -> task<std::string> {
    co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
      s.spawn(resolve_after(300h, "slow", 1));
      auto child = s.spawn(weir::settle([]() { return nap(1h, 5); }));
      std::string heard;
      try {
        (void)co_await weir::all(promised("slow"), child, fail_after(20h, "early"));
      } catch (const weir::terminal_error& e) {
        heard = said(e, "early");
      }
      s.cancel();
      co_return heard + " " + std::to_string((weir::wall_now() - day0) / 1h);
    });
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "early 20");
}

TEST(durable_all, of_nothing_is_nothing_and_of_one_is_one) {
  survives(
      [](int) -> task<std::string> {
        const auto none = co_await weir::all(tasks());
        const auto one = co_await weir::all(tasks(give_after(1h, "one", 4)));
        co_return std::to_string(none.size()) + " " + text(one);
      },
      "0 4");
}

TEST(durable_all, of_children_waits_for_every_one_and_keeps_their_order) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto a = s.spawn(give_after(2h, "a", 1));
          auto b = s.spawn(give_after(1h, "b", 2));
          auto c = s.spawn(test_support::ready(3));
          auto [x, y, z] = co_await weir::all(a, b, c);
          co_return row(x, y, z);
        });
      },
      "1,2,3");
}

TEST(durable_all, of_children_gives_the_error_of_one) {
  survives(
      [](int) -> task<std::string> {
        std::string heard;
        try {
          heard = co_await in_scope([](weir::scope& s) -> task<std::string> {
            auto a = s.spawn(give_after(2h, "never", 1));
            auto b = s.spawn(fail_after(1h, "broken"));
            (void)co_await weir::all(a, b);
            co_return "value";
          });
        } catch (const weir::terminal_error& e) {
          heard = said(e, "broken");
        }
        co_await give("after", 0);
        co_return heard;
      },
      "broken");
}

TEST(durable_all, mixes_journaled_waits_and_children_in_either_order_of_settling) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          std::string rows;
          for (const int first : {1, 3}) {
            const std::string name = "p" + std::to_string(first);
            s.spawn(resolve_after(2h, name, 7));
            auto child = s.spawn(nap(std::chrono::hours(first), 8));
            auto [a, b, c] = co_await weir::all(promised(name), child, give(name + " step", 9));
            rows += row(a, b, c) + " ";
          }
          co_return rows;
        });
      },
      "7,8,9 7,8,9 ");
}

TEST(durable_all, takes_the_same_future_twice) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto child = s.spawn(give_after(1h, "child", 6));
          auto [a, b] = co_await weir::all(child, child);
          co_return row(a, b);
        });
      },
      "6,6");
}

// ------------------------------------------------------------------------------------ all_settled

TEST(durable_all_settled, gives_values_and_errors_in_the_order_of_the_inputs) {
  survives(
      [](int) -> task<std::string> {
        auto v = tasks(give_after(3h, "slow", 1), fail_after(2h, "broken"), nap(1h, 3));
        const auto outcomes = co_await weir::all_settled(std::move(v));
        std::string all;
        for (const auto& o : outcomes) all += outcome_text(o, "broken") + " ";
        co_await give("after", 0);
        co_return all;
      },
      "1 !broken 3 ");
}

TEST(durable_all_settled, of_nothing_is_nothing) {
  survives(
      [](int) -> task<std::string> {
        const auto none = co_await weir::all_settled(tasks());
        co_await give("after", 0);
        co_return std::to_string(none.size());
      },
      "0");
}

TEST(durable_all_settled, mixes_promises_children_and_steps) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(reject_after(2h, "p", "no"));
          auto child = s.spawn(nap(1h, 2));
          auto [a, b, c] = co_await weir::all_settled(promised("p"), child, failing_step("pay"));
          co_return outcome_text(a, "no") + " " + outcome_text(b, "") + " " +
              outcome_text(c, "pay failed");
        });
      },
      "!no 2 !pay failed");
}

TEST(durable_settle, makes_an_error_a_value_and_takes_the_same_side_again) {
  survives(
      [](int) -> task<std::string> {
        const auto good = co_await weir::settle(give("good", 1));
        const auto bad = co_await weir::settle(failing_step("bad"));
        co_await give("after", 0);
        co_return outcome_text(good, "") + " " + outcome_text(bad, "bad failed");
      },
      "1 !bad failed");
}
