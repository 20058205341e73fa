// SPDX-License-Identifier: MIT
//
// A function posted to another executor and its value posted back to the caller's, as an operation
// that a coroutine can await: Asio has none of its own for it. The caller's io_context is kept from
// stopping meanwhile.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace bench {

template <typename There, typename Function>
awaitable<std::int64_t> post_and_back(There there, Function function) {
  const executor here = co_await asio::this_coro::executor;
  co_return co_await asio::async_initiate<decltype(use_awaitable), void(std::int64_t)>(
      [there, here, function](auto handler) {
        asio::post(there, [handler = std::move(handler), work = asio::make_work_guard(here),
                           function]() mutable {
          asio::post(work.get_executor(),
                     [handler = std::move(handler), value = function()]() mutable {
                       std::move(handler)(value);
                     });
        });
      },
      use_awaitable);
}

template <typename There>
awaitable<> call_in_turn(There there, std::int64_t& left) {
  std::int64_t value = 0;
  while (left-- > 0) value = co_await post_and_back(there, [&value] { return value + 1; });
  keep(value);
}

/// `size` trips to `there` and back, by several callers at once.
template <typename There>
awaitable<> travel(const char* row, There there, int callers, std::int64_t size) {
  constexpr int rounds = 5;
  const executor here = co_await asio::this_coro::executor;
  costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t left = size;
    const stopwatch watch;
    countdown all(here, callers);
    for (int i = 0; i < callers; ++i) {
      asio::co_spawn(here, call_in_turn(there, left), [&](std::exception_ptr) { all.arrive(); });
    }
    co_await all.wait();
    if (round > 0) each.add(watch.per(size));
  }
  each.report(row, size);
}

}  // namespace bench
