// SPDX-License-Identifier: MIT
// The end of an engine, and runs that begin late or cannot continue.
#include <optional>

#include "durable/support/troubled_disk.hpp"

using namespace durable_test;
using durable::run_state;

// ------------------------------------------------------------------------------------------- close

TEST(durable_closed, gives_the_journal_up_while_the_engine_and_its_handles_live) {
  const stage on;
  auto body = [&](weir::scope& s) -> task<> {
    durable::engine first(s, options_for(on));
    add_waiting(first);
    co_await first.open();
    auto ended = co_await first.start<std::string>("at once", {.id = "ended"}, 1);
    auto parked = co_await first.start<std::string>("hears", {.id = "parked"}, 1);
    EXPECT_EQ(co_await ended.result(), "at once");
    co_await first.close();
    durable::engine second(s, options_for(on));
    add_waiting(second);
    co_await second.open();
    EXPECT_TRUE(co_await second.signal("parked", "x", 3));
    auto again = co_await second.start<std::string>("hears", {.id = "parked"}, 1);
    EXPECT_EQ(co_await again.result(), "3");
    EXPECT_EQ(co_await code_after([&] { return parked.result(); }), errc::not_open);
    EXPECT_EQ(co_await code_after([&] { return ended.result(); }), errc::not_open);
    co_await second.close();
  };
  sim::run({.seed = 1, .start_time = day0}, weir::with_scope(body));
}

TEST(durable_closed, by_the_end_of_with_engine_gives_the_journal_up_while_a_handle_is_kept) {
  const stage on;
  auto app = [&]() -> task<> {
    std::optional<durable::run_handle<std::string>> kept;
    co_await with_open_engine(options_for(on), add_waiting, [&](durable::engine& e) -> task<> {
      kept = co_await e.start<std::string>("hears", {.id = "r"}, 1);
    });
    co_await with_open_engine(options_for(on), add_waiting, [&](durable::engine& e) -> task<> {
      EXPECT_TRUE(co_await e.signal("r", "x", 4));
      EXPECT_EQ(co_await code_after([&] { return kept->result(); }), errc::not_open);
    });
  };
  sim::run({.seed = 1, .start_time = day0}, app());
}

TEST(durable_closed, is_said_by_a_handle_whose_loop_has_ended) {
  const stage on;
  std::optional<durable::run_handle<std::string>> kept;
  session(on, add_waiting, [&](durable::engine& e) -> task<> {
    kept = co_await e.start<std::string>("hears", {.id = "r"}, 1);
  });
  auto later = [&]() -> task<> {
    EXPECT_EQ(co_await code_after([&] { return kept->result(); }), errc::not_open);
    EXPECT_EQ(code_of_plain([&] { return kept->cancel(); }), errc::not_open);
  };
  sim::run({.seed = 1}, later());
  EXPECT_EQ(code_of_plain([&] { return kept->cancel(); }), errc::not_open);
  whole_life([&] { weir::run(later()); });
}

TEST(durable_closed, is_not_opened_again) {
  const stage on;
  auto body = [&](weir::scope& s) -> task<> {
    durable::engine unused(s, options_for(on));
    add_waiting(unused);
    co_await unused.close();
    EXPECT_EQ(co_await code_after([&] { return unused.open(); }), errc::not_open);
    durable::engine used(s, options_for(on));
    add_waiting(used);
    co_await used.open();
    co_await used.close();
    EXPECT_EQ(co_await code_after([&] { return used.open(); }), errc::not_open);
    auto starts = [&] { return used.start<std::string>("at once", {.id = "r"}, 1); };
    EXPECT_EQ(co_await code_after(starts), errc::not_open);
  };
  sim::run({.seed = 1, .start_time = day0}, weir::with_scope(body));
}

TEST(durable_closed, and_not_yet_open_engines_tell_nothing_about_runs) {
  const stage on;
  auto body = [&](durable::engine& e) -> task<> {
    add_waiting(e);
    auto refused_everywhere = [&] {
      EXPECT_EQ(code_of_plain([&] { return e.get("r"); }), errc::not_open);
      EXPECT_EQ(code_of_plain([&] { return e.list(); }), errc::not_open);
      EXPECT_EQ(code_of_plain([&] { return e.cancel("r"); }), errc::not_open);
    };
    refused_everywhere();
    auto events = e.events();  // before open: to miss nothing
    co_await e.open();
    auto run = co_await e.start<std::string>("at once", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "at once");
    co_await e.close();
    refused_everywhere();
    EXPECT_EQ(code_of_plain([&] { return e.events(); }), errc::not_open);
    run_state last = run_state::running;
    while (auto event = co_await events.next()) last = event->state;
    EXPECT_EQ(last, run_state::completed);
  };
  sim::run({.seed = 1, .start_time = day0}, durable::with_engine(options_for(on), body));
}

// ------------------------------------------------------------------------------------ guarded
// calls

TEST(durable_guard, a_run_looks_at_the_engine_in_a_step_only) {
  const stage on;
  static durable::engine* engine = nullptr;
  auto setup = [](durable::engine& e) {
    engine = &e;
    e.add("h", [](int) -> task<std::string> {
      EXPECT_EQ(code_of_plain([] { return engine->get("r"); }), errc::not_journaled);
      EXPECT_EQ(code_of_plain([] { return engine->list(); }), errc::not_journaled);
      EXPECT_EQ(code_of_plain([] { return engine->events(); }), errc::not_journaled);
      EXPECT_EQ(code_of_plain([] {
                  engine->add("late", quick);
                  return 0;
                }),
                errc::not_journaled);
      co_return std::to_string(co_await weir::step("look", [] {
        EXPECT_TRUE(engine->get("r").has_value());
        engine->add("late", quick);
        return static_cast<int>(engine->list().size());
      }));
    });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await ending_of(run), "1");
    auto late = co_await e.start<std::string>("late", {.id = "late"}, 1);
    EXPECT_EQ(co_await ending_of(late), "at once");
  });
}

TEST(durable_guard, another_loop_is_the_wrong_one) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  auto use = [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("hears", {.id = "r"}, 1);
    co_await weir::on(w.loop("other"), [&]() -> task<> {
      EXPECT_EQ(code_of_plain([&] { return e.get("r"); }), errc::wrong_loop);
      EXPECT_EQ(code_of_plain([&] { return e.list(); }), errc::wrong_loop);
      EXPECT_EQ(code_of_plain([&] { return e.events(); }), errc::wrong_loop);
      EXPECT_EQ(code_of_plain([&] { return e.cancel("r"); }), errc::wrong_loop);
      EXPECT_EQ(code_of_plain([&] { return run.cancel(); }), errc::wrong_loop);
      EXPECT_EQ(code_of_plain([&] {
                  e.add("late", quick);
                  return 0;
                }),
                errc::wrong_loop);
      EXPECT_EQ(co_await code_after([&] { return run.result(); }), errc::wrong_loop);
    });
    EXPECT_EQ(e.get("r")->state, run_state::running);
  };
  w.run(with_open_engine(options_for(on), add_waiting, use));
}

// ----------------------------------------------------------------- handlers that cannot be copied

namespace {

struct uncopyable {
  uncopyable() = default;
  uncopyable(uncopyable&&) noexcept {}
  uncopyable(const uncopyable&) { throw std::runtime_error("no copy today"); }
  uncopyable& operator=(const uncopyable&) = delete;
  ~uncopyable() = default;
  task<std::string> operator()(int n) const { return quick(n); }
};

void add_uncopyable(durable::engine& e) {
  e.add("h", uncopyable{});
  e.add("at once", quick);
}

}  // namespace

TEST(durable_handler, whose_copy_constructor_throws_blocks_the_run_until_a_better_one_is_there) {
  const stage on;
  session(on, add_uncopyable, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until([&] { return e.get("r")->state == run_state::blocked; });
    EXPECT_TRUE(test_support::contains(e.get("r")->message, "no copy today"))
        << e.get("r")->message;
    co_await e.close();
  });
  EXPECT_EQ(ending(on, quick), "at once");
}

TEST(durable_handler, whose_copy_constructor_throws_leaves_what_the_run_is_told_for_later) {
  const stage on;
  session(on, add_uncopyable, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until([&] { return e.get("r")->state == run_state::blocked; });
    EXPECT_TRUE(co_await e.signal("r", "x", 6));
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("r")->state, run_state::blocked);
  });
  EXPECT_EQ(ending(on, hears), "6");
}

TEST(durable_handler, whose_copy_constructor_throws_does_not_keep_others_from_their_turn) {
  const stage on;
  auto options = options_for(on);
  options.max_resume = 1;
  options.max_live = 1;
  auto use = [](durable::engine& e) -> task<> {
    for (const std::string id : {"a", "b", "c"})
      (void)co_await e.start<std::string>("h", {.id = id}, 1);
    auto good = co_await e.start<std::string>("at once", {.id = "good"}, 1);
    EXPECT_EQ(co_await ending_of(good), "at once");
    EXPECT_EQ(e.list({.state = run_state::blocked}).size(), 3u);
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, add_uncopyable, use));
}

// --------------------------------------------------------------------------------------------
// sends

namespace {

/// Two sends with the same id to two handlers, as first commands or after a step.
installer sends_twice(bool step_first) {
  return [step_first](durable::engine& e) {
    e.add("a", quick);
    e.add("b", quick);
    e.add("h", [step_first](int) -> task<std::string> {
      if (step_first) (void)co_await give("before", 1);
      const std::string sent = co_await weir::send("a", 1, {.id = "x"});
      std::string second = "accepted";
      try {
        (void)co_await weir::send("b", 2, {.id = "x"});
      } catch (const weir::error& error) {
        second = error.code() == errc::id_in_use ? "in use" : error.what();
      }
      (void)co_await weir::send("a", 3, {.id = "x"});  // attaches
      (void)co_await give("after", 1);
      co_return sent + " " + second;
    });
  };
}

}  // namespace

TEST(durable_send_id, of_a_run_of_another_handler_is_in_use_also_among_the_first_commands) {
  all_crashes(sends_twice(false), "x in use", at_once_and_late, steps::one_at_a_time);
}

TEST(durable_send_id, of_a_run_of_another_handler_is_in_use_after_a_step) {
  all_crashes(sends_twice(true), "x in use", at_once_and_late, steps::one_at_a_time);
}

// ------------------------------------------------------------------------------------- delayed
// runs

namespace {

void add_delayed(durable::engine& e) {
  e.add("child", [](int) -> task<> {
    note("child");
    co_return;
  });
  e.add("later", [](int) -> task<std::string> {
    note("begun");
    (void)co_await weir::send("child", 1);
    co_return std::to_string(co_await give("step", 5));
  });
  e.add("h", [](int) -> task<std::string> {
    co_return co_await weir::send("later", 1, {.delay = 48h, .id = "later"});
  });
}

task<> send_later(durable::engine& e) {
  auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
  EXPECT_EQ(co_await run.result(), "later");
}

task<> expect_cancelled(durable::engine& e) {
  auto later = co_await e.start<std::string>("later", {.id = "later"}, 1);
  EXPECT_EQ(co_await ending_of(later), "cancelled");
  EXPECT_EQ(e.get("later")->state, run_state::cancelled);
  EXPECT_TRUE(e.list({.handler = "child"}).empty());
  EXPECT_TRUE(ledger().empty()) << test_support::joined(ledger());
}

}  // namespace

TEST(durable_delayed, that_is_cancelled_before_its_time_never_begins) {
  const stage on;
  session(on, add_delayed, [](durable::engine& e) -> task<> {
    co_await send_later(e);
    co_await weir::sleep(1h);
    EXPECT_TRUE(e.cancel("later", "not needed"));
    co_await expect_cancelled(e);
    EXPECT_FALSE(e.cancel("later"));
    co_await weir::sleep(100h);
    co_await expect_cancelled(e);
  });
  session(on, add_delayed, expect_cancelled, 200h);
}

TEST(durable_delayed, that_is_cancelled_before_its_time_in_a_later_life_never_begins) {
  const stage on;
  session(on, add_delayed, send_later);
  auto use = [](durable::engine& e) -> task<> {
    EXPECT_TRUE(e.cancel("later"));
    co_await expect_cancelled(e);
  };
  session(on, add_delayed, use, 47h);
}

TEST(durable_delayed, that_is_told_something_before_its_time_begins_at_its_time) {
  const stage on;
  auto setup = [](durable::engine& e) {
    e.add("later", [](int) -> task<std::string> {
      note("begun");
      co_return std::to_string(co_await weir::signal<int>("x").wait());
    });
    e.add("h", [](int) -> task<std::string> {
      co_return co_await weir::send("later", 1, {.delay = 48h, .id = "later"});
    });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    co_await send_later(e);
    EXPECT_TRUE(co_await e.signal("later", "x", 2));
    co_await weir::sleep(47h);
    EXPECT_EQ(times("begun"), 0);
    auto later = co_await e.start<std::string>("later", {.id = "later"}, 1);
    EXPECT_EQ(co_await ending_of(later), "2");
  });
}

// --------------------------------------------------------------------------------- deadlocked runs

namespace {

/// Run "h" calls a run that books something, is stuck, and takes it back.
void add_stuck(durable::engine& e) {
  e.add("stuck", [](int) -> task<std::string> {
    auto body = [](weir::scope& s) -> task<> {
      (void)co_await give("book", 1);
      s.defer([]() -> task<> {
        (void)co_await give("unbook", 2);
        co_await weir::sleep(1h);
        (void)co_await give("tell", 3);
      });
      weir::event never;
      co_await never.wait();
    };
    co_await weir::with_scope(body);
    co_return "NEVER";
  });
  e.add("h", [](int) -> task<std::string> {
    try {
      co_return co_await weir::call<std::string>("stuck", 1, {.id = "stuck"});
    } catch (const weir::terminal_error& error) {
      co_return said(error, "deadlock");
    }
  });
}

}  // namespace

TEST(durable_deadlocked, runs_run_their_compensation_to_its_end_and_fail) {
  const stage on;
  session(on, add_stuck, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("stuck", {.id = "r"}, 1);
    const auto error = co_await test_support::attempt([&] { return run.result(); });
    EXPECT_EQ(test_support::code_of(error), errc::deadlock) << test_support::what_of(error);
    EXPECT_EQ(e.get("r")->state, run_state::failed);
  });
  EXPECT_EQ(ledger(), (lines{"book", "unbook", "tell"}));
}

TEST(durable_deadlocked, runs_go_on_with_their_compensation_after_a_crash_in_it) {
  all_crashes(add_stuck, "deadlock", at_once_and_late, steps::one_at_a_time);
}

TEST(durable_deadlocked, runs_take_no_step_of_their_compensation_twice_that_was_recorded) {
  const stage on;
  for (const std::string where : {"unbook", "tell"})
    life_that_dies_in(where, [&] { (void)ending_of_h(on, add_stuck, 0ns); });
  whole_life([&] { EXPECT_EQ(ending_of_h(on, add_stuck, 0ns), "deadlock"); });
  EXPECT_EQ(ledger(), (lines{"book", "unbook", "unbook", "tell", "tell"}));
}

TEST(durable_deadlocked, runs_go_on_with_their_compensation_after_a_close_in_it) {
  const stage on;
  session(on, add_stuck, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("unbook");
    co_await weir::sleep(10min);
  });
  EXPECT_EQ(ending_of_h(on, add_stuck, 30min), "deadlock");
  EXPECT_EQ(ledger(), (lines{"book", "unbook", "tell"}));
}
