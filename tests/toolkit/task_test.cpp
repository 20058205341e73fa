// SPDX-License-Identifier: MIT
// One job with a value: spawned into a scope, its result taken once.
#include <fstream>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

/// Runs `body(scope&)` in a scope in which a failure stays in its future.
template <class F>
task<> isolated(F& body) {
  co_await weir::with_scope({.failure = weir::failure::isolate}, body);
}

int threads_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  return -1;
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(value_job, its_value_is_taken) {
  int value = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto job = s.spawn(after(5ms, 42));
    value = co_await job.take();
  });
  EXPECT_EQ(value, 42);
}

FIBER_TEST_IN_EVERY_ORDER(value_job, its_error_is_rethrown_unchanged) {
  std::exception_ptr thrown;
  std::exception_ptr caught;
  auto body = [&](weir::scope& s) -> task<> {
    auto job = s.spawn([&]() -> task<int> {
      co_await weir::sleep(5ms);
      thrown = std::make_exception_ptr(boom(7));
      std::rethrow_exception(thrown);
    });
    caught = co_await error_of(job.take());
  };
  co_await isolated(body);
  EXPECT_TRUE(thrown != nullptr && caught == thrown);
}

SCOPE_TEST_IN_EVERY_ORDER(value_job, a_value_that_is_there_before_anybody_asks_is_kept) {
  auto job = s.spawn(after(1ms, 42));
  co_await weir::sleep(1h);
  EXPECT_TRUE(job.done());
  const int value = co_await job.take();
  EXPECT_EQ(value, 42);
  const auto again = co_await error_of(job.take());
  EXPECT_EQ(code_of(again), errc::already_taken);
}

FIBER_TEST_IN_EVERY_ORDER(value_job,
                          of_two_that_take_at_once_one_gets_the_value_and_the_other_is_refused) {
  int sum = 0;
  int refused = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto job = s.spawn(after(5ms, 42));
    auto taker = [&]() -> task<> {
      auto out = co_await weir::settle(job.take());
      if (out.is_value()) sum += out.value();
      refused += code_of(out.error()) == errc::already_taken;
    };
    s.spawn(taker);
    s.spawn(taker);
    co_await s.join();
  });
  EXPECT_EQ(sum, 42);
  EXPECT_EQ(refused, 1);
}

FIBER_TEST_IN_EVERY_ORDER(value_job, it_is_cancelled_with_its_scope_and_sees_why) {
  bool told = false;
  std::optional<weir::future<int>> kept;
  auto body = [&](weir::scope& s) -> task<> {
    kept = s.spawn([&]() -> task<int> {
      auto seen = weir::scope_exit([&] {
        told = weir::unwinding() != nullptr && weir::unwinding()->kind == cancel_kind::user;
      });
      co_return co_await after(1h, 1);
    });
    co_await weir::sleep(1ms);
    s.cancel("enough");
  };
  (void)co_await error_of(weir::with_scope(body));
  EXPECT_TRUE(told);
  const auto error = co_await error_of(kept->take());
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
}

FIBER_TEST_IN_EVERY_ORDER(value_job, on_a_scope_that_is_cancelled_already_it_never_starts) {
  bool started = false;
  std::optional<weir::future<int>> kept;
  auto body = [&](weir::scope& s) -> task<> {
    s.cancel("enough");
    kept = s.spawn([&]() -> task<int> {
      started = true;
      co_return 1;
    });
    co_return;
  };
  (void)co_await error_of(weir::with_scope(body));
  EXPECT_FALSE(started);
  const auto error = co_await error_of(kept->take());
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
}

SCOPE_TEST_IN_EVERY_ORDER(value_job, it_can_ask_its_context_whether_to_stop) {
  auto job = s.spawn([](weir::context& c) -> task<int> {
    int rounds = 0;
    while (!c.cancel_requested()) {
      ++rounds;
      co_await weir::shield(weir::sleep(1ms));
    }
    co_return rounds;
  });
  co_await weir::sleep(10ms + 500us);
  job.cancel();
  const int rounds = co_await job.take();
  EXPECT_EQ(rounds, 11);
}

SCOPE_TEST_IN_EVERY_ORDER(value_job, one_that_ignores_its_cancellation_still_gives_its_value) {
  const auto start = weir::now();
  auto job = s.spawn([]() -> task<int> { co_return co_await weir::shield(after(30ms, 9)); });
  co_await weir::sleep(1ms);
  job.cancel();
  const int value = co_await job.take();
  EXPECT_EQ(value, 9);
  EXPECT_EQ(ms_since(start), 30);
}

SCOPE_TEST_IN_EVERY_ORDER(value_job, its_handle_cancels_it_and_nobody_else) {
  auto job = s.spawn(after(1h, 1));
  auto other = s.spawn(after(20ms, 2));
  co_await weir::sleep(1ms);
  job.cancel("not needed");
  const auto error = co_await error_of(job.take());
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
  EXPECT_TRUE(contains(what_of(error), "not needed"));
  const int value = co_await other.take();
  EXPECT_EQ(value, 2);
}

SCOPE_TEST(value_job, an_empty_callable_is_refused) {
  std::function<task<int>()> none;
  EXPECT_EQ(code_thrown_by([&] { (void)s.spawn(none); }), errc::empty_job);
  EXPECT_EQ(s.size(), 0u);
  co_return;
}

TEST(value_job, a_million_of_them_need_no_thread) {
  const int before = threads_of_process();
  in_order([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      long sum = 0;
      for (int round = 0; round < 1000; ++round) {
        std::vector<weir::child<int>> jobs;
        jobs.reserve(1000);
        for (int i = 0; i < 1000; ++i) jobs.push_back(s.spawn(ready(1)));
        for (auto& job : jobs) sum += co_await job.take();
        EXPECT_TRUE(round % 250 != 0 || threads_of_process() == before);
      }
      EXPECT_EQ(sum, 1'000'000);
      EXPECT_EQ(s.size(), 0u);
    });
  });
}
