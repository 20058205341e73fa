// SPDX-License-Identifier: MIT
//
// A coroutine spawned on the io_context of another thread and awaited from here.
#include <thread>

#include <boost/asio/executor_work_guard.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 3;

bench::awaitable<std::int64_t> next_after(std::int64_t value) { co_return value + 1; }

bench::awaitable<> travel(bench::executor there, std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t value = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      value = co_await bench::asio::co_spawn(there, next_after(value), bench::use_awaitable);
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(value);
    if (round > 0) each.add(cost);
  }
  bench::report("on_trip", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  bench::asio::io_context other(1);
  auto work = bench::asio::make_work_guard(other);
  std::thread thread([&] { other.run(); });
  bench::run(travel(other.get_executor(), size));
  work.reset();
  thread.join();
}
