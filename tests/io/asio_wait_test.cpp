// SPDX-License-Identifier: MIT
// use_weir: operations of Asio as waits.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include "io/asio_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

namespace {

using namespace weir_test;
using weir::use_weir;

/// An operation that completes with the given arguments, in a later handler.
template <class Signature, class Token, class... Args>
auto complete_with(asio::io_context& context, Token&& token, Args... args) {
  return asio::async_initiate<Token, Signature>(
      [&context, args...](auto handler) {
        asio::post(context, [h = std::move(handler), args...]() mutable { std::move(h)(args...); });
      },
      token);
}

TEST(asio_wait, gives_nothing_a_value_or_a_tuple) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    co_await asio::post(context, use_weir);
    co_await complete_with<void(boost::system::error_code)>(context, use_weir,
                                                            boost::system::error_code());
    EXPECT_EQ(co_await complete_with<void(int)>(context, use_weir, 3), 3);
    EXPECT_EQ((co_await complete_with<void(boost::system::error_code, int)>(
                  context, use_weir, boost::system::error_code(), 4)),
              4);
    auto [number, text] = co_await complete_with<void(std::exception_ptr, int, std::string)>(
        context, use_weir, std::exception_ptr(), 5, std::string("five"));
    EXPECT_EQ(number, 5);
    EXPECT_EQ(text, "five");
  };
  weir::run_on(context, op);
}

TEST(asio_wait, throws_what_the_first_argument_says) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    std::error_code code;
    try {
      co_await complete_with<void(boost::system::error_code, int)>(
          context, use_weir, boost::system::error_code(asio::error::connection_reset), 0);
    } catch (const boost::system::system_error& e) {
      code = e.code();
    }
    EXPECT_EQ(code, std::errc::connection_reset);
    std::string text;
    try {
      co_await complete_with<void(std::exception_ptr)>(
          context, use_weir, std::make_exception_ptr(std::logic_error("mine")));
    } catch (const std::logic_error& e) {
      text = e.what();
    }
    EXPECT_EQ(text, "mine");
  };
  weir::run_on(context, op);
}

TEST(asio_wait, as_tuple_gives_errors_as_values) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    asio_pair pair(context);
    pair.a.close();
    std::array<char, 4> bytes{};
    auto [error, n] =
        co_await pair.b.async_read_some(asio::buffer(bytes), asio::as_tuple(use_weir));
    EXPECT_EQ(error, asio::error::eof);
    EXPECT_EQ(n, 0u);
  };
  weir::run_on(context, op);
}

TEST(asio_wait, is_lazy_and_an_operation_for_every_combinator) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    bool started = false;
    auto note = [&](auto handler) {
      started = true;
      asio::post(context, [h = std::move(handler)]() mutable { std::move(h)(1); });
    };
    auto waiting = asio::async_initiate<const weir::use_weir_t&, void(int)>(note, use_weir);
    co_await weir::yield();
    EXPECT_FALSE(started);
    EXPECT_EQ(co_await std::move(waiting), 1);
    EXPECT_TRUE(started);

    asio::steady_timer quick(context, 1ms);
    asio::steady_timer slow(context, 1h);
    co_await weir::race(quick.async_wait(use_weir), slow.async_wait(use_weir));
    auto [x, y] = co_await weir::all(complete_with<void(int)>(context, use_weir, 1),
                                     complete_with<void(int)>(context, use_weir, 2));
    EXPECT_EQ(x + y, 3);
    EXPECT_TRUE(holds<weir::timeout_error>(
        co_await error_of(weir::with_timeout(2ms, slow.async_wait(use_weir)))));
    const auto settled = co_await weir::settle(complete_with<void(boost::system::error_code)>(
        context, use_weir, boost::system::error_code(asio::error::eof)));
    EXPECT_TRUE(settled.is_error());
  };
  weir::run_on(context, op);
}

TEST(asio_wait, a_cancelled_read_is_over_before_its_buffer_is_gone) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    asio_pair pair(context);
    for (int i = 0; i < 100; ++i) {
      auto read = [&]() -> task<> {
        const auto own = std::make_unique<std::array<char, 64>>();
        co_await pair.b.async_read_some(asio::buffer(*own), use_weir);
      };
      const auto how =
          co_await weir::settle(weir::with_timeout(std::chrono::microseconds(i), read()));
      EXPECT_TRUE(how.is_error());
    }
    co_await asio::async_write(pair.a, asio::buffer("kept", 4), use_weir);
    std::array<char, 8> bytes{};
    EXPECT_EQ(co_await pair.b.async_read_some(asio::buffer(bytes), use_weir), 4u);
  };
  weir::run_on(context, op);
}

TEST(asio_wait, a_composed_operation_is_cancelled_as_a_whole) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    asio_pair pair(context);
    std::string text;
    auto read = [&]() -> task<> {
      co_await asio::async_read_until(pair.b, asio::dynamic_buffer(text), '\n', use_weir);
    };
    co_await asio::async_write(pair.a, asio::buffer("no end", 6), use_weir);
    EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(weir::with_timeout(3ms, read()))));
  };
  weir::run_on(context, op);
}

TEST(asio_wait, an_operation_that_cannot_be_cancelled_is_waited_for_and_gives_its_result) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    int got = 0;
    bool after = false;
    asio::steady_timer timer(context, 5ms);
    auto stubborn = [&](auto handler) {
      timer.async_wait([h = std::move(handler)](auto) mutable { std::move(h)(9); });
    };
    auto wait = [&]() -> task<> {
      got = co_await asio::async_initiate<const weir::use_weir_t&, void(int)>(stubborn, use_weir);
      co_await weir::yield();
      after = true;
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto f = s.spawn(wait);
      co_await weir::sleep(1ms);
      s.cancel();
      co_return;
    });
    EXPECT_EQ(got, 9);
    EXPECT_FALSE(after);
  };
  weir::run_on(context, op);
}

TEST(asio_wait, a_handler_that_is_invoked_at_once_is_no_problem) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    for (int i = 0; i < 1000; ++i) co_await asio::dispatch(context, use_weir);
    auto at_once = [](auto handler) { std::move(handler)(8); };
    EXPECT_EQ(
        (co_await asio::async_initiate<const weir::use_weir_t&, void(int)>(at_once, use_weir)), 8);
  };
  weir::run_on(context, op);
}

TEST(asio_wait, an_initiation_that_throws_fails_the_wait) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    auto refuse = [](auto) { throw std::length_error("refused"); };
    auto wait = asio::async_initiate<const weir::use_weir_t&, void()>(refuse, use_weir);
    EXPECT_TRUE(holds<std::length_error>(co_await error_of(std::move(wait))));
  };
  weir::run_on(context, op);
}

TEST(asio_wait, an_operation_that_is_destroyed_unfinished_is_abandoned) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    auto other = std::make_unique<asio::io_context>();
    auto drop = [&]() -> task<> {
      co_await weir::yield();
      other.reset();
    };
    auto wait = [&]() -> task<> {
      EXPECT_EQ(code_of(co_await error_of(asio::post(*other, use_weir))), errc::abandoned);
    };
    co_await weir::all(wait(), drop());
  };
  weir::run_on(context, op);
}

TEST(asio_wait, a_value_that_arrives_after_a_cancellation_is_an_event) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    // When it is cancelled it has its value after all.
    auto late = [&](auto handler) {
      auto slot = asio::get_associated_cancellation_slot(handler);
      auto kept = std::make_shared<decltype(handler)>(std::move(handler));
      slot.assign([&context, kept](asio::cancellation_type) {
        asio::post(context, [kept] { std::move (*kept)(5); });
      });
    };
    auto wait = asio::async_initiate<const weir::use_weir_t&, void(int)>(late, use_weir);
    EXPECT_TRUE(
        holds<weir::timeout_error>(co_await error_of(weir::with_timeout(1ms, std::move(wait)))));
    int discarded = 0;
    for (const auto& e : weir::recent_events().events) discarded += e.name == "value_discarded";
    EXPECT_EQ(discarded, 1);
  };
  weir::run_on(context, op);
}

TEST(asio_wait, works_in_a_loop_of_its_own_beside_a_context_that_is_polled) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    asio::steady_timer timer(context, 1ms);
    auto poll = [&]() -> task<> {
      while (context.poll() == 0) co_await weir::sleep(1ms);
    };
    co_await weir::all(timer.async_wait(use_weir), poll());
  };
  weir::run(op);
}

TEST(asio_wait, is_refused_in_a_simulation) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    EXPECT_EQ(code_of(co_await error_of(asio::post(context, use_weir))), errc::invalid_argument);
  };
  weir::sim::run({}, op);
}

TEST(asio_wait, a_hundred_thousand_operations_do_not_grow_and_allocate_nothing_of_their_own) {
  asio::io_context context;
  auto op = [&]() -> task<> {
    asio_pair pair(context);
    std::array<char, 1> bytes{};
    auto trip = [&]() -> task<> {
      co_await pair.a.async_write_some(asio::buffer("x", 1), use_weir);
      co_await pair.b.async_read_some(asio::buffer(bytes), use_weir);
    };
    for (int i = 0; i < 1000; ++i) co_await trip();
    begin_to_count();
    for (int i = 0; i < 50'000; ++i) co_await trip();
    const long made = end_count();
    EXPECT_LE(made, sanitized ? 1'000'000 : 10);
  };
  weir::run_on(context, op);
}

}  // namespace
