// SPDX-License-Identifier: MIT
// A group: related jobs; the first error cancels the others and is thrown when all have ended.

#include <cstdio>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<> copy(std::string file, weir::duration takes) {
  auto end = weir::scope_exit([&] {
    if (weir::unwinding() != nullptr) say("stopped " + file);
  });
  co_await weir::sleep(takes);
  if (file == "b") throw std::runtime_error("disk full at b");
  say("copied " + file);
}

task<> all_is_well() {
  co_await weir::with_group([](weir::group& g) -> task<> {
    g.go(copy("a", 2ms));
    g.go(copy("c", 1ms));
    co_await g.wait();
    say("all copied");
  });
}

// A failing job does not cancel the body: `wait` throws the error.
task<> first_error() {
  co_await weir::with_group([](weir::group& g) -> task<> {
    g.go(copy("a", 1ms));
    g.go(copy("b", 2ms));
    g.go(copy("c", 1h));
    try {
      co_await g.wait();
    } catch (const std::runtime_error& e) {
      say(e.what());
    }
  });
}

// A body that throws cancels the jobs too, and they are joined before the error leaves.
task<> body_throws() {
  try {
    co_await weir::with_group([](weir::group& g) -> task<> {
      g.go(copy("a", 1h));
      co_await weir::sleep(1ms);
      throw std::runtime_error("changed my mind");
    });
  } catch (const std::runtime_error& e) {
    say(e.what());
  }
}

// Several errors: the first is rethrown, the others can be kept as well.
task<> collected() {
  co_await weir::with_group({.name = "copies", .collect = 8}, [](weir::group& g) -> task<> {
    g.go(copy("b", 1ms));
    g.go(weir::shield(copy("b", 2ms)));
    try {
      co_await g.wait();
    } catch (const std::runtime_error&) {
      say(std::to_string(g.errors().size()) + " errors");
    }
  });
}

task<> program() {
  std::puts("all is well");
  co_await all_is_well();
  std::puts("the first error");
  co_await first_error();
  std::puts("the body throws");
  co_await body_throws();
  std::puts("several errors");
  co_await collected();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
