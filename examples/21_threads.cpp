// SPDX-License-Identifier: MIT
// Several threads: operations on another loop, blocking functions, and the end of a loop. Here they
// run in a simulation, where every thread is a simulated loop; with weir::run they are real.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<std::string> look_up(std::string word) {
  auto end = weir::scope_exit([&] {
    if (weir::unwinding() != nullptr) say("stopped looking for " + word);
  });
  co_await weir::sleep(10ms);
  if (word == "weir") co_return "a low dam";
  if (word == "flood") co_await weir::sleep(1h);
  throw std::runtime_error("no such word");
}

// Value, error, cancellation and deadline cross loops as they do inside one.
task<> on_another_loop() {
  co_await weir::with_loop_thread({.name = "dictionary"}, [](weir::loop_thread& t) -> task<> {
    const std::string meaning = co_await weir::on(t, look_up("weir"));
    say(meaning);
    try {
      co_await weir::on(t, look_up("wier"));
    } catch (const std::runtime_error& e) {
      say(e.what());
    }
    try {
      co_await weir::with_timeout(50ms, weir::on(t, look_up("flood")));
    } catch (const weir::timeout_error&) {
      say("the caller went on when the other side had ended");
    }
  });
}

// One loop per core; a child goes to the loop with the fewest.
task<> several() {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    weir::runtime rt(s, {.name = "cpu", .threads = 2});
    auto left = s.spawn_on(rt.any(), look_up("weir"));
    auto right = s.spawn_on(rt.any(), look_up("weir"));
    const std::string both = co_await left + ", " + co_await right;
    say(both + " (" + std::to_string(rt.size()) + " threads)");
  });
}

int read_from_disk() { return 42; }  // something that blocks its thread

task<> functions_that_block() {
  int read = 0;
  co_await weir::blocking([&] { read = read_from_disk(); });
  say("read " + std::to_string(read));
  // This one owns what it uses, so a cancelled caller does not have to wait for it.
  const int sum =
      co_await weir::blocking(weir::may_abandon, [](int a, int b) { return a + b; }, 40, 2);
  say("sum " + std::to_string(sum));
}

// If a loop ends, so do its remote children; their callers get errc::loop_gone.
task<> loop_gone(weir::sim::world& w) {
  auto ask = weir::on(w.loop("server"), look_up("flood"));
  auto body = [&](weir::scope& s) -> task<> {
    auto answer = s.spawn(std::move(ask));
    co_await weir::sleep(1s);
    w.crash("server");
    co_await answer;
  };
  try {
    co_await weir::with_scope(body);
  } catch (const weir::error& e) {
    say(e.code().message());
  }
}

task<> program(weir::sim::world& w) {
  std::puts("on another loop");
  co_await on_another_loop();
  std::puts("several loops");
  co_await several();
  std::puts("functions that block");
  co_await functions_that_block();
  std::puts("a loop that is gone");
  co_await loop_gone(w);
}

}  // namespace

int main() { weir::sim::run({}, program); }
