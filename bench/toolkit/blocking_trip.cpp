// SPDX-License-Identifier: MIT
//
// A plain call on a thread of the blocking pool and its value back, one after the other.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 3;

weir::task<> travel(std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t value = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      value = co_await weir::blocking([&] { return value + 1; });
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(value);
    if (round > 0) each.add(cost);
  }
  bench::report("blocking_trip", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(travel(bench::size_argument(argc, argv))); }
