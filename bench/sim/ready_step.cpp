// SPDX-License-Identifier: MIT
//
// Choosing among many: n fibers are ready all the time.
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

weir::task<> busy() {
  for (int i = 0; i < 10; ++i) co_await weir::yield();
}

weir::task<> crowd(std::int64_t size) {
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < size; ++i) s.spawn(busy());
    co_return;
  });
}

void measure(weir::sim::strategy strategy, std::int64_t size, const char* row) {
  const auto start = bench::clock::now();
  const auto report = weir::sim::explore(
      {.runs = 3, .strategy = strategy, .max_steps = weir::unbounded, .check_every = 1000},
      [&] { return crowd(size); });
  // The first run is made twice, by the self-check.
  const double steps = static_cast<double>(report.steps()) * 4 / 3;
  bench::report(row, size, bench::nanoseconds_since(start) / steps, "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  measure(weir::sim::fifo, size, "ready_fifo");
  measure(weir::sim::random, size, "ready_random");
  measure(weir::sim::pct(3), size, "ready_pct");
}
