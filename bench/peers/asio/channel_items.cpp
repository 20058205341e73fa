// SPDX-License-Identifier: MIT
//
// Asio's channel for several threads has a mutex. Its receiver is served on its own executor; the
// sender runs on an io_context of its own.
#include <thread>

#include <boost/asio/experimental/concurrent_channel.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 3;
constexpr int capacity = 1024;

using error = boost::system::error_code;
using numbers =
    bench::asio::experimental::concurrent_channel<bench::executor, void(error, std::int64_t)>;

bench::awaitable<> send_all(numbers& out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    co_await out.async_send(error{}, i, bench::use_awaitable);
  }
}

bench::awaitable<double> receive_all(std::int64_t size) {
  numbers items(co_await bench::asio::this_coro::executor, capacity);
  std::jthread producer([&] { bench::run(send_all(items, size + 1)); });
  co_await items.async_receive(bench::use_awaitable);
  std::int64_t sum = 0;
  const auto start = bench::clock::now();
  for (std::int64_t i = 0; i < size; ++i) {
    sum += co_await items.async_receive(bench::use_awaitable);
  }
  const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
  if (sum != size * (size + 1) / 2) std::abort();
  co_return cost;
}

bench::awaitable<> measure(std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const double cost = co_await receive_all(size);
    if (round > 0) each.add(cost);
  }
  bench::report("channel_items", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { bench::run(measure(bench::size_argument(argc, argv))); }
