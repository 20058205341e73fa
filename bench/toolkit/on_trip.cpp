// SPDX-License-Identifier: MIT
//
// An operation on the loop of another thread and its value back, one after the other: two messages
// and, if a side fell asleep meanwhile, its wake-up.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 3;

weir::task<std::int64_t> next_after(std::int64_t value) { co_return value + 1; }

weir::task<> travel(weir::loop_thread& there, std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t value = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) {
      value = co_await weir::on(there, [&] { return next_after(value); });
    }
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(value);
    if (round > 0) each.add(cost);
  }
  bench::report("on_trip", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  weir::run(weir::with_loop_thread([&](weir::loop_thread& there) { return travel(there, size); }));
}
