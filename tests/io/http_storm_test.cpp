// SPDX-License-Identifier: MIT
// The storm in a simulation: with delays, losses and resets of the network, in many orders.
#include "http_storm.hpp"

using namespace weir_test;

namespace {

task<> reset_again_and_again(sim::world& w) {
  for (;;) {
    co_await weir::sleep(std::chrono::milliseconds(20 + weir::random() % 200));
    w.network().reset("main", "server");
  }
}

task<> sim_storm(sim::world& w, bool resets) {
  storm::place at;
  at.host = "server";
  at.simulated = true;
  w.network().set({.latency = 1ms, .jitter = 5ms, .loss = 0.01});
  auto server = [&] { return storm::run_servers(at, 7, 80); };
  auto clients = [&]() -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      if (resets) s.background(reset_again_and_again(w));
      (void)co_await storm::run_clients(at, weir::random(), 3, 6);
    };
    co_await weir::with_scope(body);
  };
  co_await against(w, server, clients);
}

/// As sim::explore; a check that fails is a failure of its run, with its seed.
sim::report explore_storm(bool resets, std::int64_t runs) {
  auto body = [resets](sim::world& w) { w.run([&] { return sim_storm(w, resets); }); };
  checked_body<decltype(body)> program(body);
  return weir::detail::explore(
      {.runs = runs, .strategy = sim::random, .seed = 1, .max_steps = 5'000'000}, program);
}

}  // namespace

TEST(sim_storm, of_cancels_and_hostile_handlers_ends_with_the_right_answers) {
  const auto found = explore_storm(false, sanitized ? 20 : 60);
  EXPECT_TRUE(found.ok()) << found;
}

TEST(sim_storm, with_a_network_that_resets_connections_ends_with_the_right_answers) {
  const auto found = explore_storm(true, sanitized ? 20 : 60);
  EXPECT_TRUE(found.ok()) << found;
}
