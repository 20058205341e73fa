// SPDX-License-Identifier: MIT
//
// A call through a closed circuit breaker: two short locks, two readings of the loop's time, one
// count in its window.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

[[gnu::noinline]] weir::task<std::int64_t> ready(std::int64_t value) { co_return value; }

weir::task<> call_many(std::int64_t size) {
  weir::circuit_breaker circuit({.name = "backend"});
  std::int64_t next = 0;
  const auto guarded = weir::op([&] { return ready(next); }) | weir::breaker(circuit);
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const bench::stopwatch watch;
    for (next = 0; next < size; ++next) sum += co_await guarded();
    const bench::cost cost = watch.per(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  each.report("breaker_call", size);
}

}  // namespace

int main(int argc, char** argv) { weir::run(call_many(bench::size_argument(argc, argv))); }
