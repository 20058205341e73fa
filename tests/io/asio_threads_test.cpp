// SPDX-License-Identifier: MIT
// weir inside Asio, across threads: contexts of other threads, messages, a second thread.
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <future>
#include <list>
#include <string>
#include <thread>

#include "io/asio_support.hpp"

namespace {

using namespace weir_test;
using weir::use_weir;

/// Waits for operations of a pool's objects, and gives up half of them.
task<> use_pool(asio::thread_pool& pool) {
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 50; ++i) {
    asio::steady_timer timer(pool, 1ms);
    co_await timer.async_wait(use_weir);
    EXPECT_EQ(std::this_thread::get_id(), here);
    timer.expires_after(1h);
    auto wait = [&]() -> task<> { co_await timer.async_wait(use_weir); };
    EXPECT_TRUE(holds<weir::timeout_error>(
        co_await error_of(weir::with_timeout(std::chrono::microseconds(50 * i), wait()))));
    co_await asio::post(pool, use_weir);
    EXPECT_EQ(std::this_thread::get_id(), here);
  }
}

/// A composed operation over sockets of a pool, cancelled between its steps.
task<> read_in_pool(asio::thread_pool& pool) {
  for (int i = 0; i < 50; ++i) {
    asio::local::stream_protocol::socket a(pool);
    asio::local::stream_protocol::socket b(pool);
    asio::local::connect_pair(a, b);
    std::string text(1000, ' ');
    auto read = [&]() -> task<> { co_await asio::async_read(b, asio::buffer(text), use_weir); };
    auto write = [&]() -> task<> {
      for (int k = 0; k < 10; ++k) co_await a.async_write_some(asio::buffer("abc", 3), use_weir);
    };
    auto both = [&]() -> task<> { co_await weir::all(read(), write()); };
    EXPECT_TRUE(holds<weir::timeout_error>(
        co_await error_of(weir::with_timeout(std::chrono::microseconds(40 * i), both()))));
  }
}

TEST(asio_threads, objects_of_a_pool_complete_on_the_thread_of_the_loop_inside_run_on) {
  asio::io_context context;
  asio::thread_pool pool(2);
  weir::run_on(context, [&]() -> task<> { co_await use_pool(pool); });
  weir::run_on(context, [&]() -> task<> { co_await read_in_pool(pool); });
  pool.join();
}

TEST(asio_threads, objects_of_a_pool_complete_through_the_inbox_of_any_loop) {
  asio::thread_pool pool(2);
  weir::run([&]() -> task<> { co_await use_pool(pool); });
  weir::run([&]() -> task<> { co_await read_in_pool(pool); });
  pool.join();
}

TEST(asio_threads, a_loop_waits_for_a_context_that_another_thread_runs) {
  asio::io_context context;
  auto work = asio::make_work_guard(context);
  std::thread runner([&] { context.run(); });
  auto op = [&]() -> task<int> {
    asio::steady_timer timer(context, 2ms);
    co_await timer.async_wait(use_weir);
    co_return co_await weir::spawn_on(
        context,
        []() -> task<int> {
          co_await weir::sleep(1ms);
          co_return 5;
        },
        use_weir);
  };
  EXPECT_EQ(weir::run(op), 5);
  work.reset();
  runner.join();
}

TEST(asio_threads, other_threads_wake_a_loop_that_sleeps_in_a_context) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    auto [to, from] = weir::channel<int>(4);
    std::thread producer([sender = std::move(to)]() mutable {
      for (int i = 0; i < 1000; ++i) sender.send_blocking(i);
    });
    int sum = 0;
    for (int i = 0; i < 1000; ++i) sum += *co_await from.next();
    EXPECT_EQ(sum, 499'500);
    producer.join();
  };
  weir::run_on(context, op);
}

TEST(asio_threads, operations_may_be_spawned_and_cancelled_from_any_thread) {
  asio::io_context context;
  auto work = asio::make_work_guard(context);
  // The thread that posts to a context may not have returned from that when its handler has run, so
  // the contexts of the callers live until that thread has ended.
  struct caller {
    asio::io_context own;
    asio::cancellation_signal signal;
    std::exception_ptr error;
  };
  std::list<caller> callers;
  std::thread runner([&] { context.run(); });
  for (int i = 0; i < 200; ++i) {
    caller& c = callers.emplace_back();
    weir::spawn_on(
        context, []() -> task<> { co_await weir::sleep(1h); },
        asio::bind_cancellation_slot(
            c.signal.slot(),
            asio::bind_executor(c.own, [&c](std::exception_ptr e) { c.error = e; })));
    if (i % 2 == 0) std::this_thread::yield();
    c.signal.emit(asio::cancellation_type::total);
    c.own.run();
    EXPECT_TRUE(holds<weir::cancelled_error>(c.error));
  }
  work.reset();
  runner.join();
}

TEST(asio_threads, operations_of_other_loops_run_on_the_loop_in_the_context) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    const weir::loop_ref here = weir::this_loop();
    const auto thread = std::this_thread::get_id();
    std::thread other([&] {
      weir::run([&]() -> task<> {
        auto remote = [&]() -> task<bool> { co_return std::this_thread::get_id() == thread; };
        EXPECT_TRUE(co_await weir::on(here, remote));
      });
    });
    co_await weir::blocking([&] { other.join(); });
  };
  weir::run_on(context, op);
}

TEST(asio_threads_death, a_second_thread_that_runs_the_context_ends_the_process) {
  auto twice = [] {
    asio::io_context context;
    auto work = asio::make_work_guard(context);
    std::promise<void> running;
    asio::post(context, [&] { running.set_value(); });
    std::thread second([&] { context.run(); });
    running.get_future().wait();
    weir::run_on(context, []() -> task<> {
      for (;;) co_await weir::sleep(1ms);
    });
  };
  EXPECT_DEATH(twice(), "a second thread runs an io_context");
}

}  // namespace
