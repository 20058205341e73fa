// SPDX-License-Identifier: MIT
//
// Asio at its best on one thread: an io_context told that only one thread runs it, and coroutines,
// timers and tokens bound to its concrete executor instead of the type-erased default.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace bench {

namespace asio = boost::asio;

using executor = asio::io_context::executor_type;
using timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, executor>;
inline constexpr asio::use_awaitable_t<executor> use_awaitable;

template <typename T = void>
using awaitable = asio::awaitable<T, executor>;

/// Runs `root` on a fresh io_context until nothing is left, and rethrows its error.
inline void run(awaitable<> root) {
  asio::io_context context(1);
  asio::co_spawn(context.get_executor(), std::move(root), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
  context.run();
}

/// Lets one coroutine wait until `count` others are done, as a scope does: Asio 1.81 has no group
/// over a range of coroutines, and a timer that never fires is its usual condition variable.
class countdown {
 public:
  countdown(executor where, std::int64_t count)
      : left_(count), signal_(where, timer::time_point::max()) {}

  void arrive() {
    if (--left_ == 0) signal_.cancel();
  }

  awaitable<> wait() {
    // as_tuple: being cancelled is the signal here and must not throw.
    if (left_ > 0) co_await signal_.async_wait(asio::as_tuple(use_awaitable));
  }

 private:
  std::int64_t left_;
  timer signal_;
};

}  // namespace bench
