// SPDX-License-Identifier: MIT
//
// Agents that have been constructed and wait for a message that never comes: what it takes to spawn
// one, to keep one and, at the end of the scope, to stop one. The refs are dropped.
#include <weir/weir.hpp>

#include "agents/counter.hpp"
#include "support/measure.hpp"

namespace {

weir::task<> spawn_and_weigh(std::int64_t size) {
  bench::clock::time_point end;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto first = weir::spawn_agent<bench::counter>(s, {});
    // What the first agent sets up is not a cost per agent.
    co_await first.call(&bench::counter::take);
    const std::int64_t before = bench::bytes_in_use();
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) weir::spawn_agent<bench::counter>(s, {});
    co_await weir::yield();  // behind all agents: they are constructed and idle when this returns
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    const std::int64_t used = bench::bytes_in_use() - before;
    bench::report("agent_spawn", size, cost, "ns");
    bench::report("agent_bytes", size, double(used) / double(size), "B");
    end = bench::clock::now();
  });
  bench::report("agent_end", size, bench::nanoseconds_since(end) / static_cast<double>(size), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  bench::use_small_pages();
  weir::run(spawn_and_weigh(bench::size_argument(argc, argv)));
}
