// SPDX-License-Identifier: MIT
// Events, and tests on virtual time.

#include <cstdio>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<int> guess(int value) {
  co_await weir::yield();
  co_return value;
}

// What is dropped, late or suppressed becomes an event, even without an observer.
task<> events() {
  const auto subscription = weir::on_event([](const weir::event_info& event) {
    say(std::string(event.name) + " '" + std::string(event.object) + "'");
  });
  auto body = [](weir::scope& s) -> task<> {
    auto slow = s.spawn(guess(1), {.name = "slow"});
    slow.cancel("not needed");
    co_return;
  };
  co_await weir::with_scope(body);
  say("kept: " + std::to_string(weir::recent_events().events.size()));
}

// The same seed gives the same run; another seed another order of what is ready.
task<> order_of_three(std::string& order) {
  auto body = [&](weir::scope& s) -> task<> {
    auto runner = [&](const char* name) -> task<> {
      co_await weir::yield();
      order += name;
    };
    for (const char* name : {"a", "b", "c"}) s.spawn(runner(name));
    co_await s.join();
  };
  co_await weir::with_scope(body);
}

std::string order_with(std::uint64_t seed) {
  std::string order;
  weir::sim::run({.seed = seed, .strategy = weir::sim::random}, order_of_three(order));
  return order;
}

void seeds() {
  bool varied = false;
  for (std::uint64_t seed = 1; seed < 100; ++seed) varied = varied || order_with(seed) != "abc";
  say(order_with(7) == order_with(7) ? "the same seed: the same order" : "not reproducible?");
  say(varied ? "100 seeds: more than one order" : "always the same order?");
}

// A real loop on a clock that the test advances.
void hand_driven_clock() {
  weir::test_clock clock;
  clock.advance(1h);
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::sleep(30min);
    say("after 30 minutes that took no time");
  });
}

// Nothing can wake this program: the error says which fiber waits for what.
void deadlock() {
  try {
    weir::sim::run({}, []() -> task<> {
      weir::counting_governor nothing(0, {.name = "nothing"});
      auto permit = co_await nothing.acquire();
    });
  } catch (const weir::sim::failure& e) {
    const bool named = std::string(e.what()).find("governor 'nothing'") != std::string::npos;
    say(e.code().message() + (named ? ": who waits, and for what, is in the text" : ""));
  }
}

}  // namespace

int main() {
  std::puts("events");
  weir::sim::run({}, events());
  std::puts("seeds");
  seeds();
  std::puts("a clock");
  hand_driven_clock();
  std::puts("deadlock");
  deadlock();
}
