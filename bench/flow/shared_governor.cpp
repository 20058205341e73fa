// SPDX-License-Identifier: MIT
//
// Taking and giving back a permit of a governor for several loops that nobody else wants; and by
// how much that is more than two atomic read-modify-writes, which is the least that it can cost.
#include <weir/weir.hpp>

#include <atomic>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

double floor_once(std::int64_t size) {
  std::atomic<std::int64_t> word{8};
  const auto start = bench::clock::now();
  for (std::int64_t i = 0; i < size; ++i) {
    word.fetch_sub(8, std::memory_order_acquire);
    bench::keep(word);
    word.fetch_add(8, std::memory_order_release);
    bench::keep(word);
  }
  return bench::nanoseconds_since(start) / static_cast<double>(size);
}

weir::task<> acquire_many(std::int64_t size) {
  weir::shared_governor governor(1);
  bench::keep(governor);
  bench::samples each;
  bench::samples floor;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      auto permit = co_await governor.acquire();
      bench::keep(permit);
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    const double least = floor_once(size);
    if (round > 0) each.add(cost);
    if (round > 0) floor.add(least);
  }
  bench::report("shared_governor", size, each.median(), "ns");
  bench::report("shared_ratio", size, each.median() / floor.median(), "x");
}

}  // namespace

int main(int argc, char** argv) { weir::run(acquire_many(bench::size_argument(argc, argv))); }
