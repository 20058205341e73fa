// SPDX-License-Identifier: MIT
// Time limits: the report is exact, and nothing is left running.

#include <cstdio>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<std::string> reply(weir::duration takes) {
  auto end = weir::scope_exit([] {
    if (weir::unwinding() != nullptr) say("the request is withdrawn");
  });
  co_await weir::sleep(takes);
  co_return "a reply";
}

task<> in_time() {
  const std::string text = co_await weir::with_timeout(100ms, reply(20ms));
  say(text);
}

// The operation is unwound before the error is thrown: it does not continue in the background.
task<> too_late() {
  try {
    co_await weir::with_timeout(100ms, reply(1h));
  } catch (const weir::timeout_error& e) {
    say(e.what());
  }
}

// The nearest of several limits applies and is reported.
task<> nested() {
  try {
    co_await weir::with_timeout(50ms, weir::with_timeout(100ms, reply(1h)));
  } catch (const weir::timeout_error& e) {
    say(e.what());
  }
}

// A value at the last moment, and one that cancellation could not stop, are delivered.
task<> just_in_time() {
  const std::string last = co_await weir::with_timeout(100ms, reply(100ms));
  say(last + " at the last moment");
  const std::string late = co_await weir::with_timeout(100ms, weir::shield(reply(150ms)));
  say(late + " that came late");
}

task<> program() {
  std::puts("in time");
  co_await in_time();
  std::puts("too late");
  co_await too_late();
  std::puts("nested");
  co_await nested();
  std::puts("just in time");
  co_await just_in_time();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
