// SPDX-License-Identifier: MIT
#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

[[gnu::noinline]] bench::awaitable<std::int64_t> ready(std::int64_t value) { co_return value; }

bench::awaitable<> await_many(std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) sum += co_await ready(i);
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  bench::report("await_ready", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { bench::run(await_many(bench::size_argument(argc, argv))); }
