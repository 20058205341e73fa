// SPDX-License-Identifier: MIT
#include "agents/ping_pong.hpp"

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  weir::run(bench::play("agent_ping_pong", {.name = "pong"}, size));
}
