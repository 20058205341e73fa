// SPDX-License-Identifier: MIT
//
// The same pipeline of std::views, which cannot wait for anything.
#include <ranges>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

std::int64_t sum_up(std::int64_t size) {
  auto items = std::views::iota(std::int64_t{0}) |
               std::views::transform([](std::int64_t i) { return 3 * i; }) |
               std::views::filter([](std::int64_t i) { return i % 2 == 0; }) |
               std::views::take(size / 2);
  std::int64_t sum = 0;
  for (const std::int64_t item : items) sum += item;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t size = bench::size_argument(argc, argv);
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    bench::keep(size);
    const auto start = bench::clock::now();
    std::int64_t sum = sum_up(size);
    bench::keep(sum);
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  bench::report("sink_iota", size, each.median(), "ns");
}
