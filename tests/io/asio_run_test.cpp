// SPDX-License-Identifier: MIT
// run_on: the loop of weir as a guest of an io_context that it drives.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/asio_support.hpp"

namespace {

using namespace weir_test;

task<> yield_often(int times) {
  for (int i = 0; i < times; ++i) co_await weir::yield();
}

TEST(asio_run, returns_the_value_and_throws_the_error_of_the_operation) {
  asio::io_context context;
  EXPECT_EQ(weir::run_on(context, []() -> task<int> { co_return 7; }), 7);
  auto fail = []() -> task<> {
    co_await weir::sleep(1ms);
    throw std::logic_error("no");
  };
  EXPECT_THROW(weir::run_on(context, fail), std::logic_error);
  EXPECT_FALSE(context.stopped());
}

TEST(asio_run, handlers_posted_before_and_during_run_in_between_on_the_same_thread) {
  asio::io_context context;
  std::vector<std::string> seen;
  asio::post(context, [&] { seen.emplace_back("before"); });
  auto op = [&]() -> task<> {
    seen.emplace_back("op");
    asio::post(context, [&] {
      seen.emplace_back("during");
      EXPECT_EQ(weir::detail::current, nullptr);
    });
    co_await weir::sleep(1ms);
    seen.emplace_back("end");
  };
  weir::run_on(context, op);
  EXPECT_EQ(seen, (std::vector<std::string>{"op", "before", "during", "end"}));
}

TEST(asio_run, leaves_the_programs_own_work_pending_and_the_context_running) {
  asio::io_context context;
  bool fired = false;
  asio::steady_timer later(context, 20ms);
  later.async_wait([&](auto error) { fired = !error; });
  weir::run_on(context, []() -> task<> { co_await weir::sleep(1ms); });
  EXPECT_FALSE(context.stopped());
  EXPECT_FALSE(fired);
  context.run();
  EXPECT_TRUE(fired);
}

TEST(asio_run, a_stopped_context_is_restarted_first) {
  asio::io_context context;
  context.stop();
  EXPECT_EQ(weir::run_on(context,
                         []() -> task<int> {
                           co_await weir::sleep(1ms);
                           co_return 1;
                         }),
            1);
  EXPECT_FALSE(context.stopped());
}

TEST(asio_run, a_stop_cancels_the_operation_with_kind_shutdown_after_its_cleanup) {
  asio::io_context context;
  bool cleaned = false;
  bool deferred = false;
  auto op = [&]() -> task<> {
    const flag_at_end guard(cleaned);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.defer([&]() -> task<> {
        co_await weir::sleep(2ms);
        deferred = true;
      });
      co_await weir::sleep(1h);
    });
  };
  asio::post(context, [&] { context.stop(); });
  try {
    weir::run_on(context, op);
    FAIL() << "it was not cancelled";
  } catch (const weir::cancelled_error& e) {
    EXPECT_EQ(e.reason().kind, weir::cancel_kind::shutdown);
  }
  EXPECT_TRUE(cleaned);
  EXPECT_TRUE(deferred);
  EXPECT_TRUE(context.stopped());  // as the program has asked
}

TEST(asio_run, what_a_handler_throws_is_rethrown_once_the_operation_is_unwound) {
  asio::io_context context;
  bool cleaned = false;
  bool still_there = false;
  auto op = [&]() -> task<> {
    const flag_at_end guard(cleaned);
    co_await weir::sleep(1h);
  };
  asio::post(context, [] { throw std::runtime_error("of a handler"); });
  asio::steady_timer later(context, 1ms);
  later.async_wait([&](auto) { still_there = true; });
  try {
    weir::run_on(context, op);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "of a handler");
  }
  EXPECT_TRUE(cleaned);
  EXPECT_FALSE(context.stopped());
  context.run();
  EXPECT_TRUE(still_there);
}

TEST(asio_run, is_refused_inside_a_running_loop) {
  asio::io_context context;
  auto nested = [&]() -> task<> {
    weir::run_on(context, []() -> task<> { co_return; });
    co_return;
  };
  EXPECT_EQ(code_of(thrown_by([&] { weir::run(nested); })), errc::nested_run);
  EXPECT_EQ(code_of(thrown_by([&] { weir::run_on(context, nested); })), errc::nested_run);
  auto wait = []() -> task<> { co_await weir::sleep(1h); };
  asio::post(context, [&] { weir::run_on(context, []() -> task<> { co_return; }); });
  EXPECT_EQ(code_of(thrown_by([&] { weir::run_on(context, wait); })), errc::nested_run);
}

TEST(asio_run, handlers_may_use_the_objects_of_the_loop) {
  asio::io_context context;
  auto op = [&]() -> task<int> {
    weir::queue<int> q(4);
    asio::post(context, [&] { EXPECT_FALSE(q.try_push(1)); });
    asio::post(context, [&] { EXPECT_FALSE(q.try_push(2)); });
    const int first = *co_await q.next();
    co_return first * 10 + *co_await q.next();
  };
  EXPECT_EQ(weir::run_on(context, op), 12);
}

TEST(asio_run, a_fiber_that_always_yields_does_not_starve_handlers) {
  asio::io_context context;
  bool ran = false;
  int timers = 0;
  asio::steady_timer timer(context, 1ms);
  timer.async_wait([&](auto) { ++timers; });
  asio::post(context, [&] { ran = true; });
  auto op = [&]() -> task<> {
    while (!ran || timers == 0) co_await weir::yield();
  };
  weir::run_on(context, op);
  EXPECT_TRUE(ran);
}

TEST(asio_run, a_handler_that_always_posts_itself_does_not_starve_fibers) {
  asio::io_context context;
  bool over = false;
  std::size_t calls = 0;
  std::function<void()> again = [&] {
    ++calls;
    if (!over) asio::post(context, again);
  };
  again();
  auto op = [&]() -> task<> {
    co_await yield_often(100000);
    co_await weir::sleep(2ms);
    auto pair = co_await connected_pair();
    co_await pair.a.write_all("x");
    EXPECT_EQ(co_await read_n(pair.b, 1), "x");
    while (calls < 1'000'000) co_await weir::sleep(1ms);
    over = true;
  };
  weir::run_on(context, op);
  EXPECT_GE(calls, 1'000'000u);
  context.run();
}

TEST(asio_run, waits_for_weirs_own_io_messages_and_timers) {
  asio::io_context context;
  auto op = [&]() -> task<std::string> {
    auto pair = co_await connected_pair();
    co_return co_await weir::with_scope([&](weir::scope& s) -> task<std::string> {
      auto write = [&]() -> task<> {
        co_await weir::sleep(3ms);
        co_await pair.a.write_all(co_await weir::blocking([] { return std::string("hello"); }));
      };
      s.spawn(write);
      co_return co_await read_n(pair.b, 5);
    });
  };
  EXPECT_EQ(weir::run_on(context, op), "hello");
}

TEST(asio_run, being_idle_is_not_a_deadlock) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    weir::event wake;
    asio::steady_timer timer(context, 5ms);
    timer.async_wait([&](auto) { wake.set(); });
    co_await wake.wait();
  };
  weir::run_on(context, op);
}

TEST(asio_run, a_fiber_may_poll_the_context_itself) {
  asio::io_context context;
  int ran = 0;
  auto op = [&]() -> task<> {
    for (int i = 0; i < 10; ++i) {
      asio::post(context, [&] { ++ran; });
      context.poll();
      co_await weir::yield();
    }
  };
  weir::run_on(context, op);
  EXPECT_EQ(ran, 10);
}

TEST(asio_run, leaves_no_descriptor_behind) {
  asio::io_context context;
  weir::run_on(context, []() -> task<> { co_return; });
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) weir::run_on(context, []() -> task<> { co_await weir::yield(); });
  EXPECT_EQ(open_descriptors(), before);
  context.run();
}

TEST(asio_run, an_operation_that_ignores_the_end_still_gives_way_to_the_handlers_error) {
  asio::io_context context;
  asio::post(context, [] { throw std::runtime_error("first"); });
  asio::post(context, [] { throw std::runtime_error("second"); });
  auto op = []() -> task<int> {
    co_await weir::shield([]() -> task<> { co_await weir::sleep(5ms); });
    co_return 1;
  };
  try {
    weir::run_on(context, op);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "first");
  }
}

}  // namespace
