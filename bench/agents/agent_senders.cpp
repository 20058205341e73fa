// SPDX-License-Identifier: MIT
//
// Fibers that cast to one agent until it has handled all of it: on its own loop, and on another
// one. A cast never waits, so a sender gives way after each hundred.
#include <weir/weir.hpp>

#include "agents/counter.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;
constexpr std::int64_t burst = 100;

using counter_ref = weir::agent_ref<bench::counter>;

weir::task<> send_many(counter_ref agent, std::int64_t messages) {
  for (std::int64_t i = 1; i <= messages; ++i) {
    if (agent.cast(&bench::counter::add, 1) != weir::sent::enqueued) std::abort();
    if (i % burst == 0) co_await weir::yield();
  }
}

weir::task<> send_all(counter_ref agent, std::int64_t senders, std::int64_t size) {
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < senders; ++i) s.spawn(send_many(agent, size / senders));
    co_return;
  });
}

/// `send` sends `size` messages to the agent and ends when the last one is on its way.
template <class F>
weir::task<> measure(const char* row, std::int64_t size, F send) {
  bench::samples each;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto agent = weir::spawn_agent<bench::counter>(s, {.name = "counter"});
    for (int round = 0; round <= rounds; ++round) {
      const auto start = bench::clock::now();
      co_await send(agent);
      const std::int64_t handled = co_await agent.call(&bench::counter::take);
      const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
      if (handled != size) std::abort();
      if (round > 0) each.add(cost);
    }
  });
  bench::report(row, size, each.median(), "ns");
}

weir::task<> measure_near(const char* row, std::int64_t senders, std::int64_t size) {
  return measure(row, size, [=](counter_ref agent) { return send_all(agent, senders, size); });
}

weir::task<> measure_far(weir::loop_thread& there, std::int64_t size) {
  return measure("senders_far", size, [&there, size](counter_ref agent) {
    return weir::on(there, [=] { return send_all(agent, 100, size); });
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  weir::run(measure_near("senders_1", 1, size));
  weir::run(measure_near("senders_4", 4, size));
  weir::run(measure_near("senders_100", 100, size));
  weir::run(
      weir::with_loop_thread([&](weir::loop_thread& there) { return measure_far(there, size); }));
}
