// SPDX-License-Identifier: MIT
//
// Taking and giving back a permit that nobody else wants.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

weir::task<> acquire_many(std::int64_t size) {
  weir::counting_governor governor(1);
  bench::keep(governor);
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      auto permit = co_await governor.acquire();
      bench::keep(permit);
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  bench::report("governor", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(acquire_many(bench::size_argument(argc, argv))); }
