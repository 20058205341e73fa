// SPDX-License-Identifier: MIT
//
// What is next to two loops: two detached actors, each of which has a thread of its own.
#include "peers/caf/ping_pong.hpp"

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  const double each = bench::best_of_workers(
      [&](caf::actor_system& system) { return bench::play<caf::detached>(system, size); });
  bench::report("agent_two_loops", size, each, "ns");
}
