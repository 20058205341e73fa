// SPDX-License-Identifier: MIT
//
// Arming and cancelling one timer at a time while `size` others are pending, as a busy server does.
// The cost includes the trip through the ready queue that ends the race and withdraws the timer.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 5;

weir::task<> sleeper(std::int64_t index) { co_await weir::sleep(bench::far_away(index)); }

weir::task<> churn(std::int64_t size) {
  bench::samples each;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < size; ++i) s.spawn(sleeper(i));
    co_await weir::yield();  // behind all sleepers: they are parked when this returns
    for (int round = 0; round <= rounds; ++round) {
      const auto start = bench::clock::now();
      for (std::int64_t i = 0; i < size; ++i) co_await weir::race(weir::sleep(1h), weir::yield());
      const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
      if (round > 0) each.add(cost);
    }
    s.cancel();
  });
  bench::report("timer_churn", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(churn(bench::size_argument(argc, argv))); }
