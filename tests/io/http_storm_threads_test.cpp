// SPDX-License-Identifier: MIT
// Clients and servers on several loops, in which anything may end at any moment.
#include <cstdlib>
#include <iostream>

#include "http_storm.hpp"

namespace {

using namespace weir_test;

std::uint64_t first_seed() {
  const char* text = std::getenv("WEIR_FUZZ_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

/// Two loops with servers, and clients on those two and on a third.
task<int> run_storm(std::uint64_t seed, int rounds) {
  storm::place one, two;
  int answered = 0;
  auto body = [&](weir::scope& s) -> task<> {
    weir::loop_thread a(s, {.name = "a"});
    weir::loop_thread b(s, {.name = "b"});
    s.spawn_on(a, [&] { return storm::run_servers(one); });
    s.spawn_on(b, [&] { return storm::run_servers(two); });
    while (one.web == 0 || two.web == 0) co_await weir::yield();
    auto on_a = s.spawn_on(a, [&] { return storm::run_clients(two, seed, 4, rounds); });
    auto on_b = s.spawn_on(b, [&] { return storm::run_clients(one, seed + 1, 4, rounds); });
    answered += co_await storm::run_clients(one, seed + 2, 4, rounds);
    answered += co_await on_a;
    answered += co_await on_b;
    s.cancel();
  };
  co_await weir::with_scope(body);
  co_return answered;
}

}  // namespace

TEST(storm, of_cancels_resets_half_closes_and_closes_over_several_loops_leaves_nothing_behind) {
  const std::size_t before = open_descriptors();
  const std::uint64_t first = first_seed();
  const int times = std::getenv("WEIR_FUZZ_SEED") != nullptr ? 1 : sanitized ? 2 : 8;
  for (int i = 0; i < times; ++i) {
    const std::uint64_t seed = first + static_cast<unsigned>(i) * 10;
    SCOPED_TRACE("WEIR_FUZZ_SEED=" + std::to_string(seed));
    std::cout << "seed " << seed << std::endl;
    EXPECT_GT(weir::run([&] { return run_storm(seed, sanitized ? 30 : 60); }), 0);
  }
  EXPECT_EQ(open_descriptors(), before);
}
