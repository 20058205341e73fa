// SPDX-License-Identifier: MIT
// Several versions of a handler beside each other.
#include "durable/support/crashes.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

task<std::string> version_one(int) {
  (void)co_await give("v1 one", 1);
  co_await weir::sleep(1h);
  (void)co_await give("v1 two", 1);
  co_return "v1";
}

task<std::string> version_two(int) {
  (void)co_await give("v2 one", 1);
  co_return "v2";
}

void both_versions(durable::engine& e) {
  e.add("h", version_one);
  e.add("h", version_two, {.version = 2});
}

void version_two_alone(durable::engine& e) { e.add("h", version_two, {.version = 2}); }

/// A run of version 1 that sleeps.
void leave_old_run(const stage& on) {
  whole_life([&] {
    session_of(on, version_one, [](durable::engine& e) -> task<> {
      (void)co_await e.start<std::string>("h", {.id = "old"}, 1);
      co_await weir::sleep(1min);
    });
  });
}

}  // namespace

TEST(durable_versions, old_runs_keep_theirs_and_new_ones_take_the_highest) {
  const stage on;
  leave_old_run(on);
  whole_life([&] {
    session(on, both_versions, [](durable::engine& e) -> task<> {
      auto fresh = co_await e.start<std::string>("h", {.id = "new"}, 1);
      EXPECT_EQ(co_await fresh.result(), "v2");
      auto old = co_await e.start<std::string>("h", {.id = "old"}, 1);
      EXPECT_EQ(co_await old.result(), "v1");
      EXPECT_EQ(e.get("old")->version, 1);
      EXPECT_EQ(e.get("new")->version, 2);
    });
  });
  EXPECT_EQ(times("v1 one"), 1);
}

TEST(durable_versions, one_that_is_missing_blocks_its_runs_loudly_until_it_is_added) {
  const stage on;
  leave_old_run(on);
  whole_life([&] {
    durable::engine_options options = options_for(on);
    options.report_blocked = true;
    auto use = [](durable::engine& e) -> task<> {
      auto events = e.events();
      co_await weir::sleep(1s);
      const auto blocked = e.list({.state = run_state::blocked});
      EXPECT_EQ(blocked.size(), 1u);
      if (blocked.empty()) co_return;
      EXPECT_EQ(blocked.front().id, "old");
      EXPECT_TRUE(test_support::contains(blocked.front().message, "'h' of version 1"))
          << blocked.front().message;
      const auto event = co_await events.next();
      EXPECT_EQ(event->id, "old");
      EXPECT_EQ(event->state, run_state::blocked);
      auto fresh = co_await e.start<std::string>("h", {.id = "new"}, 1);
      EXPECT_EQ(co_await fresh.result(), "v2");
      e.add("h", version_one);
      auto old = co_await e.start<std::string>("h", {.id = "old"}, 1);
      EXPECT_EQ(co_await old.result(), "v1");
    };
    testing::internal::CaptureStderr();
    sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, version_two_alone, use));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(test_support::contains(said, "durable run 'old' of handler 'h' is blocked"))
        << said;
  });
}

TEST(durable_versions, below_one_or_added_twice_are_refused) {
  const stage on;
  session(on, both_versions, [](durable::engine& e) -> task<> {
    for (const int version : {0, -1, 1, 2}) {
      const auto error =
          test_support::thrown_by([&] { e.add("h", version_two, {.version = version}); });
      EXPECT_EQ(test_support::code_of(error), errc::invalid_argument) << version;
    }
    co_return;
  });
}
