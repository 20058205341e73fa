// SPDX-License-Identifier: MIT
//
// A broadcast with eight subscribers, each a fiber that takes every item; the cost is that of one
// item for one subscriber. The emitter waits for who is 64 items behind.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;
constexpr int subscribers = 8;

weir::task<> take_all(weir::subscription<std::int64_t> from, std::int64_t& sum) {
  for (;;) {
    auto item = co_await from.next();
    if (!item) break;
    sum += *item;
  }
}

weir::task<double> deliver(std::int64_t size) {
  weir::broadcast<std::int64_t> items(64);
  std::int64_t sum = 0;
  const auto start = bench::clock::now();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (int i = 0; i < subscribers; ++i) s.spawn(take_all(items.subscribe(), sum));
    for (std::int64_t i = 0; i < size; ++i) co_await items.emit(i);
    items.close();
  });
  const double cost = bench::nanoseconds_since(start) / static_cast<double>(size * subscribers);
  if (sum != subscribers * (size * (size - 1) / 2)) std::abort();
  co_return cost;
}

weir::task<> broadcast_many(std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const double cost = co_await deliver(size);
    if (round > 0) each.add(cost);
  }
  bench::report("broadcast_8", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(broadcast_many(bench::size_argument(argc, argv))); }
