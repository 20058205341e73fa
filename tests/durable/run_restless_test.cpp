// SPDX-License-Identifier: MIT
// The promises: a run that does not park can be cancelled, and does not stop the rest of the loop;
// a replay takes the same course. Of calls that wait for each other by id, the one that closes the
// cycle gets errc::would_deadlock.
#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

task<> spins() {
  for (;;) co_await weir::yield();
}

/// Waits without letting virtual time pass, which stands still while something is ready.
task<> turns_until(std::function<bool()> is_true) {
  for (long i = 0; i < 10'000'000 && !is_true(); ++i) co_await weir::yield();
  EXPECT_TRUE(is_true());
}

}  // namespace

TEST(durable_restless, run_can_be_cancelled_and_does_not_starve_others) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    if (n == 2) co_return std::to_string(co_await give("other", 2));
    co_await spins();
    co_return "never";
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    auto other = co_await e.start<std::string>("h", {.id = "other"}, 2);
    EXPECT_EQ(co_await ending_of(other), "2");
    run.cancel("enough");
    EXPECT_EQ(co_await ending_of(run), "cancelled");
    EXPECT_EQ(e.get("r")->message, "enough");
  });
}

TEST(durable_restless, run_of_ready_local_waits_can_be_cancelled) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    weir::queue<int> q(1);
    for (;;) {
      co_await q.push(1);
      (void)co_await q.next();
    }
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    run.cancel();
    EXPECT_EQ(co_await ending_of(run), "cancelled");
  });
}

TEST(durable_restless, run_that_is_cancelled_runs_its_cleanup) {
  const stage on;
  auto handler = [](weir::scope& s, int) -> task<std::string> {
    s.defer([]() -> task<> { (void)co_await give("cleanup", 0); });
    (void)co_await give("before", 0);
    co_await spins();
    co_return "never";
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await turns_until([] { return times("before") == 1; });
    run.cancel();
    EXPECT_EQ(co_await ending_of(run), "cancelled");
  });
  EXPECT_EQ(times("cleanup"), 1);
}

TEST(durable_restless, run_takes_the_same_course_when_it_is_replayed) {
  // What it does in between is recorded, so the signal must come at the same place again.
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto heard = weir::promise<int>("heard");
    auto hears = [&]() -> task<> {
      (void)co_await heard.resolve(co_await weir::signal<int>("x").wait());
    };
    long turns = 0;
    int value = 0;
    auto counts = [&]() -> task<> {
      while (!heard.peek()) {
        if (++turns % 1000 == 0) (void)weir::awakeable<int>("made " + std::to_string(turns));
        co_await weir::yield();
      }
      value = *heard.peek();
    };
    co_await weir::all(hears(), counts());
    const std::string said = std::to_string(turns) + " " + std::to_string(value);
    co_await weir::step("note", [&] { note("heard " + said); });
    (void)co_await give("last", 0);
    co_return said;
  };
  EXPECT_EQ(life([&] {
              plan = {.in = "last"};
              session_of(on, handler, [](durable::engine& e) -> task<> {
                auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
                for (int i = 0; i < 3000; ++i) co_await weir::yield();
                (void)co_await e.signal("r", "x", 7);
                (void)co_await run.result();
              });
            }),
            crashed);
  ASSERT_EQ(noted("heard ").size(), 1u);
  whole_life([&] { EXPECT_EQ(ending(on, handler), noted("heard ")[0]); });
  EXPECT_EQ(noted("heard ").size(), 1u);
}

TEST(durable_restless, run_is_cancelled_where_it_was_cancelled_when_it_is_replayed) {
  const stage on;
  auto handler = [](weir::scope& s, int) -> task<std::string> {
    static long turns = 0;
    turns = 0;
    s.defer([]() -> task<> {
      co_await weir::step("turns", [] { note("turns " + std::to_string(turns)); });
      (void)co_await give("last", 0);
      co_await weir::step("again", [] { note("turns " + std::to_string(turns)); });
    });
    for (;; ++turns) {
      if (turns % 1000 == 999) (void)weir::awakeable<int>("made");
      co_await weir::yield();
    }
  };
  EXPECT_EQ(life([&] {
              plan = {.in = "last"};
              session_of(on, handler, [](durable::engine& e) -> task<> {
                auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
                for (int i = 0; i < 5000; ++i) co_await weir::yield();
                run.cancel();
                (void)co_await ending_of(run);
              });
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, handler), "cancelled"); });
  const lines turns = noted("turns ");
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0], turns[1]);
}

TEST(durable_restless, run_that_a_crash_hit_before_it_heard_is_told_when_it_is_replayed) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    int value = 0;
    auto hears = [&]() -> task<> { value = co_await weir::signal<int>("x").wait(); };
    auto counts = [&]() -> task<> {
      while (value == 0) co_await weir::yield();
    };
    co_await weir::all(hears(), counts());
    co_return std::to_string(value);
  };
  EXPECT_EQ(life([&] {
              session_of(on, handler, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                (void)co_await e.signal("r", "x", 7);
                ::_exit(crashed);  // it is durable, and the run has not been told
              });
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, handler), "7"); });
}

TEST(durable_restless, time_limits_around_what_never_parks_end_it) {
  const stage on;
  whole_life([&] {  // on real time: virtual time stands still while something is ready
    auto handler = [](int) -> task<std::string> {
      try {
        co_await weir::with_timeout(10ms, spins());
      } catch (const weir::timeout_error&) {
        co_return "late";
      }
      co_return "never";
    };
    auto use = [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await ending_of(run), "late");
    };
    weir::run(with_open_engine(options_for(on), as_h(handler), use));
  });
}

namespace {

/// So many runs that a commit is made before all of them had their turn, and another one is put off
/// while they are busy.
constexpr int crowd = 300;

std::string in_crowd(int i) { return "c" + std::to_string(i); }

/// All of the crowd are busy from now on for some turns.
task<> wake_crowd(durable::engine& e, weir::scope& s) {
  auto wakes = [&e](int i) -> task<> { EXPECT_TRUE(co_await e.signal(in_crowd(i), "go", 1)); };
  for (int i = 0; i < crowd; ++i) s.spawn(wakes(i));
  co_await weir::yield();
}

}  // namespace

// A step is visible to others only when all that led to it is on the disk: here, after how many
// turns the cancellation came. That has a record of its own, which a commit may have missed that
// has the cancellation.
TEST(durable_restless, run_starts_no_step_before_the_place_of_its_cancellation_is_recorded) {
  const stage on;
  static long turns = 0;
  auto handler = [](weir::scope& s, int n) -> task<std::string> {
    if (n == 2) {
      (void)co_await weir::signal<int>("go").wait();
      for (int i = 0; i < 500; ++i) co_await weir::yield();
      co_return "was busy";
    }
    turns = 0;
    s.defer([]() -> task<> {
      const std::string seen = std::to_string(turns);
      co_await weir::step("undo", [&] {
        note("undo " + seen);
        effect("undone");
      });
    });
    for (;; ++turns) co_await weir::yield();
  };
  life_that_dies_in("undone", [&] {
    session_of(on, handler, [](durable::engine& e) -> task<> {
      for (int i = 0; i < crowd; ++i)
        (void)co_await e.start<std::string>("h", {.id = in_crowd(i)}, 2);
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      co_await turns_until([] { return turns > 13'000; });
      auto body = [&](weir::scope& s) -> task<> {
        co_await wake_crowd(e, s);
        const long before = turns;
        co_await turns_until([&] { return turns > before; });  // then it is the last of them
        run.cancel();
        (void)co_await run.result();
      };
      co_await weir::with_scope(body);
    });
  });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "cancelled"); });
  const lines undone = noted("undo ");
  ASSERT_EQ(undone.size(), 2u);
  EXPECT_EQ(undone[0], undone[1]);
}

// ------------------------------------------------------------------------------ circles of calls

namespace {

/// Runs "0", "1", ... call the next, and the last one the first; what each hears.
void circle_of(int length) {
  const stage on;
  static int runs = 0;
  runs = length;
  auto handler = [](int n) -> task<std::string> {
    const std::string next = std::to_string((n + 1) % runs);
    try {
      co_return co_await weir::call<std::string>("h", (n + 1) % runs, {.id = next});
    } catch (const weir::error& e) {
      if (e.code() != errc::would_deadlock) throw;
      note("circle at " + std::to_string(n) + " " + e.what());
      co_return "closed by " + std::to_string(n);
    }
  };
  session_of(on, handler, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "0"}, 0);
    EXPECT_EQ(co_await ending_of(run), "closed by " + std::to_string(length - 1));
    const lines heard = noted("circle at ");
    EXPECT_EQ(heard.size(), 1u);
    if (heard.empty()) co_return;
    for (int i = 0; i < length; ++i) {
      EXPECT_TRUE(test_support::contains(heard[0], "'" + std::to_string(i) + "'")) << heard[0];
    }
  });
}

}  // namespace

TEST(durable_call_circle, of_any_length_is_refused_to_the_run_that_closes_it) {
  for (const int length : {1, 2, 3, 10}) circle_of(length);
}

TEST(durable_call_circle, is_refused_in_the_same_way_when_the_runs_are_replayed) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    std::string heard = "value";
    try {
      heard = co_await weir::call<std::string>("h", 1 - n, {.id = n == 0 ? "b" : "r"});
    } catch (const weir::error& e) {
      heard = e.code() == errc::would_deadlock ? "circle" : e.what();
    }
    (void)co_await give("last", 0);
    co_return heard;
  };
  auto use = [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 0);
    EXPECT_EQ(co_await ending_of(run), "circle");
  };
  life_that_dies_in("last", [&] { session_of(on, handler, use); });
  whole_life([&] { session_of(on, handler, use); });
}

TEST(durable_call_circle, two_that_call_one_run_are_none) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    if (n == 9) co_return std::to_string(co_await nap(1h, 9));
    if (n > 0) co_return co_await weir::call<std::string>("h", 9, {.id = "nine"});
    auto [a, b, c] = co_await weir::all(weir::call<std::string>("h", 1, {.id = "one"}),
                                        weir::call<std::string>("h", 2, {.id = "two"}),
                                        weir::call<std::string>("h", 9, {.id = "nine"}));
    co_return a + b + c;
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 0);
    EXPECT_EQ(co_await ending_of(run), "999");
  });
}

TEST(durable_call_circle, a_call_that_was_given_up_is_no_part_of_one) {
  // "a" has given up its call of "b", which others started: "b" may wait for "a".
  const stage on;
  auto setup = [](durable::engine& e) {
    e.add("a", [](int) -> task<std::string> {
      try {
        (void)co_await weir::with_timeout(1h, weir::call<std::string>("b", 1, {.id = "b"}));
      } catch (const weir::timeout_error&) {
      }
      co_await weir::sleep(10h);
      co_return "a";
    });
    e.add("b", [](int) -> task<std::string> {
      co_await weir::sleep(2h);
      co_return "b after " + co_await weir::call<std::string>("a", 1, {.id = "a"});
    });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto b = co_await e.start<std::string>("b", {.id = "b"}, 1);
    auto a = co_await e.start<std::string>("a", {.id = "a"}, 1);
    EXPECT_EQ(co_await ending_of(b), "b after a");
    EXPECT_EQ(co_await ending_of(a), "a");
  });
}
