// SPDX-License-Identifier: MIT
// spawn_on: operations of weir, started from Asio code, in a context that the program runs.
#include <gtest/gtest.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/asio_support.hpp"

namespace {

using namespace weir_test;

task<int> answer_soon() {
  co_await weir::sleep(1ms);
  co_return 42;
}
task<> fail_soon() {
  co_await weir::sleep(1ms);
  throw boom(3);
}
task<> wait_long() { co_await weir::sleep(1h); }

TEST(asio_spawn, completes_a_callback_with_the_value_and_run_does_not_return_before) {
  asio::io_context context;
  int got = 0;
  weir::spawn_on(context, answer_soon, [&](std::exception_ptr e, int n) {
    EXPECT_EQ(e, nullptr);
    got = n;
  });
  EXPECT_EQ(got, 0);
  context.run();
  EXPECT_EQ(got, 42);
  EXPECT_EQ(static_cast<long>(weir::live().loops), 0);
}

TEST(asio_spawn, completes_with_the_error_of_the_operation) {
  asio::io_context context;
  std::exception_ptr error;
  weir::spawn_on(context, fail_soon(), [&](std::exception_ptr e) { error = e; });
  context.run();
  EXPECT_EQ(boom_of(error), 3);
}

TEST(asio_spawn, takes_any_completion_token) {
  asio::io_context context;
  std::future<int> future = weir::spawn_on(context, answer_soon, asio::use_future);
  weir::spawn_on(context, answer_soon, asio::detached);
  int deferred = 0;
  auto later = weir::spawn_on(context, answer_soon, asio::deferred);
  std::move(later)([&](std::exception_ptr, int n) { deferred = n; });
  int awaited = 0;
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        awaited = co_await weir::spawn_on(context, answer_soon, asio::use_awaitable);
      },
      asio::detached);
  context.run();
  EXPECT_EQ(future.get(), 42);
  EXPECT_EQ(deferred, 42);
  EXPECT_EQ(awaited, 42);
}

TEST(asio_spawn, the_slot_of_the_token_cancels_it_and_its_cleanup_runs) {
  asio::io_context context;
  asio::cancellation_signal signal;
  bool cleaned = false;
  std::exception_ptr error;
  auto op = [&]() -> task<> {
    const flag_at_end guard(cleaned);
    co_await weir::sleep(1h);
  };
  weir::spawn_on(context, op,
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) {
                   EXPECT_TRUE(cleaned);
                   error = e;
                 }));
  asio::steady_timer timer(context, 2ms);
  timer.async_wait([&](auto) { signal.emit(asio::cancellation_type::terminal); });
  context.run();
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
  signal.emit(asio::cancellation_type::terminal);  // too late: nothing happens
}

TEST(asio_spawn, an_awaitable_that_loses_a_race_cancels_its_operation) {
  using namespace asio::experimental::awaitable_operators;
  asio::io_context context;
  bool cleaned = false;
  auto op = [&]() -> task<> {
    const flag_at_end guard(cleaned);
    co_await weir::sleep(1h);
  };
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        asio::steady_timer timer(context, 2ms);
        co_await (weir::spawn_on(context, op, asio::use_awaitable) ||
                  timer.async_wait(asio::use_awaitable));
      },
      asio::detached);
  context.run();
  EXPECT_TRUE(cleaned);
}

TEST(asio_spawn, operations_of_one_context_share_a_loop) {
  asio::io_context context;
  std::vector<weir::loop_ref> seen;
  auto op = [&]() -> task<> {
    seen.push_back(weir::this_loop());
    co_await weir::sleep(1ms);
  };
  for (int i = 0; i < 3; ++i) weir::spawn_on(context, op, asio::detached);
  context.run();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[1], seen[2]);
}

TEST(asio_spawn, while_run_on_drives_the_context_its_loop_is_used_and_outlives_it) {
  asio::io_context context;
  weir::loop_ref first;
  weir::loop_ref second;
  bool ended = false;
  auto longer = [&]() -> task<> {
    second = weir::this_loop();
    co_await weir::sleep(20ms);
    ended = true;
  };
  auto op = [&]() -> task<> {
    first = weir::this_loop();
    weir::spawn_on(context, longer, asio::detached);
    co_await weir::sleep(1ms);
  };
  weir::run_on(context, op);
  EXPECT_EQ(first, second);
  EXPECT_FALSE(ended);
  EXPECT_TRUE(first.alive());
  context.run();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(first.alive());
}

TEST(asio_spawn, run_on_uses_the_loop_of_operations_that_are_pending) {
  asio::io_context context;
  weir::loop_ref first;
  auto op = [&]() -> task<> {
    first = weir::this_loop();
    co_await weir::sleep(5ms);
  };
  weir::spawn_on(context, op, asio::detached);
  context.poll();
  auto again = [&]() -> task<> {
    EXPECT_EQ(weir::this_loop(), first);
    co_return;
  };
  weir::run_on(context, again);
  context.run();
}

TEST(asio_spawn, the_handler_runs_on_its_associated_executor) {
  asio::io_context context;
  asio::io_context other;
  bool called = false;
  weir::spawn_on(context, answer_soon,
                 asio::bind_executor(other, [&](std::exception_ptr, int) { called = true; }));
  context.run();
  EXPECT_FALSE(called);
  other.run();
  EXPECT_TRUE(called);
}

TEST(asio_spawn, an_exception_of_a_handler_goes_to_the_program_and_the_operation_continues) {
  asio::io_context context;
  int got = 0;
  weir::spawn_on(context, answer_soon, [&](std::exception_ptr, int n) { got = n; });
  asio::post(context, [] { throw boom(1); });
  EXPECT_THROW(context.run(), boom);
  context.run();
  EXPECT_EQ(got, 42);
}

TEST(asio_spawn, a_stopped_program_may_continue_later) {
  asio::io_context context;
  int got = 0;
  weir::spawn_on(context, answer_soon, [&](std::exception_ptr, int n) { got = n; });
  asio::post(context, [&] { context.stop(); });
  context.run();
  EXPECT_EQ(got, 0);
  context.restart();
  context.run();
  EXPECT_EQ(got, 42);
}

TEST(asio_spawn, ten_thousand_operations_leave_nothing_behind) {
  asio::io_context context;
  int ended = 0;
  auto op = []() -> task<> { co_await weir::yield(); };
  const std::size_t descriptors = open_descriptors();
  for (int i = 0; i < 10'000; ++i)
    weir::spawn_on(context, op, [&](std::exception_ptr) { ++ended; });
  context.run();
  EXPECT_EQ(ended, 10'000);
  context.restart();
  for (int i = 0; i < 100; ++i) {
    weir::spawn_on(context, op, [&](std::exception_ptr) { ++ended; });
    context.run();
    context.restart();
  }
  EXPECT_EQ(ended, 10'100);
  EXPECT_LE(open_descriptors(), descriptors + 4);  // of the context itself
}

TEST(asio_spawn_death, destroying_the_context_with_pending_work_prints_the_tree) {
  auto destroy = [] {
    asio::io_context context;
    weir::spawn_on(context, wait_long, asio::detached);
    context.poll();
  };
  EXPECT_DEATH(destroy(), "io_context destroyed while operations of weir are pending.*sleep");
  auto never_run = [] {
    asio::io_context context;
    weir::spawn_on(context, wait_long, asio::detached);
  };
  EXPECT_DEATH(never_run(), "1 of them not started");
}

}  // namespace
