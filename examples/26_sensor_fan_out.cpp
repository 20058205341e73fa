// SPDX-License-Identifier: MIT
// One sensor, three readers of different speed. The sensor cannot be slowed down, so each reader
// chooses an overflow policy; none of them affects another.

#include <cstdio>
#include <string>
#include <utility>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %3d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

// A value every 10 ms. No reader uses `overflow::wait`, so no value is refused.
task<> sensor(weir::broadcast<int>& values) {
  for (int value = 1; value <= 12; ++value) {
    co_await weir::sleep(10ms);
    values.try_emit(value);
  }
  values.close();  // readers still get what is buffered
}

// Needs some time for each value, and reports which ones it missed.
task<> reader(std::string who, weir::subscription<int> values, weir::duration pause) {
  for (;;) {
    auto value = co_await values.next();
    if (!value) break;
    const auto missed = values.missed();
    say(who + ": " + std::to_string(*value) +
        (missed == 0 ? "" : " (missed " + std::to_string(missed) + ")"));
    co_await weir::sleep(pause);
  }
  say(who + ": missed " + std::to_string(values.missed_total()) + " in all");
}

task<> program() {
  using weir::overflow;
  weir::broadcast<int> values(3);  // each reader may be three values behind
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    // As fast as the sensor.
    s.spawn(reader("display", values.subscribe({.overflow = overflow::drop_oldest}), 0ms));
    // Too slow, and wants recent values: the oldest of its three values is dropped.
    s.spawn(reader("logger", values.subscribe({.overflow = overflow::drop_oldest}), 35ms));
    // Even slower, and wants the latest value alone.
    s.spawn(reader("web page", values.subscribe({.overflow = overflow::conflate}), 55ms));
    co_await sensor(values);
  });
}

}  // namespace

int main() { weir::sim::run({}, program); }
