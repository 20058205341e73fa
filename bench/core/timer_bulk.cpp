// SPDX-License-Identifier: MIT
//
// Arming `size` timers with scattered deadlines, all pending at once, then cancelling all of them.
// A race over waits hangs every sleep on one composite wait, so no fiber and no frame is counted.
#include <utility>
#include <vector>

#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 5;

auto far_sleeps(std::int64_t size) {
  std::vector<decltype(weir::sleep(1h))> sleeps;
  sleeps.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 1; i < size; ++i) sleeps.push_back(weir::sleep(bench::far_away(i)));
  sleeps.push_back(weir::sleep(1ns));  // fires once all are armed, and withdraws the others
  return sleeps;
}

weir::task<> arm_and_cancel(std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    auto sleeps = far_sleeps(size);
    const auto start = bench::clock::now();
    co_await weir::race(std::move(sleeps));
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  bench::report("timer_bulk", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(arm_and_cancel(bench::size_argument(argc, argv))); }
