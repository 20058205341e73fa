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

weir::task<bench::cost> ask(numbers& there, numbers& back, std::int64_t size) {
  std::int64_t value = 0;
  const bench::stopwatch watch;
  while (value < size) {
    co_await there.push(value);
    auto answered = co_await back.next();
    value = *answered;
  }
  co_return watch.per(size);
}

weir::task<> ping_pong(std::int64_t size) {
  numbers there(1);
  numbers back(1);
  bench::costs each;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn(answer(there, back));
    for (int round = 0; round <= rounds; ++round) {
      const bench::cost cost = co_await ask(there, back, size);
      if (round > 0) each.add(cost);
    }
    there.close();
  });
  each.report("queue_ping_pong", size);
}

}  // namespace

int main(int argc, char** argv) { weir::run(ping_pong(bench::size_argument(argc, argv))); }
