// SPDX-License-Identifier: MIT
// A consumer that is restarted when it fails, with growing pauses, until it fails too often.

#include <cstdio>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %4d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

/// Messages 3 and 6 break the connection; after `broken_after` every connection fails.
struct broker {
  int delivered = 0;
  int broken_after = 1000;
  task<int> next() {
    co_await weir::sleep(10ms);
    const int message = ++delivered;
    if (message == 3 || message == 6) throw std::runtime_error("connection lost");
    if (message > broken_after) throw std::runtime_error("broker is down");
    co_return message;
  }
};

/// One life of the consumer. What it holds is released before the next life begins.
task<> consume(broker& from, int until) {
  say("connected");
  auto end = weir::scope_exit([] { say("disconnected"); });
  while (from.delivered < until) {
    const int message = co_await from.next();
    say("message " + std::to_string(message));
  }
}

task<> restarted() {
  broker b;
  auto consumer =
      weir::op([&] { return consume(b, 8); }) |
      weir::supervise(
          {.max_restarts = 3, .within = 5s, .backoff = {.base = 100ms, .reset_after = 1min}});
  co_await consumer();
  say("all is consumed");
}

task<> given_up() {
  broker b{.delivered = 10, .broken_after = 11};
  auto told = weir::on_event([](const weir::event_info& e) {
    if (e.name == "restart") say("restart " + std::to_string(e.number));
  });
  auto consumer = weir::op([&] { return consume(b, 1000); }) |
                  weir::supervise({.max_restarts = 2, .within = 5s, .backoff = {.base = 100ms}});
  try {
    co_await consumer();
  } catch (const weir::restart_limit_error& e) {
    say("given up after " + std::to_string(e.errors().size()) + " failures");
  }
}

task<> program() {
  std::puts("restarted");
  co_await restarted();
  std::puts("given up");
  co_await given_up();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
