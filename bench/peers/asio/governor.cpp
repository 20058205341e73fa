// SPDX-License-Identifier: MIT
//
// Asio has no semaphore; a channel of capacity one is its stand-in. The synchronous attempt comes
// first, because an asynchronous send would take a trip through the loop even when there is room.
#include <boost/asio/experimental/channel.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

using permits =
    bench::asio::experimental::channel<bench::executor, void(boost::system::error_code)>;

bench::awaitable<> acquire_many(std::int64_t size) {
  permits governor(co_await bench::asio::this_coro::executor, 1);
  bench::keep(governor);
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      if (!governor.try_send(boost::system::error_code{})) {
        co_await governor.async_send(boost::system::error_code{}, bench::use_awaitable);
      }
      bench::keep(governor);
      governor.try_receive([](boost::system::error_code) {});
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  bench::report("governor", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { bench::run(acquire_many(bench::size_argument(argc, argv))); }
