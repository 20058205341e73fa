// SPDX-License-Identifier: MIT
//
// Awaiting a task that never parks: the price of splitting a function into two.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

// Never inlined, so that the frame of the awaited task is really made each time.
[[gnu::noinline]] weir::task<std::int64_t> ready(std::int64_t value) { co_return value; }

weir::task<> await_many(std::int64_t size) {
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

int main(int argc, char** argv) { weir::run(await_many(bench::size_argument(argc, argv))); }
