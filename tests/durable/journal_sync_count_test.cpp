// SPDX-License-Identifier: MIT
// How often the disk is synced: once for the start of a run and once for the result of each of its
// steps. Commands and the end of the run are in the same batches.
#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include <gtest/gtest.h>

#include "support/counting_disk.hpp"

namespace {

using weir::task;
using weir_test::counting_disk;

/// A handler that does as many steps as its input says, one after the other.
task<int> steps_in_turn(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await weir::step("add", [i] { return i; });
  co_return sum;
}

/// The same, and each step takes a second.
task<int> slow_steps_in_turn(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i)
    sum += co_await weir::step("add", [i]() -> task<int> {
      co_await weir::sleep(std::chrono::seconds(1));
      co_return i;
    });
  co_return sum;
}

/// As many, all at once.
task<int> steps_at_once(int count) {
  int sum = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < count; ++i)
      s.spawn([](int n, int& to) -> task<> { to += co_await weir::step("add", [n] { return n; }); }(
                                     i, sum));
    co_return;
  });
  co_return sum;
}

/// The syncs of files that `runs` runs need together, without opening and closing the engine.
std::int64_t syncs_of(const char* handler, int steps, int runs) {
  weir::sim::world world;
  counting_disk disk(world.disk());
  std::int64_t syncs = -1;
  auto body = [&](weir::durable::engine& e) -> task<> {
    e.add("in_turn", steps_in_turn);
    e.add("slow_in_turn", slow_steps_in_turn);
    e.add("at_once", steps_at_once);
    co_await e.open();
    const std::int64_t before = disk.syncs;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < runs; ++i)
        s.spawn([](weir::durable::engine& on, const char* name, int count) -> task<> {
          const auto run = co_await on.start<int>(name, {}, count);
          EXPECT_EQ(co_await run.result(), count * (count - 1) / 2);
        }(e, handler, steps));
      co_return;
    });
    syncs = disk.syncs - before;
  };
  world.run([&] {
    return weir::durable::with_engine(
        {.path = "/journal", .segment_bytes = std::int64_t{1} << 20, .disk = &disk}, body);
  });
  return syncs;
}

}  // namespace

TEST(SyncCount, a_run_without_steps_is_one_sync) { EXPECT_EQ(syncs_of("in_turn", 0, 1), 1); }

TEST(SyncCount, a_step_is_one_more) { EXPECT_EQ(syncs_of("in_turn", 1, 1), 2); }

TEST(SyncCount, ten_steps_in_turn_are_eleven) { EXPECT_EQ(syncs_of("in_turn", 10, 1), 11); }

TEST(SyncCount, so_are_ten_slow_steps) { EXPECT_EQ(syncs_of("slow_in_turn", 10, 1), 11); }

TEST(SyncCount, ten_steps_at_once_are_two) { EXPECT_EQ(syncs_of("at_once", 10, 1), 2); }

TEST(SyncCount, runs_in_step_share_them) { EXPECT_EQ(syncs_of("in_turn", 10, 64), 11); }

TEST(SyncCount, nothing_is_synced_while_nothing_happens) {
  weir::sim::world world;
  counting_disk disk(world.disk());
  auto body = [&](weir::durable::engine& e) -> task<> {
    co_await e.open();
    const std::int64_t before = disk.syncs;
    co_await weir::sleep(std::chrono::hours(1));
    EXPECT_EQ(disk.syncs, before);
  };
  world.run([&] { return weir::durable::with_engine({.path = "/journal", .disk = &disk}, body); });
}
