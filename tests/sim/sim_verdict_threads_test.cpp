// SPDX-License-Identifier: MIT
// A simulation and real threads: nothing comes in from outside, and two simulations do not mix.
#include <thread>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

template <class F>
std::exception_ptr thrown_on_another_thread(F f) {
  std::exception_ptr error;
  std::thread([&] { error = thrown_by(f); }).join();
  return error;
}

}  // namespace

TEST(foreign_thread, completing_a_suspend_from_it_is_wrong_loop) {
  std::exception_ptr completed, failed;
  int value = sim::run({.seed = 1}, [&]() -> task<int> {
    weir::resumer<int> answer;
    co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
      s.spawn([&]() -> task<> {
        co_await weir::sleep(1ms);
        completed = thrown_on_another_thread([&] { answer.complete(1); });
        failed = thrown_on_another_thread([&] { answer.fail(std::make_exception_ptr(boom(1))); });
        answer.complete(2);
      });
      int got = co_await weir::suspend<int>([&](weir::resumer<int> r) { answer = r; });
      co_return got;
    });
  });
  EXPECT_EQ(code_of(completed), weir::errc::wrong_loop) << what_of(completed);
  EXPECT_EQ(code_of(failed), weir::errc::wrong_loop) << what_of(failed);
  EXPECT_EQ(value, 2);
}

TEST(foreign_thread, completing_a_suspend_after_the_run_is_harmless) {
  weir::resumer<int> kept;
  auto error = thrown_by([&] {
    sim::run({.seed = 1}, [&]() -> task<> {
      (void)co_await weir::suspend<int>([&](weir::resumer<int> r) { kept = r; });
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_EQ(thrown_on_another_thread([&] { kept.complete(1); }), nullptr);
}

TEST(foreign_thread, cancelling_a_token_that_a_simulation_waits_for_is_wrong_loop) {
  weir::cancel_source stop;
  std::exception_ptr cancelled;
  auto slept = sim::run({.seed = 1}, [&]() -> task<weir::duration> {
    auto begun = weir::now();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> { co_await weir::with_token(stop.token(), weir::sleep(1h)); });
      co_await weir::sleep(1s);
      cancelled = thrown_on_another_thread([&] { stop.cancel("from outside"); });
      co_await s.join();
    });
    co_return weir::now() - begun;
  });
  EXPECT_EQ(code_of(cancelled), weir::errc::wrong_loop) << what_of(cancelled);
  EXPECT_FALSE(stop.cancel_requested());
  EXPECT_EQ(slept, 1h);
  EXPECT_EQ(thrown_on_another_thread([&] { stop.cancel("nobody waits"); }), nullptr);
  EXPECT_TRUE(stop.cancel_requested());
}

TEST(foreign_thread, simulations_on_several_threads_do_not_mix) {
  auto look = [] {
    std::vector<std::string> seen;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      seen.push_back(sim::run({.seed = seed, .strategy = sim::random}, conversation(3, 4)));
      seen.push_back(sim::run({.seed = seed, .strategy = sim::pct(3)}, wake_order(4)));
    }
    auto report = sim::explore({.runs = 2000, .strategy = sim::pct(3)}, [] { return transfer(2); });
    seen.push_back(report.trace().text());
    return seen;
  };
  auto expected = look();
  std::vector<std::string> here, there;
  std::thread other([&] { there = look(); });
  here = look();
  other.join();
  EXPECT_EQ(here, expected);
  EXPECT_EQ(there, expected);
}

TEST(foreign_thread, an_assertion_in_it_is_outside_the_simulation) {
  std::exception_ptr thrown;
  int value = sim::run({.seed = 1}, [&]() -> task<int> {
    thrown = thrown_on_another_thread([] { sim::always("elsewhere", false); });
    co_return 1;
  });
  EXPECT_EQ(code_of(thrown), weir::errc::always_violated);
  EXPECT_EQ(value, 1);
}
