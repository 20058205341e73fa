// SPDX-License-Identifier: MIT
// One run with many steps or many fibers, and many runs at once: what the engine visits, allocates
// and copies grows in proportion, also in the replay. Counted, not timed.
#include <cstdint>
#include <cstdlib>
#include <functional>

#include "durable/support/stage.hpp"
#include "durable/visits.hpp"
#include "support/allocations.hpp"

using namespace durable_test;

namespace {

using weir::detail::list_visits;

/// The larger size; `./dev torture` sets that of the promise.
int growth_size(int usual, int promised) {
  const char* given = std::getenv("WEIR_GROWTH");
  if (given == nullptr) return usual;
  return static_cast<int>(promised * std::strtod(given, nullptr));
}

struct cost {
  std::uint64_t visits = 0;
  long allocations = 0;
  long bytes = 0;
};

/// What a session costs in which `use` is called with an open engine.
cost cost_of(const stage& on, const installer& setup, const user& use, weir::duration later = 0s) {
  durable::engine_options options = options_for(on);
  options.max_live = 1'000'000;
  options.segment_bytes = 64 * smallest_segment;
  const std::uint64_t before = list_visits;
  test_support::begin_to_count();
  sim::run({.seed = 1, .start_time = day0 + later}, with_open_engine(options, setup, use));
  return {list_visits - before, test_support::end_count(), test_support::allocated_bytes};
}

/// Each: of the session that does something `n` times, and of the one that replays it.
struct costs {
  cost first;
  cost again;
};

/// Four times as much may cost little more than four times.
void expect_grows_linearly(const std::function<costs(int)>& of, int size) {
  (void)of(size);  // then the frame cache has what both need
  const costs few = of(size / 4);
  const costs many = of(size);
  const auto compare = [size](const char* what, const cost& a, const cost& b) {
    EXPECT_LE(b.visits, 2 * static_cast<std::uint64_t>(size) + 100) << what;  // a few for each
    EXPECT_LE(b.allocations, 5 * a.allocations) << what;
    EXPECT_LE(b.bytes, 6 * a.bytes) << what;  // vectors double
    std::printf("%s of %d: %llu visits, %ld allocations, %ld bytes; of %d: %llu, %ld, %ld\n", what,
                size / 4, static_cast<unsigned long long>(a.visits), a.allocations, a.bytes, size,
                static_cast<unsigned long long>(b.visits), b.allocations, b.bytes);
  };
  compare("run", few.first, many.first);
  compare("replay", few.again, many.again);
}

/// Runs "r" until it waits for "go", and again until its end.
template <class H>
costs costs_of_one(H handler, int n) {
  const stage on;
  costs all;
  all.first = cost_of(on, as_h(handler), [n](durable::engine& e) -> task<> {
    (void)co_await e.start<int>("h", {.id = "r"}, n);
    co_await weir::sleep(1s);
  });
  all.again = cost_of(
      on, as_h(handler),
      [n](durable::engine& e) -> task<> {
        auto run = co_await e.start<int>("h", {.id = "r"}, n);
        EXPECT_TRUE(co_await e.signal("r", "go", 0));
        EXPECT_EQ(co_await run.result(), n);
      },
      1h);
  return all;
}

task<int> steps_and_waits(int n) {
  int done = 0;
  for (int i = 0; i < n; ++i) done += co_await weir::step("one", [] { return 1; });
  co_return done + co_await weir::signal<int>("go").wait();
}

task<int> spawns_and_waits(int n) {
  int done = 0;
  auto child = [&]() -> task<> { done += co_await weir::step("one", [] { return 1; }); };
  auto body = [&](weir::scope& s) -> task<> {
    for (int i = 0; i < n; ++i) s.spawn(child());
    co_return;
  };
  co_await weir::with_scope(body);
  co_return done + co_await weir::signal<int>("go").wait();
}

task<int> sleeps_an_hour(int n) {
  co_await weir::sleep(1h);
  co_return n;
}

task<> start_runs(durable::engine& e, int n, bool results) {
  for (int i = 0; i < n; ++i) {
    auto run = co_await e.start<int>("h", {.id = "r" + std::to_string(i)}, i);
    if (!results) continue;
    EXPECT_EQ(co_await run.result(), i);
  }
}

costs costs_of_many_runs(int n) {
  const stage on;
  costs all;
  all.first = cost_of(on, as_h(sleeps_an_hour),
                      [n](durable::engine& e) { return start_runs(e, n, false); });
  all.again = cost_of(
      on, as_h(sleeps_an_hour), [n](durable::engine& e) { return start_runs(e, n, true); }, 2h);
  return all;
}

}  // namespace

TEST(durable_run_growth, the_steps_of_one_run) {
  const int size = growth_size(4'000, 100'000);
  expect_grows_linearly([](int n) { return costs_of_one(steps_and_waits, n); }, size);
}

TEST(durable_run_growth, the_fibers_of_one_run) {
  const int size = growth_size(2'000, 40'000);
  expect_grows_linearly([](int n) { return costs_of_one(spawns_and_waits, n); }, size);
}

TEST(durable_run_growth, runs_at_the_same_time) {
  expect_grows_linearly(costs_of_many_runs, growth_size(2'000, 100'000));
}
