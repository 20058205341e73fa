// SPDX-License-Identifier: MIT
//
// Plain callbacks, no coroutine: arm all timers, cancel all, run their handlers. Making the timer
// objects is not counted.
#include <deque>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

double arm_and_cancel(bench::asio::io_context& context, std::deque<bench::timer>& timers) {
  std::int64_t cancelled = 0;
  std::int64_t index = 0;
  const auto start = bench::clock::now();
  for (bench::timer& each : timers) {
    each.expires_after(bench::far_away(++index));
    each.async_wait([&](boost::system::error_code) { ++cancelled; });
  }
  for (bench::timer& each : timers) each.cancel();
  context.restart();
  context.run();
  const double cost = bench::nanoseconds_since(start) / static_cast<double>(index);
  if (cancelled != index) std::abort();
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  bench::asio::io_context context(1);
  std::deque<bench::timer> timers;
  for (std::int64_t i = 0; i < size; ++i) timers.emplace_back(context.get_executor());
  arm_and_cancel(context, timers);
  bench::samples each;
  for (int round = 0; round < rounds; ++round) each.add(arm_and_cancel(context, timers));
  bench::report("timer_bulk", size, each.median(), "ns");
}
