// SPDX-License-Identifier: MIT
//
// co_spawn starts each child inline and posts only its completion, which suits Asio: it never holds
// all children at once. weir keeps a child from running inside spawn.
#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

[[gnu::noinline]] bench::awaitable<> child(std::int64_t& finished) {
  ++finished;
  co_return;
}

bench::awaitable<bench::cost> spawn_and_join(std::int64_t size) {
  const auto where = co_await bench::asio::this_coro::executor;
  std::int64_t finished = 0;
  const bench::stopwatch watch;
  bench::countdown all(where, size);
  for (std::int64_t i = 0; i < size; ++i) {
    bench::asio::co_spawn(where, child(finished), [&](std::exception_ptr) { all.arrive(); });
  }
  co_await all.wait();
  const bench::cost cost = watch.per(size);
  if (finished != size) std::abort();
  co_return cost;
}

bench::awaitable<> spawn_many(std::int64_t size) {
  bench::report("spawn_cold", size, co_await spawn_and_join(size));
  bench::costs each;
  for (int round = 0; round < rounds; ++round) each.add(co_await spawn_and_join(size));
  each.report("spawn_join", size);
}

}  // namespace

int main(int argc, char** argv) { bench::run(spawn_many(bench::size_argument(argc, argv))); }
