// SPDX-License-Identifier: MIT
// Engines on a disk that fails: nothing acknowledged is lost, and every failure is reported.
#include <set>

#include "durable/support/crashes.hpp"
#include "support/disk_support.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

void add_twice_and_asks(durable::engine& e) {
  e.add("twice", twice);
  e.add("asks", asks);
}

task<std::error_code> code_of_start(durable::engine& e, std::string id) {
  const auto error =
      co_await test_support::attempt([&] { return e.start<int>("twice", {.id = id}, 1); });
  co_return test_support::code_of(error);
}

/// A process: whatever its end, it must be a value or the failure of the journal.
void troubled_process(sim::world& w, user use) {
  const auto error = test_support::thrown_by(
      [&] { w.run(with_open_engine(on_disk(w), add_twice_and_asks, std::move(use))); });
  if (error == nullptr) return;
  const auto code = test_support::code_of(error);
  EXPECT_TRUE(code == errc::journal_failed || code == errc::journal_full)
      << test_support::what_of(error);
}

/// After a power failure, on a disk that works again, all of these runs end well.
void expect_all(sim::world& w, const std::set<std::string>& acknowledged) {
  w.disk().set({});
  w.disk().crash();
  w.run(with_open_engine(on_disk(w), add_twice_and_asks, [&](durable::engine& e) -> task<> {
    for (const std::string& id : acknowledged) {
      EXPECT_TRUE(e.get(id).has_value()) << id;
      auto run = co_await e.start<int>("twice", {.id = id}, 1);
      EXPECT_EQ(co_await run.result(), 2) << id;
    }
  }));
}

}  // namespace

TEST(durable_fault, a_failed_sync_fails_the_call_and_every_call_after_it) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  std::set<std::string> acknowledged;
  troubled_process(w, [&](durable::engine& e) -> task<> {
    auto good = co_await e.start<int>("twice", {.id = "good"}, 1);
    EXPECT_EQ(co_await good.result(), 2);
    auto parked = co_await e.start<std::string>("asks", {.id = "asks"}, 1);
    const std::string id = co_await last_noted("id ");
    acknowledged.insert("good");
    w.disk().fail_next_sync();
    EXPECT_EQ(co_await code_of_start(e, "bad"), errc::journal_failed);
    // Never again, although the disk works.
    EXPECT_EQ(co_await code_of_start(e, "later"), errc::journal_failed);
    EXPECT_EQ(co_await code_of_start(e, "good"), errc::journal_failed);
    auto resolves = [&] { return e.resolve(id, std::string("x")); };
    EXPECT_EQ(test_support::code_of(co_await test_support::attempt(resolves)),
              errc::journal_failed);
    auto signals = [&] { return e.signal("asks", "s", 1); };
    EXPECT_EQ(test_support::code_of(co_await test_support::attempt(signals)), errc::journal_failed);
    auto waits = [&] { return parked.result(); };
    EXPECT_EQ(test_support::code_of(co_await test_support::attempt(waits)), errc::journal_failed);
  });
  expect_all(w, acknowledged);
}

TEST(durable_fault, those_who_wait_for_a_result_hear_of_a_failed_sync) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  troubled_process(w, [&](durable::engine& e) -> task<> {
    auto parked = co_await e.start<std::string>("asks", {.id = "asks"}, 1);
    (void)co_await last_noted("id ");
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto waits = [&]() -> task<std::error_code> {
        const auto error = co_await test_support::attempt([&] { return parked.result(); });
        co_return test_support::code_of(error);
      };
      auto waiter = s.spawn(waits);
      co_await weir::sleep(1s);
      w.disk().fail_next_sync();
      EXPECT_EQ(co_await code_of_start(e, "bad"), errc::journal_failed);
      const std::error_code heard = co_await waiter;
      EXPECT_EQ(heard, errc::journal_failed);
    });
  });
}

TEST(durable_fault, a_step_does_not_run_on_when_its_result_could_not_be_recorded) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  auto handler = [&](int) -> task<int> {
    (void)co_await weir::step("one", [&] {
      note("one");
      w.disk().fail_next_sync();
    });
    co_await weir::step("two", [] { note("two"); });
    co_return 1;
  };
  const auto error = test_support::thrown_by([&] {
    w.run(with_open_engine(on_disk(w), as_h(handler), [](durable::engine& e) -> task<> {
      auto run = co_await e.start<int>("h", {.id = "r"}, 1);
      const auto heard = co_await test_support::attempt([&] { return run.result(); });
      EXPECT_EQ(test_support::code_of(heard), errc::journal_failed) << test_support::what_of(heard);
    }));
  });
  (void)error;
  EXPECT_EQ(times("one"), 1);
  EXPECT_EQ(times("two"), 0);
}

TEST(durable_fault, errors_of_reading_and_writing_are_failures_of_the_journal) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  std::set<std::string> acknowledged;
  troubled_process(w, [&](durable::engine& e) -> task<> {
    EXPECT_FALSE(co_await code_of_start(e, "good"));
    acknowledged.insert("good");
    w.disk().set({.eio = 1});
    EXPECT_EQ(co_await code_of_start(e, "bad"), errc::journal_failed);
    w.disk().set({});
    EXPECT_EQ(co_await code_of_start(e, "later"), errc::journal_failed);
  });
  w.disk().set({.eio = 1});
  const auto error = test_support::thrown_by([&] {
    w.run(with_open_engine(on_disk(w), add_twice_and_asks,
                           [](durable::engine&) -> task<> { co_return; }));
  });
  EXPECT_EQ(test_support::code_of(error), errc::journal_failed) << test_support::what_of(error);
  expect_all(w, acknowledged);
}

TEST(durable_fault, a_full_disk_refuses_new_starts_and_loses_nothing) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  std::set<std::string> acknowledged;
  troubled_process(w, [&](durable::engine& e) -> task<> {
    w.disk().set({.space = 6 * smallest_segment});
    std::error_code code;
    for (int i = 0; i < 20'000 && !code; ++i) {
      const std::string id = "r" + std::to_string(i);
      code = co_await code_of_start(e, id);
      if (!code) acknowledged.insert(id);
    }
    EXPECT_EQ(code, errc::journal_full) << code.message();
    EXPECT_GT(acknowledged.size(), 10u);
  });
  expect_all(w, acknowledged);
}

TEST(durable_fault, runs_that_are_under_way_may_end_on_a_disk_that_is_nearly_full) {
  // behaviours 1: a reserved segment lets running runs finish; new starts are rejected.
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  troubled_process(w, [&](durable::engine& e) -> task<> {
    auto parked = co_await e.start<std::string>("asks", {.id = "asks"}, 1);
    const std::string id = co_await last_noted("id ");
    w.disk().set({.space = 6 * smallest_segment});
    std::error_code code;
    for (int i = 0; i < 20'000 && !code; ++i) {
      code = co_await code_of_start(e, "r" + std::to_string(i));
    }
    EXPECT_EQ(code, errc::journal_full) << code.message();
    EXPECT_TRUE(co_await e.resolve(id, std::string("in time")));
    EXPECT_EQ(co_await parked.result(), "in time");
  });
}

TEST(durable_fault, short_writes_are_continued) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.disk().set({.short_write = 0.9});
  std::set<std::string> acknowledged;
  troubled_process(w, [&](durable::engine& e) -> task<> {
    for (int i = 0; i < 200; ++i) {
      const std::string id = "r" + std::to_string(i);
      EXPECT_FALSE(co_await code_of_start(e, id));
      acknowledged.insert(id);
    }
  });
  expect_all(w, acknowledged);
}

TEST(durable_fault, whatever_fails_and_whenever_what_was_acknowledged_is_there_afterwards) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const stage on;
    sim::world w({.seed = seed, .start_time = day0});
    disk_support::generator random(seed);
    std::set<std::string> acknowledged;
    int number = 0;
    for (int life = 0; life < 4; ++life) {
      w.disk().set({.torn = 0.5,
                    .reorder = 0.3,
                    .short_write = 0.2,
                    .eio = random.chance(0.5) ? 0.003 : 0,
                    .sync_error = random.chance(0.5) ? 0.02 : 0});
      troubled_process(w, [&](durable::engine& e) -> task<> {
        for (int i = 0; i < 20; ++i) {
          const std::string id = "r" + std::to_string(number++);
          const auto error =
              co_await test_support::attempt([&] { return e.start<int>("twice", {.id = id}, 1); });
          if (error != nullptr) {
            EXPECT_EQ(test_support::code_of(error), errc::journal_failed)
                << test_support::what_of(error);
            break;
          }
          acknowledged.insert(id);
        }
      });
      w.disk().crash();
    }
    expect_all(w, acknowledged);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(durable_fault, the_result_that_somebody_saw_is_there_after_a_power_failure) {
  const stage on;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sim::world w({.seed = seed, .start_time = day0});
    w.disk().set({.torn = 0.5, .reorder = 0.5});
    static int executions = 0;
    executions = 0;
    auto handler = [](int) -> task<int> {
      co_return co_await weir::step("once", [] { return ++executions; });
    };
    w.run(with_open_engine(on_disk(w), as_h(handler), [](durable::engine& e) -> task<> {
      auto run = co_await e.start<int>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await run.result(), 1);
    }));
    w.disk().crash();
    w.run(with_open_engine(on_disk(w), as_h(handler), [](durable::engine& e) -> task<> {
      EXPECT_EQ(e.get("r")->state, run_state::completed);
      auto run = co_await e.start<int>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await run.result(), 1);
    }));
    EXPECT_EQ(executions, 1);
  }
}

// Promise: an acknowledged result is on disk, and damage is refused. Closing writes down what is
// there, so that the end of the log is proven like the rest of it.
TEST(durable_fault, after_a_close_the_end_of_the_log_is_missed_when_it_is_gone) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  troubled_process(w, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("twice", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), 2);
  });
  const std::string path = "/journal/seg-0000000000000001.wlog";
  const std::string whole = disk_support::get(w.disk(), path);
  const std::size_t used = whole.find_last_not_of('\0') + 1;
  auto file = w.disk().open(path, weir::open_mode::read_write);
  for (const bool cut : {false, true}) {
    if (cut) file->truncate(used - 100);
    if (!cut) disk_support::put(*file, std::string(100, '\0'), used - 100);
    const auto error = test_support::thrown_by([&] {
      w.run(with_open_engine(on_disk(w), add_twice_and_asks,
                             [](durable::engine&) -> task<> { co_return; }));
    });
    EXPECT_EQ(test_support::code_of(error), errc::journal_corrupt) << test_support::what_of(error);
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), path))
        << test_support::what_of(error);
    EXPECT_EQ(file->size(), cut ? used - 100 : whole.size());
  }
  disk_support::put(*file, whole);
  expect_all(w, {"r"});
}
