// SPDX-License-Identifier: MIT
#include "peers/asio/sleepers.hpp"

namespace {

constexpr int rounds = 3;

bench::awaitable<> cancel_many(std::int64_t size) {
  const auto where = co_await bench::asio::this_coro::executor;
  bench::samples each;
  for (int round = 0; round < rounds; ++round) {
    bench::sleepers all(where, size);
    all.spawn();
    const auto asked = bench::clock::now();
    co_await all.cancel_and_join();
    each.add(bench::nanoseconds_since(asked) / 1e6);
  }
  bench::report("cancel_joined", size, each.median(), "ms");
}

}  // namespace

int main(int argc, char** argv) { bench::run(cancel_many(bench::size_argument(argc, argv))); }
