// SPDX-License-Identifier: MIT
#include <boost/asio/experimental/channel.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

using error = boost::system::error_code;
using numbers = bench::asio::experimental::channel<bench::executor, void(error, std::int64_t)>;

bench::awaitable<> answer(numbers& there, numbers& back) {
  for (;;) {
    const auto [ended, value] =
        co_await there.async_receive(bench::asio::as_tuple(bench::use_awaitable));
    if (ended) break;
    co_await back.async_send(error{}, value + 1, bench::use_awaitable);
  }
}

bench::awaitable<> ping_pong(std::int64_t size) {
  const auto where = co_await bench::asio::this_coro::executor;
  numbers there(where, 1);
  numbers back(where, 1);
  bench::countdown ended(where, 1);
  bench::asio::co_spawn(where, answer(there, back), [&](std::exception_ptr) { ended.arrive(); });
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t value = 0;
    const bench::stopwatch watch;
    while (value < size) {
      co_await there.async_send(error{}, value, bench::use_awaitable);
      value = co_await back.async_receive(bench::use_awaitable);
    }
    const bench::cost cost = watch.per(size);
    if (round > 0) each.add(cost);
  }
  there.close();
  co_await ended.wait();
  each.report("queue_ping_pong", size);
}

}  // namespace

int main(int argc, char** argv) { bench::run(ping_pong(bench::size_argument(argc, argv))); }
