// SPDX-License-Identifier: MIT
//
// The same smallest program as core/answer.cpp, written as Asio's documentation would.
#include <chrono>
#include <exception>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;

asio::awaitable<int> answer() {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(10));
  co_await timer.async_wait(asio::use_awaitable);
  co_return 42;
}

int main() {
  asio::io_context context(1);
  int result = 0;
  asio::co_spawn(context, answer(), [&](std::exception_ptr error, int value) {
    if (error) std::rethrow_exception(error);
    result = value;
  });
  context.run();
  return result == 42 ? 0 : 1;
}
