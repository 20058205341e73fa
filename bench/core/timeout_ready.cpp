// SPDX-License-Identifier: MIT
//
// A deadline around an operation that finishes at once: the common case of a guarded call.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 7;

[[gnu::noinline]] weir::task<std::int64_t> ready(std::int64_t value) { co_return value; }

weir::task<> guard_many(std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) sum += co_await weir::with_timeout(1h, ready(i));
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  bench::report("timeout_ready", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(guard_many(bench::size_argument(argc, argv))); }
