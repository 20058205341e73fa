// SPDX-License-Identifier: MIT
// What an engine keeps of a run that waits, in bytes of the heap: counted, over many runs.
#include "durable/support/stage.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own, and without optimisation frames are
// larger; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN && defined(__OPTIMIZE__)

using namespace durable_test;

namespace {

constexpr int warm_runs = 100;
constexpr int counted_runs = 10'000;

task<int> sleeps_a_day(int n) {
  co_await weir::sleep(24h);
  co_return n;
}

task<int> awaits_an_answer(int n) { co_return n + co_await weir::awakeable<int>("a").wait(); }

task<> start_many(durable::engine& e, int n) {
  for (int i = 0; i < n; ++i) (void)co_await e.start<int>("h", {}, i);
  co_await weir::sleep(1s);
}

/// What one of many runs holds when all of them wait and `max_live` of them are in memory. If tests
/// ran in this process before, it may be less: the frame cache keeps what they have freed.
template <class H>
long bytes_per_run(H handler, std::int64_t max_live, durable::run_state state) {
  const stage on;
  long held = -1;
  durable::engine_options options = options_for(on);
  options.max_live = max_live;
  options.segment_bytes = 64 * smallest_segment;
  auto use = [&](durable::engine& e) -> task<> {
    co_await start_many(e, warm_runs);
    test_support::begin_to_count();
    co_await start_many(e, counted_runs);
    (void)test_support::end_count();
    held = test_support::held_bytes;
    EXPECT_GE(e.list({.state = state}).size(), static_cast<std::size_t>(counted_runs));
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, as_h(handler), use));
  return held / counted_runs;
}

}  // namespace

TEST(durable_run_memory, a_suspended_run_that_sleeps_holds_at_most_400_bytes) {
  const long each = bytes_per_run(sleeps_a_day, 16, durable::run_state::suspended);
  EXPECT_GT(each, 100);
  EXPECT_LE(each, 400);
  RecordProperty("bytes", std::to_string(each));
}

TEST(durable_run_memory, a_suspended_run_that_waits_for_an_answer_holds_at_most_400_bytes) {
  const long each = bytes_per_run(awaits_an_answer, 16, durable::run_state::suspended);
  EXPECT_GT(each, 100);
  EXPECT_LE(each, 400);
  RecordProperty("bytes", std::to_string(each));
}

TEST(durable_run_memory, a_run_that_sleeps_in_memory_holds_at_most_2_kb) {
  const long each = bytes_per_run(sleeps_a_day, 1'000'000, durable::run_state::running);
  EXPECT_GT(each, 100);
  EXPECT_LE(each, 2048);
  RecordProperty("bytes", std::to_string(each));
}

#endif
