// SPDX-License-Identifier: MIT
//
// A call and its answer, by one fiber and by a hundred at once, all on the agent's loop.
#include <weir/weir.hpp>

#include "agents/counter.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

using counter_ref = weir::agent_ref<bench::counter>;

weir::task<> call_many(counter_ref agent, std::int64_t calls) {
  for (std::int64_t i = 0; i < calls; ++i) {
    const std::int64_t answer = co_await agent.call(&bench::counter::plus, i);
    if (answer != i) std::abort();
  }
}

weir::task<double> call_all(counter_ref agent, std::int64_t callers, std::int64_t size) {
  const auto start = bench::clock::now();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < callers; ++i) s.spawn(call_many(agent, size / callers));
    co_return;
  });
  co_return bench::nanoseconds_since(start) / static_cast<double>(size);
}

weir::task<> measure(const char* row, std::int64_t callers, std::int64_t size) {
  bench::samples each;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto agent = weir::spawn_agent<bench::counter>(s, {.name = "counter"});
    for (int round = 0; round <= rounds; ++round) {
      const double cost = co_await call_all(agent, callers, size);
      if (round > 0) each.add(cost);
    }
  });
  bench::report(row, size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  weir::run(measure("call_1", 1, size));
  weir::run(measure("call_100", 100, size));
}
