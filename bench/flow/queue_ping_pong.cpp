// SPDX-License-Identifier: MIT
//
// Two fibers of one loop send a number back and forth through two queues of capacity 1: each round
// trip is two pushes, two nexts, and a change of fiber for each.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

using numbers = weir::queue<std::int64_t>;

weir::task<> answer(numbers& there, numbers& back) {
  for (;;) {
    auto value = co_await there.next();
    if (!value) break;
    co_await back.push(*value + 1);
  }
}

weir::task<double> ask(numbers& there, numbers& back, std::int64_t size) {
  std::int64_t value = 0;
  const auto start = bench::clock::now();
  while (value < size) {
    co_await there.push(value);
    auto answered = co_await back.next();
    value = *answered;
  }
  co_return bench::nanoseconds_since(start) / static_cast<double>(size);
}

weir::task<> ping_pong(std::int64_t size) {
  numbers there(1);
  numbers back(1);
  bench::samples each;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn(answer(there, back));
    for (int round = 0; round <= rounds; ++round) {
      const double cost = co_await ask(there, back, size);
      if (round > 0) each.add(cost);
    }
    there.close();
  });
  bench::report("queue_ping_pong", size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(ping_pong(bench::size_argument(argc, argv))); }
