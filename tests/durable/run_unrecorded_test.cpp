// SPDX-License-Identifier: MIT
// Commands that cannot be recorded, because they need a file of their own and the disk refuses it.
// Promises: the process lives, the run waits and loses nothing, and its code sees no error that a
// replay would not have.
#include <cerrno>

#include "durable/support/refusing_disk.hpp"
#include "durable/support/stage.hpp"
#include "support/disk_support.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// More than a quarter of a segment.
const std::string long_name(20'000, 'n');

enum unrecorded_kind : int { a_step, an_awakeable, a_patch, a_signal, a_race, a_child };

task<> names_a_step() {
  co_await weir::step(long_name, [] { note("body"); });
}

/// After a second it uses a long name; whatever it catches goes to the ledger.
task<std::string> uses_a_long_name(int kind) {
  co_await weir::step("first", [] { note("first"); });
  co_await weir::sleep(1s);
  try {
    switch (kind) {
      case a_step:
        co_await names_a_step();
        break;
      case an_awakeable: {
        auto made = weir::awakeable<int>(long_name);
        co_await weir::step("id", [&] { note("id " + std::string(made.id())); });
        break;
      }
      case a_patch:
        (void)weir::patch(long_name);
        co_await weir::step("patched", [] {});
        break;
      case a_signal: {
        const auto got =
            co_await weir::with_timeout(100h, weir::signal<std::string>(long_name).wait());
        (void)got;
        break;
      }
      case a_race:
        (void)co_await weir::race(weir::signal<std::string>(long_name).wait(),
                                  weir::signal<std::string>("short").wait());
        break;
      default: {
        auto both = [](weir::scope& s) -> task<> {
          auto slow = [] { return weir::shield(weir::sleep(5s)); };
          auto one = s.spawn([slow]() -> task<> {
            co_await weir::step_once("slow", [slow]() -> task<> {
              note("slow");
              co_await slow();
            });
          });
          auto other = s.spawn(names_a_step());
          co_await one;
          co_await other;
        };
        co_await weir::with_scope(both);
      }
    }
  } catch (const std::exception& e) {
    note(std::string("caught ") + e.what());
    throw;
  }
  co_return "done";
}

task<int> keeps_long_text(int) {
  weir::stored<std::string>("text").set(long_name);
  co_return 1;
}

task<int> reads_long_text(int) {
  const auto text = co_await weir::stored<std::string>("text").get();
  weir::stored<int>("length").set(static_cast<int>(text->size()));
  co_return static_cast<int>(text->size());
}

void add_unrecorded(durable::engine& e) {
  e.add("h", uses_a_long_name);
  e.add_object("o", {{"keep", keeps_long_text}, {"read", reads_long_text}});
}

class durable_unrecorded : public testing::TestWithParam<int> {};

std::string text_of_kind(const testing::TestParamInfo<int>& info) {
  const char* const names[] = {"step", "awakeable", "patch", "signal", "race", "child"};
  return names[info.param];
}

void expect_verified(sim::world& w) {
  auto verify = [&](durable::engine& e) -> task<> {
    add_unrecorded(e);
    const auto report = co_await e.verify();
    for (const auto& d : report.differences) ADD_FAILURE() << d.id << ": " << d.message;
  };
  w.run(durable::with_engine(on_disk(w), verify));
}

}  // namespace

TEST_P(durable_unrecorded, a_command_waits_for_room_and_its_code_sees_no_error) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(with_open_engine(on_disk(w), add_unrecorded, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, GetParam());
    co_await until_noted("first");
    w.disk().set({.space = 1});
    co_await weir::sleep(20s);
    const auto info = e.get("r");
    EXPECT_EQ(info->state, run_state::suspended);
    EXPECT_TRUE(test_support::contains(info->message, "cannot be recorded")) << info->message;
    w.disk().set({});
    co_await weir::sleep(10s);
    (void)co_await e.signal("r", long_name, std::string("x"));
    EXPECT_EQ(co_await ending_of(run), "done");
  }));
  EXPECT_TRUE(noted("caught ").empty());
  EXPECT_EQ(times("first"), 1);
  EXPECT_EQ(times("slow"), GetParam() == a_child ? 1 : 0);
  expect_verified(w);
}

TEST_P(durable_unrecorded,
       a_command_that_waits_for_room_when_the_process_ends_is_done_by_the_next) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(with_open_engine(on_disk(w), add_unrecorded, [&](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, GetParam());
    co_await until_noted("first");
    w.disk().set({.space = 1});
    co_await weir::sleep(20s);
  }));
  w.disk().set({});
  w.run(with_open_engine(on_disk(w), add_unrecorded, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 0);
    co_await weir::sleep(10s);
    (void)co_await e.signal("r", long_name, std::string("x"));
    EXPECT_EQ(co_await ending_of(run), "done");
  }));
  EXPECT_TRUE(noted("caught ").empty());
  expect_verified(w);
}

INSTANTIATE_TEST_SUITE_P(kinds, durable_unrecorded, testing::Range(0, a_child + 1), text_of_kind);

TEST(durable_unrecorded_command, can_be_cancelled_while_it_waits_for_room) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(with_open_engine(on_disk(w), add_unrecorded, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, int{a_step});
    co_await until_noted("first");
    w.disk().set({.space = 1});
    co_await weir::sleep(20s);
    EXPECT_TRUE(run.cancel("enough"));
    w.disk().set({});
    EXPECT_EQ(co_await ending_of(run), "cancelled");
  }));
  EXPECT_EQ(times("body"), 0);
  expect_verified(w);
}

TEST(durable_unrecorded_command, reads_a_stored_value_when_there_is_room_again) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(with_open_engine(on_disk(w), add_unrecorded, [&](durable::engine& e) -> task<> {
    auto keep = co_await e.start<int>("o/keep", {.key = "k"}, 1);
    EXPECT_EQ(co_await keep.result(), 1);
    w.disk().set({.space = 1});
    auto read = co_await e.start<int>("o/read", {.id = "read", .key = "k"}, 1);
    co_await weir::sleep(20s);
    EXPECT_EQ(e.get("read")->state, run_state::suspended);
    w.disk().set({});
    EXPECT_EQ(co_await read.result(), 20'000);
  }));
  expect_verified(w);
}

TEST(durable_unrecorded_command, is_tried_again_after_an_error_of_the_disk) {
  const stage on;
  refusing_disk disk;
  durable::engine_options options = options_for(on);
  options.disk = &disk;
  auto use = [&](durable::engine& e) -> task<> {
    auto keep = co_await e.start<int>("o/keep", {.key = "k"}, 1);
    EXPECT_EQ(co_await keep.result(), 1);
    disk.refuse("blob", EIO, 3);
    auto read = co_await e.start<int>("o/read", {.id = "read", .key = "k"}, 1);
    EXPECT_EQ(co_await read.result(), 20'000);
    EXPECT_EQ(disk.refusals, 0);
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, add_unrecorded, use));
}

namespace {

task<int> fails_with_a_large_fact(int) {
  co_await weir::sleep(1s);
  co_await weir::step("x", [] { throw weir::terminal_error("small").with("fact", long_name); });
  co_return 1;
}

}  // namespace

TEST(durable_unrecorded_command, an_error_whose_facts_have_no_room_is_still_an_answer) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  const installer setup = [](durable::engine& e) { e.add("f", fails_with_a_large_fact); };
  w.run(with_open_engine(on_disk(w), setup, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("f", {.id = "f"}, 1);
    w.disk().set({.space = 1});
    co_await weir::sleep(20s);
    EXPECT_EQ(e.get("f")->state, run_state::failed) << e.get("f")->message;
  }));
}
