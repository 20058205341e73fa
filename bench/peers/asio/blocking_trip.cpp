// SPDX-License-Identifier: MIT
//
// Asio has no call for this: an operation of one's own posts the function to a thread_pool and its
// value back to the io_context, which is kept from stopping meanwhile.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

namespace asio = boost::asio;

constexpr int rounds = 3;

template <typename Function>
bench::awaitable<std::int64_t> blocking(asio::thread_pool& pool, Function function) {
  const bench::executor here = co_await asio::this_coro::executor;
  co_return co_await asio::async_initiate<decltype(bench::use_awaitable), void(std::int64_t)>(
      [&pool, here, function](auto handler) {
        asio::post(pool, [handler = std::move(handler), work = asio::make_work_guard(here),
                          function]() mutable {
          asio::post(work.get_executor(),
                     [handler = std::move(handler), value = function()]() mutable {
                       std::move(handler)(value);
                     });
        });
      },
      bench::use_awaitable);
}

bench::awaitable<> travel(asio::thread_pool& pool, std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t value = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      value = co_await blocking(pool, [&value] { return value + 1; });
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(value);
    if (round > 0) each.add(cost);
  }
  bench::report("blocking_trip", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  asio::thread_pool pool(1);
  bench::run(travel(pool, size));
}
