// SPDX-License-Identifier: MIT
//
// Asio's documented way to put a timeout around a coroutine: a group of the two, first one wins.
// The group needs both to be started, so the timer is armed even when the operation is ready.
#include <variant>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

using namespace boost::asio::experimental::awaitable_operators;

constexpr int rounds = 3;

[[gnu::noinline]] bench::awaitable<std::int64_t> ready(std::int64_t value) { co_return value; }

// As a tuple, so that the cancelled timer does not throw.
auto expired(bench::timer& guard) {
  return guard.async_wait(bench::asio::as_tuple(bench::use_awaitable));
}

bench::awaitable<> guard_many(std::int64_t size) {
  bench::timer guard(co_await bench::asio::this_coro::executor);
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      guard.expires_after(std::chrono::hours(1));
      const auto first = co_await (ready(i) || expired(guard));
      sum += std::get<0>(first);
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  bench::report("timeout_ready", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { bench::run(guard_many(bench::size_argument(argc, argv))); }
