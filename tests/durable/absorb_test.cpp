// SPDX-License-Identifier: MIT
// absorb: the cancellation of a run as a value.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

std::string kind(const weir::outcome<int>& o) {
  if (o.is_value()) return "value";
  return o.is_cancelled() ? "absorbed" : "error";
}

/// Cancels run "r" once for each name, when it is in the ledger, an hour later; gives the ending.
user cancel_at(lines names, std::string& end) {
  return [names, &end](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    for (const std::string& name : names) {
      co_await until_noted(name);
      co_await weir::sleep(1h);
      run.cancel();
    }
    end = co_await ending_of(run);
  };
}

template <class H>
std::string ending_cancelled_at(const stage& on, H handler, lines names,
                                weir::duration later = 0ns) {
  std::string end;
  session_of(on, handler, cancel_at(std::move(names), end), later);
  return end;
}

}  // namespace

TEST(durable_absorb, makes_the_cancellation_a_value_and_the_run_goes_on_uncancelled) {
  auto handler = [](int) -> task<std::string> {
    co_await give("ready", 0);
    const auto o = co_await weir::absorb(nap(1000h, 1));
    co_await weir::sleep(1h);
    co_await give("goes on", 0);
    co_return kind(o);
  };
  {
    const stage on;
    EXPECT_EQ(ending_cancelled_at(on, handler, {"ready"}), "absorbed");
    EXPECT_EQ(times("goes on"), 1);
  }
  // And in the next life as well: it was journaled.
  const stage on;
  life_that_dies_in("goes on", [&] { (void)ending_cancelled_at(on, handler, {"ready"}); });
  whole_life([&] {
    session_of(on, handler, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await run.result(), "absorbed");
      EXPECT_EQ(e.get("r")->state, durable::run_state::completed);
    });
  });
  EXPECT_EQ(times("goes on"), 2);
}

TEST(durable_absorb, gives_values_and_errors_as_they_are) {
  survives(
      [](int) -> task<std::string> {
        const auto good = co_await weir::absorb(give("good", 1));
        const auto bad = co_await weir::absorb(failing_step("bad"));
        co_await give("after", 0);
        co_return kind(good) + " " + kind(bad);
      },
      "value error");
}

TEST(durable_absorb, a_second_cancel_is_a_new_event) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await give("ready", 0);
    const auto o = co_await weir::absorb(nap(1000h, 1));
    co_await give("absorb: " + kind(o), 0);
    co_await weir::sleep(1000h);
    co_await give("NEVER", 0);
    co_return "value";
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready", "absorb: absorbed"}), "cancelled");
  EXPECT_EQ(times("NEVER"), 0);
  session_of(on, handler, [](durable::engine& e) -> task<> {
    EXPECT_EQ(e.get("r")->state, durable::run_state::cancelled);
    co_return;
  });
}

TEST(durable_absorb, may_be_used_again_and_again) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    std::string all;
    for (int i = 0; i < 3; ++i) {
      co_await give("ready " + std::to_string(i), 0);
      const auto o = co_await weir::absorb(nap(1000h, 1));
      all += kind(o) + " ";
    }
    co_return all;
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready 0", "ready 1", "ready 2"}),
            "absorbed absorbed absorbed ");
}

TEST(durable_absorb, joins_what_it_cancels_with_its_cleanup) {
  auto handler = [](int) -> task<std::string> {
    auto work = []() -> task<int> {
      co_return co_await weir::with_scope([](weir::scope& s) -> task<int> {
        s.defer([]() -> task<> {
          (void)co_await give("undo", 0);
          co_await weir::sleep(5h);
          (void)co_await give("undone", 0);
        });
        co_await give("ready", 0);
        co_return co_await nap(1000h, 1);
      });
    };
    const auto o = co_await weir::absorb(work());
    co_await give("after", 0);
    co_return kind(o);
  };
  for (const std::string at : {"undo", "undone", "after"}) {
    SCOPED_TRACE(at);
    const stage on;
    life_that_dies_in(at, [&] { (void)ending_cancelled_at(on, handler, {"ready"}); });
    whole_life([&] { EXPECT_EQ(ending(on, handler, 100h), "absorbed"); });
    for (const std::string name : {"undo", "undone", "after"}) {
      EXPECT_EQ(times(name), name == at ? 2 : 1) << name;
    }
  }
}

TEST(durable_absorb, while_a_fiber_is_inside_the_others_are_not_cancelled) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto absorbs = []() -> task<int> {
      co_await give("ready", 0);
      const auto o = co_await weir::absorb(nap(1000h, 1));
      co_return o.is_cancelled() ? 1 : 0;
    };
    auto [inside, outside] = co_await weir::all(absorbs(), give_after(10h, "outside", 5));
    co_return row(inside, outside);
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready"}), "1,5");
  EXPECT_EQ(times("outside"), 1);
}

TEST(durable_absorb, of_several_fibers_each_gets_the_one_cancellation) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto absorbs = [](int n) -> task<int> {
      co_await give("ready " + std::to_string(n), 0);
      const auto o = co_await weir::absorb(nap(1000h, 1));
      co_return o.is_cancelled() ? n : 0;
    };
    auto [a, b, c] = co_await weir::all(absorbs(1), absorbs(2), absorbs(3));
    co_await give("after", 0);
    co_return row(a, b, c);
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready 3"}), "1,2,3");
}

TEST(durable_absorb, nested_the_outermost_is_the_one_that_is_cancelled) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto inner = []() -> task<int> {
      co_await give("ready", 0);
      const auto o = co_await weir::absorb(nap(1000h, 1));
      (void)co_await give("inner went on", 0);
      co_return o.is_cancelled() ? 1 : 0;
    };
    const auto o = co_await weir::absorb(inner());
    co_await give("outer went on", 0);
    co_return kind(o);
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready"}), "absorbed");
  EXPECT_EQ(times("inner went on"), 0);
  EXPECT_EQ(times("outer went on"), 1);
}

TEST(durable_absorb, if_no_operation_ended_by_it_the_run_is_cancelled) {
  // The shielded operation finishes with a value: the request is not consumed.
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await give("ready", 0);
    const auto o = co_await weir::absorb(weir::shield(nap(10h, 1)));
    note("absorb: " + kind(o));
    co_await weir::sleep(1h);
    co_await give("NEVER", 0);
    co_return "value";
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready"}), "cancelled");
  EXPECT_EQ(times("absorb: value"), 1);
  EXPECT_EQ(times("NEVER"), 0);
}

TEST(durable_absorb, an_operation_that_fails_while_it_is_cancelled_did_not_end_by_it) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto stubborn = []() -> task<int> {
      auto late = []() -> task<int> {
        co_await weir::sleep(10h);
        throw weir::terminal_error("broke");
      };
      co_return co_await weir::shield(late);
    };
    co_await give("ready", 0);
    const auto o = co_await weir::absorb(stubborn());
    note("absorb: " + kind(o));
    co_await weir::sleep(1h);
    co_await give("NEVER", 0);
    co_return "value";
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready"}), "cancelled");
  EXPECT_EQ(times("absorb: error"), 1);
  EXPECT_EQ(times("NEVER"), 0);
}

TEST(durable_absorb, of_a_step_whose_task_body_is_cancelled_never_runs_it_again) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> task<int> {
      note("ready");
      co_return co_await nap(1000h, 1);
    };
    const auto o = co_await weir::absorb(weir::step("body", body));
    co_await give("after", 0);
    co_return kind(o);
  };
  life_that_dies_in("after", [&] { (void)ending_cancelled_at(on, handler, {"ready"}); });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "absorbed"); });
  EXPECT_EQ(times("ready"), 1);
}

TEST(durable_absorb, takes_its_own_cancellation_only_not_that_of_a_race_around_it) {
  survives(
      [](int) -> task<std::string> {
        auto loser = []() -> task<int> {
          (void)co_await weir::absorb(nap(1000h, 1));
          (void)co_await give("NEVER", 0);
          co_return 1;
        };
        const int won = co_await weir::race(tasks(loser(), nap(1h, 2)));
        co_await give("after", 0);
        co_return std::to_string(won);
      },
      "2");
}

TEST(durable_absorb, saves_a_run_that_a_customer_cancels_late) {
  // What it is for: cancel the waiting, then settle the bill, uncancelled.
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await give("ready", 0);
    const auto o = co_await weir::absorb(give_after(72h, "delivered", 1));
    if (o.is_value()) co_return "paid";
    co_await weir::sleep(1h);
    (void)co_await give("refunded", 0);
    co_return "refunded";
  };
  EXPECT_EQ(ending_cancelled_at(on, handler, {"ready"}), "refunded");
  EXPECT_EQ(times("delivered"), 0);
}

FIBER_TEST(durable_absorb, outside_of_a_run_is_settle) {
  const auto good = co_await weir::absorb(test_support::ready(1));
  EXPECT_EQ(good.value(), 1);
  const auto bad = co_await weir::absorb(test_support::fails_after(1s, 3));
  EXPECT_EQ(test_support::boom_of(bad.error()), 3);
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    bool went_on = false;
    auto child = s.spawn([&]() -> task<> {
      (void)co_await weir::absorb(test_support::after(1h, 1));
      went_on = true;
    });
    co_await weir::sleep(1s);
    child.cancel();
    co_await s.idle();
    EXPECT_FALSE(went_on);
  });
}
