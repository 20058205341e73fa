// SPDX-License-Identifier: MIT
// Several runs at once: what is visible to others and when, clocks that go backwards, runs that do
// not park, values that cannot be written or read.
#include <optional>

#include "durable/support/troubled_disk.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// Cannot be written.
struct secretive {
  int value = 0;
};

}  // namespace

template <>
struct weir::serde<secretive> {
  static void write(weir::json_writer&, const secretive&) { throw std::runtime_error("no words"); }
  static secretive read(weir::json_value) { return {}; }
};

// --------------------------------------------------------------------------- suspension and replay

TEST(durable_progress, a_run_whose_timer_is_due_goes_on_though_the_others_are_busy) {
  const stage on;
  static int begun = 0;
  auto setup = [](durable::engine& e) {
    e.add("busy", [](int) -> task<> {
      co_await weir::step("long", []() -> task<> { co_await weir::sleep(3h); });
    });
    e.add("naps", [](int) -> task<std::string> {
      ++begun;
      co_await weir::sleep(10ms);
      co_return "awake";
    });
  };
  auto options = options_for(on);
  options.max_live = 1;
  auto use = [](durable::engine& e) -> task<> {
    (void)co_await e.start<>("busy", {.id = "busy"}, 1);
    const auto from = weir::now();
    auto run = co_await e.start<std::string>("naps", {.id = "naps"}, 1);
    EXPECT_EQ(co_await ending_of(run), "awake");
    EXPECT_LT(weir::now() - from, 1s);
    EXPECT_LE(begun, 3);
  };
  whole_life(
      [&] { sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, setup, use)); });
}

namespace {

/// Its child goes on for five hours when it is cancelled, after one.
void add_patient(durable::engine& e) {
  e.add("child", [](int) -> task<std::string> {
    auto sleeps = []() -> task<> { co_await weir::sleep(10h); };
    const auto how = co_await weir::absorb(sleeps);
    note(how.is_cancelled() ? "absorbed" : "slept");
    co_await weir::step("compensate", [] { note("compensate"); });
    co_await weir::sleep(5h);
    co_return "child done";
  });
  e.add("h", [](int) -> task<std::string> {
    try {
      co_return co_await weir::with_timeout(1h, weir::call<std::string>("child", 1, {.id = "c"}));
    } catch (const weir::error& error) {
      co_return error.code() == errc::timeout ? "timeout" : error.what();
    }
  });
}

task<> expect_child_done(durable::engine& e) {
  auto parent = co_await e.start<std::string>("h", {.id = "r"}, 1);
  const std::string parent_end = co_await ending_of(parent);
  auto child = co_await e.start<std::string>("child", {.id = "c"}, 1);
  EXPECT_EQ(co_await ending_of(child), "child done");
  EXPECT_EQ(times("compensate"), 1);
  note("parent " + parent_end);
}

}  // namespace

TEST(durable_progress, a_called_run_is_cancelled_once_however_often_its_caller_is_replayed) {
  std::string straight;
  {
    const stage on;
    session(on, add_patient, expect_child_done);
    straight = test_support::joined(noted("parent "));
  }
  const stage on;
  session(on, add_patient, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::sleep(2h);
  });
  session(on, add_patient, [](durable::engine&) -> task<> { co_await weir::sleep(1h); }, 2h);
  session(on, add_patient, expect_child_done, 3h);
  EXPECT_EQ(test_support::joined(noted("parent ")), straight);
}

TEST(durable_progress, a_run_that_never_rests_does_not_stop_the_timers_of_others_in_a_later_life) {
  const stage on;
  static bool spin = false;
  auto setup = [](durable::engine& e) {
    e.add("spins", [](int) -> task<> {
      note("begun");
      while (spin) co_await weir::yield();
      co_await weir::sleep(1h);
    });
    e.add("sleeps", [](int) -> task<std::string> {
      co_await weir::sleep(1ms);
      co_return "slept";
    });
  };
  auto both = [](durable::engine& e) -> task<> {
    (void)co_await e.start<>("spins", {.id = "spins"}, 1);
    while (times("begun") == 0) co_await weir::yield();
    auto run = co_await e.start<std::string>("sleeps", {.id = spin ? "second" : "first"}, 1);
    EXPECT_EQ(co_await ending_of(run), "slept");
  };
  whole_life([&] { weir::run(with_open_engine(options_for(on), setup, both)); });
  whole_life([&] {
    spin = true;
    weir::run(with_open_engine(options_for(on), setup, both));
  });
}

// ------------------------------------------------------------------------------------------- steps

namespace {

const weir::local<int> number_of_run(1);

}  // namespace

TEST(durable_progress, the_body_of_a_step_sees_the_locals_of_the_code_around_it) {
  survives(
      [](int) -> task<std::string> {
        auto inside = []() -> task<int> {
          co_return co_await weir::step("look", [] {
            effect("look");
            return number_of_run.get();
          });
        };
        const int bound = co_await weir::with_local(number_of_run, 7, inside);
        const int after = co_await inside();
        co_return row(bound, after);
      },
      "7,1");
}

TEST(durable_progress, a_step_whose_result_cannot_be_recorded_is_not_done_again) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    std::string all;
    try {
      (void)co_await weir::step("plain", [] {
        note("plain");
        return secretive{};
      });
    } catch (const weir::terminal_error& e) {
      all += said(e, "no words");
    }
    try {
      (void)co_await weir::step_once("task", []() -> task<secretive> {
        note("task");
        co_return secretive{};
      });
    } catch (const weir::terminal_error& e) {
      all += ", " + said(e, "no words");
    }
    co_return all;
  };
  EXPECT_EQ(ending(on, handler), "no words, no words");
  EXPECT_EQ(ledger(), (lines{"plain", "task"}));
}

// --------------------------------------------------------------------------------- what others see

TEST(durable_progress, nobody_sees_a_run_whose_start_is_not_on_the_disk) {
  const stage on;
  whole_life([&] {
    trouble t;
    troubled_disk disk(t);
    auto body = [&](durable::engine& e) -> task<> {
      auto events = e.events();
      add_waiting(e);
      co_await e.open();
      (void)co_await e.start<std::string>("hears", {.id = "seen"}, 1);
      t.armed = true;
      auto inside = [&](weir::scope& s) -> task<> {
        auto starts = [&] {
          return code_after([&] { return e.start<std::string>("at once", {.id = "lost"}, 1); });
        };
        auto lost = s.spawn(starts);
        while (!t.entered) co_await weir::yield();
        EXPECT_FALSE(e.get("lost").has_value());
        EXPECT_EQ(e.list().size(), 1u);
        t.fail_behind_the_back_of_the_loop();
        const std::error_code code = co_await lost;
        EXPECT_EQ(code, errc::journal_failed);
      };
      co_await weir::with_scope(inside);
      co_await e.close();
      lines seen;
      while (auto event = co_await events.next()) seen.push_back(event->id);
      EXPECT_EQ(std::count(seen.begin(), seen.end(), "lost"), 0);
      EXPECT_GE(std::count(seen.begin(), seen.end(), "seen"), 1);
    };
    weir::run(durable::with_engine(options_with(on, disk), body));
  });
}

TEST(durable_progress, the_end_of_a_run_that_close_writes_is_told_to_who_waits_for_it) {
  const stage on;
  whole_life([&] {
    trouble t;
    t.fails = false;
    troubled_disk disk(t);
    auto use = [&](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("hears", {.id = "r"}, 1);
      auto inside = [&](weir::scope& s) -> task<> {
        auto waits = [&] { return ending_of(run); };
        auto waiter = s.spawn(waits);
        t.armed = true;
        auto signals = [&] { return e.signal("r", "x", 5); };
        auto told = s.spawn(signals);
        while (!t.entered) co_await weir::yield();
        auto closes = [&] { return e.close(); };
        auto closed = s.spawn(closes);
        for (int i = 0; i < 100; ++i) co_await weir::yield();
        t.let_go = true;
        note("end " + co_await waiter);
        EXPECT_TRUE(co_await told);
        co_await closed;
      };
      co_await weir::with_scope(inside);
    };
    weir::run(with_open_engine(options_with(on, disk), add_waiting, use));
  });
  session(on, add_waiting, [](durable::engine& e) -> task<> {
    EXPECT_EQ(e.get("r")->state, run_state::completed);
    co_return;
  });
  EXPECT_EQ(noted("end "), lines{"5"});
}

// A result is refused to the caller; a run that cannot read its input, or a result, is blocked.
TEST(durable_progress, values_of_another_type_are_told_with_the_name_of_whose_they_are) {
  const stage on;
  auto setup = [](durable::engine& e) {
    e.add("gives", [](int) -> task<std::string> { co_return "text"; });
    e.add("calls", [](int) -> task<std::string> {
      co_return std::to_string(co_await weir::call<int>("gives", 1));
    });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto other = co_await e.start<int>("gives", {.id = "other result"}, 1);
    const auto error = co_await test_support::attempt([&] { return other.result(); });
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), "'other result'"))
        << test_support::what_of(error);
    (void)co_await e.start<std::string>("gives", {.id = "other input"}, "word");
    (void)co_await e.start<std::string>("gives", {.id = "no input"});
    (void)co_await e.start<std::string>("calls", {.id = "caller"}, 1);
    co_await weir::sleep(1s);
    EXPECT_EQ(e.list({.state = durable::run_state::blocked}).size(), 3u);
    const auto message = [&](const char* id) { return e.get(id)->message; };
    EXPECT_TRUE(test_support::contains(message("other input"), "'other input'"))
        << message("other input");
    EXPECT_TRUE(test_support::contains(message("no input"), "'no input'")) << message("no input");
    EXPECT_TRUE(test_support::contains(message("caller"), "call 'gives'")) << message("caller");
    EXPECT_TRUE(test_support::contains(message("caller"), "engine_progress_test.cpp:"))
        << message("caller");
  });
}

// --------------------------------------------------------------------------- cancelled at odd
// times

namespace {

task<std::string> undoes_for_hours(int) {
  auto body = [](weir::scope& s) -> task<> {
    s.defer([]() -> task<> {
      (void)co_await give("undo", 1);
      co_await weir::sleep(2h);
      (void)co_await give("undo more", 2);
    });
    co_await weir::sleep(100h);
  };
  co_await weir::with_scope(body);
  co_return "NEVER";
}

/// Cancelled this long after an engine was opened whose clock is an hour behind.
void cancel_with_the_clock_behind(weir::duration after) {
  const stage on;
  session_of(on, undoes_for_hours, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::sleep(1min);
  });
  auto cancels = [&](durable::engine& e) -> task<> {
    if (after > 0ns) co_await weir::sleep(after);
    EXPECT_TRUE(e.cancel("r"));
    co_await weir::sleep(10min);
    EXPECT_EQ(ledger(), lines{"undo"}) << e.get("r")->message;
  };
  session_of(on, undoes_for_hours, cancels, -1h);
  auto expect_end = [](durable::engine& e) -> task<> {
    co_await weir::sleep(10h);
    EXPECT_EQ(e.get("r")->state, run_state::cancelled) << e.get("r")->message;
  };
  session_of(on, undoes_for_hours, expect_end);
  EXPECT_EQ(ledger(), (lines{"undo", "undo more"}));
}

}  // namespace

TEST(durable_progress,
     a_run_that_was_cancelled_while_the_clock_was_behind_goes_on_with_its_cleanup) {
  cancel_with_the_clock_behind(1min);
}

TEST(durable_progress,
     a_run_that_is_cancelled_as_its_engine_opens_with_the_clock_behind_cleans_up) {
  cancel_with_the_clock_behind(0ns);
}

TEST(durable_progress, a_delayed_run_that_was_told_something_and_then_cancelled_never_begins) {
  const stage on;
  auto setup = [](durable::engine& e) {
    e.add("later", [](int) -> task<std::string> {
      note("BEGUN");
      co_return std::to_string(co_await weir::signal<int>("x").wait());
    });
    e.add("h", [](int) -> task<std::string> {
      co_return co_await weir::send("later", 1, {.delay = 48h, .id = "later"});
    });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "later");
    EXPECT_TRUE(co_await e.signal("later", "x", 2));
    EXPECT_TRUE(e.cancel("later"));
    auto later = co_await e.start<std::string>("later", {.id = "later"}, 1);
    EXPECT_EQ(co_await ending_of(later), "cancelled");
  });
  EXPECT_EQ(times("BEGUN"), 0);
}

// ------------------------------------------------------------------------- itself and other runs

TEST(durable_progress, a_run_that_calls_itself_by_its_own_id_is_told_so) {
  survives(
      [](int) -> task<std::string> {
        std::string how = "NEVER";
        try {
          (void)co_await weir::call<std::string>("h", 1, {.id = "r"});
        } catch (const weir::error& e) {
          how = e.code() == errc::would_deadlock ? said(e, "calls itself") : e.what();
        }
        co_return how + std::to_string(co_await give("after", 1));
      },
      "calls itself1");
}

TEST(durable_progress, a_run_does_not_wait_for_the_awakeable_of_another_one) {
  const stage on;
  static weir::awakeable<int>* of_the_other = nullptr;
  auto setup = [](durable::engine& e) {
    e.add("owner", [](int) -> task<std::string> {
      weir::awakeable<int> answer("answer");
      of_the_other = &answer;
      co_await weir::step("ask", [&] { note("id " + std::string(answer.id())); });
      co_return std::to_string(co_await answer.wait());
    });
    e.add("h", [](int) -> task<std::string> {
      const auto waits = [] { return of_the_other->wait(); };
      const auto error = co_await test_support::attempt(waits);
      co_return test_support::code_of(error) == errc::not_journaled ? "refused"
                                                                    : test_support::what_of(error);
    });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto owner = co_await e.start<std::string>("owner", {.id = "owner"}, 1);
    const std::string id = co_await last_noted("id ");
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await ending_of(run), "refused");
    EXPECT_TRUE(co_await e.resolve(id, 9));
    EXPECT_EQ(co_await ending_of(owner), "9");
  });
}
