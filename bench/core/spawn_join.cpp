// SPDX-License-Identifier: MIT
//
// Spawning `size` trivial children into one scope and joining them. The first round pays for fresh
// pages (cold), the later ones find their frames and records in the caches (warm).
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

[[gnu::noinline]] weir::task<> child(std::int64_t& finished) {
  ++finished;
  co_return;
}

weir::task<bench::cost> spawn_and_join(std::int64_t size) {
  std::int64_t finished = 0;
  const bench::stopwatch watch;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < size; ++i) s.spawn(child(finished));
    co_return;
  });
  const bench::cost cost = watch.per(size);
  if (finished != size) std::abort();
  co_return cost;
}

weir::task<> spawn_many(std::int64_t size) {
  bench::report("spawn_cold", size, co_await spawn_and_join(size));
  bench::costs each;
  for (int round = 0; round < rounds; ++round) each.add(co_await spawn_and_join(size));
  each.report("spawn_join", size);
}

}  // namespace

int main(int argc, char** argv) { weir::run(spawn_many(bench::size_argument(argc, argv))); }
