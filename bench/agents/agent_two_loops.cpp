// SPDX-License-Identifier: MIT
//
// The same with the second player on the loop of another thread: two messages cross and, if a side
// fell asleep meanwhile, it is woken.
#include "agents/ping_pong.hpp"

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  weir::run(weir::with_loop_thread([&](weir::loop_thread& there) {
    return bench::play("agent_two_loops", {.name = "pong", .on = there}, size);
  }));
}
