// SPDX-License-Identifier: MIT
//
// An actor without a handle ends, so all handles are kept, in memory that is not counted.
#include "peers/caf/system.hpp"
#include "support/measure.hpp"

#include <atomic>

namespace {

std::atomic<std::int64_t> ready{0};

caf::behavior idle(caf::event_based_actor*) {
  ready.fetch_add(1, std::memory_order_relaxed);
  return {[](std::int64_t value) { return value; }};
}

double spawn_idle(caf::actor_system& system, std::vector<caf::actor>& all) {
  ready = 0;
  const auto start = bench::clock::now();
  for (caf::actor& one : all) one = system.spawn(idle);
  while (ready.load() != static_cast<std::int64_t>(all.size())) std::this_thread::yield();
  return bench::nanoseconds_since(start) / static_cast<double>(all.size());
}

}  // namespace

int main(int argc, char** argv) {
  bench::use_small_pages();
  const auto size = static_cast<std::size_t>(bench::size_argument(argc, argv));
  double bytes = 0;
  const double each = bench::best_of_workers([&](caf::actor_system& system) {
    std::vector<caf::actor> first(1);
    spawn_idle(system, first);
    std::vector<caf::actor> all(size);
    const std::int64_t before = bench::bytes_in_use();
    const double took = spawn_idle(system, all);
    // Only the first time: later ones find the memory that the first one has given back.
    if (bytes == 0) bytes = double(bench::bytes_in_use() - before) / double(size);
    return took;
  });
  bench::report("agent_spawn", static_cast<std::int64_t>(size), each, "ns");
  bench::report("agent_bytes", static_cast<std::int64_t>(size), bytes, "B");
}
