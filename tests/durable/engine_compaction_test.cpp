// SPDX-License-Identifier: MIT
// The engine compacts its journal by itself, beside live runs; and a closed journal is compacted by
// a function.
#include "durable/compact_journal.hpp"
#include "durable/journal_files.hpp"
#include "durable/snapshot.hpp"
#include "durable/support/crashes.hpp"
#include "support/allocations.hpp"

using namespace durable_test;

namespace {

durable::engine_options forgetting(const stage& on, weir::duration retention) {
  durable::engine_options options = options_for(on);
  options.retention = retention;
  return options;
}

task<std::string> says(int n) {
  const std::string text(1000, static_cast<char>('a' + n % 26));
  co_return co_await weir::step("say", [&] { return text; });
}

/// Asks, so that it lasts over everything else, after some steps.
task<std::string> steps_and_asks(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await give("step", 1);
  auto answer = weir::awakeable<std::string>("answer");
  co_await weir::step("ask", [&] { note("id " + std::string(answer.id())); });
  co_return std::to_string(sum) + co_await answer.wait();
}

void add_both(durable::engine& e) {
  e.add("says", says);
  e.add("asks", steps_and_asks);
}

task<> say(durable::engine& e, int from, int to) {
  for (int i = from; i < to; ++i) {
    auto run = co_await e.start<std::string>("says", {.id = "s" + std::to_string(i)}, i);
    (void)co_await run.result();
  }
}

/// Before the present of the machine, whose clock the function for closed journals uses.
constexpr weir::duration long_ago = -24h * 365 * 10;

struct directory_state {
  std::size_t segments = 0;
  std::size_t snapshots = 0;
};

directory_state look_at(const stage& on) {
  directory_state found;
  for (const auto& entry : std::filesystem::directory_iterator(on.journal())) {
    const std::string name = entry.path().filename().string();
    if (weir::detail::segment_number(name)) ++found.segments;
    if (weir::detail::snapshot_number(name)) ++found.snapshots;
  }
  return found;
}

void in_engine(const durable::engine_options& options, user use, weir::duration later = 0ns) {
  sim::run({.seed = 1, .start_time = day0 + later},
           with_open_engine(options, add_both, std::move(use)));
}

}  // namespace

TEST(durable_compaction, keeps_the_log_small_beside_a_run_that_lasts) {
  const stage on;
  const auto options = forgetting(on, 1min);
  std::string id;
  in_engine(options, [&](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("asks", {.id = "long"}, 20);
    id = co_await last_noted("id ");
    for (int i = 0; i < 20; ++i) {
      co_await say(e, 100 * i, 100 * i + 100);  // about three segments
      co_await weir::sleep(2min);
      EXPECT_LE(look_at(on).segments, 8u) << i;
    }
    EXPECT_EQ(look_at(on).snapshots, 1u);
    EXPECT_EQ(e.list().size(), 1u);
  });
  in_engine(
      options,
      [&](durable::engine& e) -> task<> {
        co_await weir::sleep(1s);  // until the run has been replayed
        EXPECT_EQ(e.list().size(), 1u);
        EXPECT_TRUE(co_await e.resolve(id, std::string(" yes")));
        auto run = co_await e.start<std::string>("asks", {.id = "long"}, 20);
        EXPECT_EQ(co_await run.result(), "20 yes");
        co_await say(e, 0, 1);
      },
      10h);
  EXPECT_EQ(times("step"), 20);
}

TEST(durable_compaction, keeps_the_results_of_runs_whose_retention_is_not_over) {
  const stage on;
  durable::engine_options options = forgetting(on, 10h);
  in_engine(options, [&](durable::engine& e) -> task<> { co_await say(e, 0, 150); });
  in_engine(
      options,
      [&](durable::engine& e) -> task<> {
        co_await say(e, 150, 200);
        co_await weir::sleep(5h + 1min);  // the first ones are forgotten
        co_await weir::sleep(1s);
        EXPECT_GE(look_at(on).snapshots, 1u);
        EXPECT_EQ(e.list().size(), 50u);
        for (int i = 150; i < 200; ++i) {
          auto run = co_await e.start<std::string>("says", {.id = "s" + std::to_string(i)}, 0);
          EXPECT_EQ(co_await run.result(), std::string(1000, static_cast<char>('a' + i % 26)));
        }
      },
      5h);
  in_engine(
      options,
      [&](durable::engine& e) -> task<> {
        co_await weir::sleep(1s);
        EXPECT_EQ(e.list().size(), 50u);
      },
      11h);
}

// The numbers of runs are in the ids of awakeables, so they are not used again.
TEST(durable_compaction, does_not_use_the_numbers_of_forgotten_runs_again) {
  const stage on;
  const auto options = forgetting(on, 0s);
  std::string old_id;
  in_engine(
      options,
      [&](durable::engine& e) -> task<> {
        auto run = co_await e.start<std::string>("asks", {.id = "a"}, 1);
        old_id = co_await last_noted("id ");
        EXPECT_TRUE(co_await e.resolve(old_id, std::string("!")));
        (void)co_await run.result();
      },
      long_ago);
  whole_life([&] { (void)weir::detail::compact_journal(options); });
  EXPECT_EQ(look_at(on).snapshots, 1u);
  in_engine(
      options,
      [&](durable::engine& e) -> task<> {
        (void)co_await e.start<std::string>("asks", {.id = "b"}, 1);
        const std::string id = co_await last_noted("id ", 2);
        EXPECT_NE(id, old_id);
        EXPECT_FALSE(co_await e.resolve(old_id, std::string("?")));
        EXPECT_TRUE(co_await e.resolve(id, std::string("!")));
      },
      long_ago + 1h);
}

TEST(durable_compaction, of_a_closed_journal_forgets_what_is_due_and_keeps_the_rest) {
  const stage on;
  const auto options = forgetting(on, std::chrono::hours(24 * 365 * 100));
  in_engine(
      options,
      [&](durable::engine& e) -> task<> {
        co_await say(e, 0, 300);
        (void)co_await e.start<std::string>("asks", {.id = "long"}, 3);
        (void)co_await last_noted("id ");
      },
      long_ago);
  auto all_due = options;
  all_due.retention = 0s;
  whole_life([&] {  // in another process, because it runs a loop with threads
    const auto report = weir::detail::compact_journal(all_due);
    EXPECT_LT(report.bytes_after, report.bytes_before / 2);
  });
  EXPECT_EQ(look_at(on).snapshots, 1u);
  in_engine(
      options,
      [&](durable::engine& e) -> task<> {
        const auto left = e.list();
        EXPECT_EQ(left.size(), 1u);
        EXPECT_EQ(left.at(0).id, "long");
        EXPECT_TRUE(co_await e.resolve(noted("id ").back(), std::string("!")));
        auto run = co_await e.start<std::string>("asks", {.id = "long"}, 3);
        EXPECT_EQ(co_await run.result(), "3!");
      },
      long_ago + 1h);
  EXPECT_EQ(times("step"), 3);
}

TEST(durable_compaction, of_what_is_no_journal_is_refused_and_makes_none) {
  const stage on;
  auto options = options_for(on);
  try {
    (void)weir::detail::compact_journal(options);
    ADD_FAILURE();
  } catch (const weir::error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
  }
  EXPECT_FALSE(std::filesystem::exists(on.journal()));
}

// ------------------------------------------------------------------------------------------ growth

TEST(durable_compaction, opening_makes_no_allocation_per_ended_run) {
  const auto allocations_for = [](int n) {
    const stage on;
    durable::engine_options options = forgetting(on, 10'000h);
    options.segment_bytes = 64 * smallest_segment;
    in_engine(options, [&](durable::engine& e) -> task<> { co_await say(e, 0, n); });
    long made = 0;
    auto body = [&](durable::engine& e) -> task<> {
      add_both(e);
      test_support::begin_to_count();
      co_await e.open();
      made = test_support::end_count();
      EXPECT_EQ(e.get("s1")->state, durable::run_state::completed);
    };
    sim::run({.seed = 1, .start_time = day0 + 1h},
             [&] { return durable::with_engine(options, body); });
    return made;
  };
  const long few = allocations_for(200);
  const long many = allocations_for(2200);
  EXPECT_LE(many - few, 2000 / 50) << few << " for 200, " << many << " for 2200";
}

namespace {

task<int> counts(int n) {
  auto total = weir::stored<int>("total");
  const std::optional<int> old = co_await total.get();
  const int sum = old.value_or(0) + n;
  total.set(sum);
  auto text = weir::stored<std::string>("text");
  text.set(std::string(1000, 'x'));
  co_return sum;
}

task<bool> empties(int) {
  weir::stored<int>("total").clear();
  weir::stored<std::string>("text").clear();
  co_return true;
}

/// One of the runs that it sends ends at once, the other one lasts.
task<int> sends_both(int n) {
  co_await weir::send("says", n, {.id = "short"});
  co_await weir::send("asks", 1, {.id = "lasting"});
  co_return n;
}

void add_counters(durable::engine& e) {
  add_both(e);
  e.add_object("counter", {{"add", counts}, {"empty", empties}, {"send", sends_both}});
}

void count_in(const durable::engine_options& options, user use, weir::duration later = 0ns) {
  sim::run({.seed = 1, .start_time = day0 + later},
           with_open_engine(options, add_counters, std::move(use)));
}

task<int> add_to(durable::engine& e, std::string id, std::string key, int n) {
  auto run = co_await e.start<int>("counter/add", {.id = id, .key = key}, n);
  co_return co_await run.result();
}

}  // namespace

TEST(durable_compaction, keeps_the_states_of_objects_whose_turns_are_forgotten) {
  const stage on;
  const auto options = forgetting(on, 1min);
  count_in(options, [&](durable::engine& e) -> task<> {
    for (int i = 0; i < 300; ++i)
      co_await add_to(e, "a" + std::to_string(i), "k" + std::to_string(i % 3), i);
    {
      auto run = co_await e.start<bool>("counter/empty", {.id = "clear", .key = "k2"}, 0);
      EXPECT_TRUE(co_await run.result());
    }
    co_await weir::sleep(2min);
    co_await say(e, 0, 10);
    co_await weir::sleep(2min);
    EXPECT_GE(look_at(on).snapshots, 1u);
    EXPECT_TRUE(e.list().empty());
  });
  count_in(
      options,
      [&](durable::engine& e) -> task<> {
        EXPECT_EQ(co_await add_to(e, "b0", "k0", 0), 99 * 100 / 2 * 3);
        EXPECT_EQ(co_await add_to(e, "b1", "k1", 0), 99 * 100 / 2 * 3 + 100);
        EXPECT_EQ(co_await add_to(e, "b2", "k2", 7), 7);
      },
      1h);
}

TEST(durable_compaction, keeps_a_run_that_a_forgotten_turn_has_sent_and_forgets_its_sibling) {
  const stage on;
  const auto options = forgetting(on, 1min);
  std::string id;
  count_in(options, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("counter/send", {.id = "t", .key = "k"}, 1);
    EXPECT_EQ(co_await run.result(), 1);
    id = co_await last_noted("id ");
    for (int i = 0; i < 3; ++i) {
      co_await say(e, 0, 100);
      co_await weir::sleep(2min);
    }
    EXPECT_GE(look_at(on).snapshots, 1u);
  });
  for (int life = 0; life < 2; ++life)
    count_in(
        options,
        [&](durable::engine& e) -> task<> {
          co_await weir::sleep(1s);
          EXPECT_EQ(e.list().size(), 1u);
          EXPECT_FALSE(e.get("short"));
          EXPECT_TRUE(e.get("lasting"));
          if (life == 0) co_return;
          EXPECT_TRUE(co_await e.resolve(id, std::string(" yes")));
          auto run = co_await e.start<std::string>("asks", {.id = "lasting"}, 1);
          EXPECT_EQ(co_await run.result(), "1 yes");
        },
        1h + life * 1h);
  EXPECT_EQ(times("step"), 1);
}
