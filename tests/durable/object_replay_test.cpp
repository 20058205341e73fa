// SPDX-License-Identifier: MIT
// Fork, restart, verify and replay of the runs of keyed objects, in journals with and without a
// key.
#include <sstream>

#include "durable/support/stage.hpp"

using namespace durable_test;

namespace {

const std::string journal_key(32, 'k');

int bonus = 0;  // what the present code adds

/// Adds its input to the sum of its key; an effect in between.
task<int> adds_up(int n) {
  auto sum = weir::stored<int>("sum");
  const int old = (co_await sum.get()).value_or(0);
  const int step = co_await weir::step("bonus", [] { return bonus; });
  sum.set(old + n + step);
  co_return old + n + step;
}

task<int> adds_up_when_told(int n) {
  auto sum = weir::stored<int>("sum");
  const int old = (co_await sum.get()).value_or(0);
  const int told = co_await weir::signal<int>("go").wait();
  sum.set(old + n + told);
  co_return old + n + told;
}

task<int> adds_up_otherwise(int n) {
  auto sum = weir::stored<int>("total");
  const int old = (co_await sum.get()).value_or(0);
  sum.set(old + n);
  co_return old + n;
}

task<int> tells_the_sum() { co_return (co_await weir::stored<int>("sum").get()).value_or(0); }

void add_sums(durable::engine& e) {
  e.add_object(
      "o",
      {{"add", adds_up}, {"told", adds_up_when_told}, {"sum", durable::shared(tells_the_sum)}});
}

void add_other_sums(durable::engine& e) {
  e.add_object("o", {{"add", adds_up_otherwise},
                     {"told", adds_up_when_told},
                     {"sum", durable::shared(tells_the_sum)}});
}

durable::engine_options object_options(const stage& on, bool sealed) {
  durable::engine_options options = options_for(on);
  if (sealed) options.encryption_key = journal_key;
  return options;
}

void object_session(const stage& on, bool sealed, const user& use, weir::duration later = 0s) {
  sim::run({.seed = 1, .start_time = day0 + later},
           with_open_engine(object_options(on, sealed), add_sums, use));
}

task<int> added(durable::engine& e, const char* id, const char* key, int n) {
  auto run = co_await e.start<int>("o/add", {.id = id, .key = key}, n);
  co_return co_await run.result();
}

task<int> sum_of(durable::engine& e, const char* key) {
  auto run = co_await e.start<int>("o/sum", {.key = key}, weir::unit{});
  co_return co_await run.result();
}

task<int> result_of(durable::engine& e, const char* handler, std::string id, const char* key) {
  auto run = co_await e.start<int>(handler, {.id = id, .key = key}, 0);
  co_return co_await run.result();
}

durable::replay_report verify_objects(const stage& on, bool sealed, const installer& setup,
                                      const std::string& id = {}) {
  durable::replay_report report;
  auto body = [&](durable::engine& e) -> task<> {
    setup(e);
    if (id.empty()) {
      report = co_await e.verify();
    } else {
      report = co_await e.replay(id);
    }
  };
  sim::run({.seed = 1, .start_time = day0 + 1000h},
           durable::with_engine(object_options(on, sealed), body));
  return report;
}

std::string text_of_report(const durable::replay_report& report) {
  std::ostringstream text;
  text << report;
  return text.str();
}

class durable_object_replay : public testing::TestWithParam<bool> {};

std::string with_or_without_key(const testing::TestParamInfo<bool>& info) {
  return info.param ? "sealed" : "plain";
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(journals, durable_object_replay, testing::Bool(), with_or_without_key);

TEST_P(durable_object_replay, a_restarted_turn_is_a_turn_of_its_own_on_the_present_state) {
  const stage on;
  bonus = 0;
  object_session(on, GetParam(), [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await added(e, "a", "k", 1), 1);
    EXPECT_EQ(co_await added(e, "b", "k", 10), 11);
    bonus = 100;
    co_await e.restart("a");
    EXPECT_EQ(co_await result_of(e, "o/add", "a", "k"), 112);
    EXPECT_EQ(co_await sum_of(e, "k"), 112);
    EXPECT_EQ(co_await sum_of(e, "other"), 0);
  });
  object_session(
      on, GetParam(),
      [](durable::engine& e) -> task<> {
        EXPECT_EQ(co_await result_of(e, "o/add", "a", "k"), 112);
        EXPECT_EQ(co_await sum_of(e, "k"), 112);
      },
      1h);
  EXPECT_TRUE(verify_objects(on, GetParam(), add_sums).ok());
}

TEST_P(durable_object_replay, a_turn_restarted_while_it_runs_keeps_its_place_before_the_others) {
  const stage on;
  object_session(on, GetParam(), [](durable::engine& e) -> task<> {
    auto first = co_await e.start<int>("o/told", {.id = "a", .key = "k"}, 1);
    auto second = co_await e.start<int>("o/told", {.id = "b", .key = "k"}, 10);
    co_await weir::sleep(1s);
    co_await e.restart("a");
    co_await weir::sleep(1s);
    EXPECT_TRUE(co_await e.signal("b", "go", 0));  // it is kept: its turn has not come
    EXPECT_TRUE(co_await e.signal("a", "go", 100));
    EXPECT_EQ(co_await first.result(), 101);
    EXPECT_EQ(co_await second.result(), 111);
  });
  const auto report = verify_objects(on, GetParam(), add_sums);
  EXPECT_TRUE(report.ok()) << text_of_report(report);
}

// Its changes are made to the state of the key when its turn ends, so they must not follow from a
// value that was read long before.
TEST_P(durable_object_replay, a_fork_of_a_turn_takes_a_turn_and_must_not_keep_what_was_read) {
  const stage on;
  bonus = 0;
  object_session(on, GetParam(), [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await added(e, "a", "k", 1), 1);
    EXPECT_EQ(co_await added(e, "b", "k", 10), 11);
    bonus = 100;
    EXPECT_EQ(co_await e.fork("b", 0, {.id = "fresh"}), "fresh");
    EXPECT_EQ(co_await result_of(e, "o/add", "fresh", "k"), 121);  // read the present state
    const auto error = co_await test_support::attempt([&] { return e.fork("b", 1); });
    EXPECT_EQ(test_support::code_of(error), errc::invalid_argument);
    for (const char* part : {"has read stored 'sum' as command 1 of its handler", "at step 0"})
      EXPECT_TRUE(test_support::contains(test_support::what_of(error), part))
          << test_support::what_of(error);
    EXPECT_EQ(co_await sum_of(e, "k"), 121);
    EXPECT_EQ(co_await result_of(e, "o/add", "b", "k"), 11);
  });
  object_session(
      on, GetParam(),
      [](durable::engine& e) -> task<> {
        EXPECT_EQ(co_await sum_of(e, "k"), 121);
        EXPECT_EQ(co_await added(e, "c", "k", 1), 222);
      },
      1h);
  const auto report = verify_objects(on, GetParam(), add_sums);
  EXPECT_TRUE(report.ok()) << text_of_report(report);
}

TEST_P(durable_object_replay, a_fork_of_a_turn_that_runs_waits_for_its_end) {
  const stage on;
  object_session(on, GetParam(), [](durable::engine& e) -> task<> {
    auto first = co_await e.start<int>("o/told", {.id = "a", .key = "k"}, 1);
    co_await weir::sleep(1s);
    EXPECT_EQ(co_await e.fork("a", 0, {.id = "f"}), "f");
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("f")->state, durable::run_state::suspended);
    EXPECT_TRUE(test_support::contains(e.get("f")->message, "waits for its turn"));
    EXPECT_TRUE(co_await e.signal("a", "go", 100));
    EXPECT_EQ(co_await first.result(), 101);
    EXPECT_TRUE(co_await e.signal("f", "go", 1000));
    EXPECT_EQ(co_await result_of(e, "o/told", "f", "k"), 1102);
  });
}

TEST_P(durable_object_replay, verify_and_replay_read_what_was_recorded_and_change_nothing) {
  const stage on;
  bonus = 0;
  object_session(on, GetParam(), [](durable::engine& e) -> task<> {
    for (int i = 0; i < 5; ++i) {
      const std::string id = "a" + std::to_string(i);
      (void)co_await added(e, id.c_str(), "k", i);
    }
    EXPECT_EQ(co_await sum_of(e, "k"), 10);
    (void)co_await e.start<int>("o/told", {.id = "open", .key = "k"}, 1);
    (void)co_await e.start<int>("o/told", {.id = "queued", .key = "k"}, 2);
    co_await weir::sleep(1s);
  });
  bonus = 7;  // a step that was done is not done again
  const auto all = verify_objects(on, GetParam(), add_sums);
  EXPECT_TRUE(all.ok()) << text_of_report(all);
  EXPECT_EQ(all.runs, 8u);
  for (const char* id : {"a3", "open", "queued"}) {
    const auto one = verify_objects(on, GetParam(), add_sums, id);
    EXPECT_TRUE(one.ok()) << text_of_report(one);
    EXPECT_EQ(one.runs, 1u);
  }
  const auto changed = verify_objects(on, GetParam(), add_other_sums);
  EXPECT_EQ(changed.differences.size(), 5u) << text_of_report(changed);
  EXPECT_TRUE(test_support::contains(text_of_report(changed), "stored 'sum'"));
  object_session(
      on, GetParam(),
      [](durable::engine& e) -> task<> {
        EXPECT_TRUE(co_await e.signal("open", "go", 0));
        EXPECT_TRUE(co_await e.signal("queued", "go", 0));
        EXPECT_EQ(co_await result_of(e, "o/told", "queued", "k"), 13);
      },
      1h);
}

TEST(durable_object_replay_keys, verify_of_a_sealed_journal_without_its_key_is_refused) {
  const stage on;
  bonus = 0;
  object_session(
      on, true, [](durable::engine& e) -> task<> { EXPECT_EQ(co_await added(e, "a", "k", 1), 1); });
  const auto refused =
      test_support::thrown_by([&] { return verify_objects(on, false, add_sums).runs; });
  EXPECT_EQ(test_support::code_of(refused), errc::wrong_key);
}
