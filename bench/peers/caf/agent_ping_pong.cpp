// SPDX-License-Identifier: MIT
#include "peers/caf/ping_pong.hpp"

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  const double each = bench::best_of_workers(
      [&](caf::actor_system& system) { return bench::play<>(system, size); });
  bench::report("agent_ping_pong", size, each, "ns");
}
