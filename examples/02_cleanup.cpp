// SPDX-License-Identifier: MIT
// Cleanup on every way out: guards, defers, services, `finally` and shields.

#include <cstdio>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

enum class ending { success, error, cancelled };

// Three ways to leave a block, three guards. An ordinary destructor cannot tell a cancellation from
// a normal exit by std::uncaught_exceptions(); these can.
task<> transaction(ending how) {
  const auto unlock = weir::scope_exit([] { say("unlock"); });
  const auto commit = weir::scope_success([] { say("commit"); });
  const auto roll_back = weir::scope_failure([] { say("roll back"); });
  if (how == ending::error) throw std::runtime_error("constraint violated");
  if (how == ending::cancelled) co_await weir::sleep(1h);
}

task<> guards() {
  for (const ending how : {ending::success, ending::error, ending::cancelled}) {
    const auto out = co_await weir::settle(weir::with_timeout(1ms, transaction(how)));
    say(out.is_value() ? "-> value" : "-> error");
  }
}

// A defer runs when its scope ends, after the children; it may await, and gets how the scope ended.
task<> upload(bool fails) {
  auto body = [&](weir::scope& s) -> task<> {
    s.defer([](const weir::outcome_view& how) -> task<> {
      co_await weir::sleep(10ms);  // notifies the server, even if the scope was cancelled or failed
      say(how.is_value() ? "told the server: done" : "told the server: aborted");
    });
    co_await weir::sleep(1ms);
    if (fails) throw std::runtime_error("connection lost");
  };
  co_await weir::with_scope(body);
}

// An operation that takes a context may defer to its own end instead.
task<> with_temporary_file() {
  auto work = [](weir::context& self) -> task<> {
    self.defer([] { say("temporary file removed"); });
    co_await weir::sleep(1ms);
    say("temporary file used");
  };
  const auto out = co_await weir::settle(work);
  say(out.is_value() ? "-> value" : "-> error");
}

task<int> measure() {
  co_await weir::sleep(1ms);
  co_return 21;
}

// `finally` is a defer for a single operation.
task<> lamp() {
  const int value = co_await (measure() | weir::finally([] { say("lamp off"); }));
  say("measured " + std::to_string(value));
}

task<> ship() {
  co_await weir::sleep(5ms);
  say("shipped");
}

// Once the money is taken the goods are shipped, even if the fiber is cancelled meanwhile. The
// cancellation takes effect at the first await after the shield.
task<> order() {
  co_await weir::shield(ship());
  co_await weir::sleep(1h);
  say("never reached");
}

task<> collect_metrics() {
  const auto stopped = weir::scope_exit([] { say("metrics service stopped"); });
  for (;;) co_await weir::sleep(1s);
}

// A service is cancelled when everything else in its scope has ended. `start` waits until a child
// reports that it is up, and returns the value that it reported.
task<> services() {
  auto body = [](weir::scope& s) -> task<> {
    s.background(collect_metrics(), {.name = "metrics"});
    const int port = co_await s.start([](weir::started<int>& up) -> task<> {
      co_await weir::sleep(3ms);
      up(8080);
      co_await weir::sleep(20ms);
      say("listener done");
    });
    say("listening on " + std::to_string(port));
  };
  co_await weir::with_scope(body);
}

task<> program() {
  std::puts("guards");
  co_await guards();
  std::puts("defer");
  co_await upload(false);
  (void)co_await weir::settle(upload(true));
  co_await with_temporary_file();
  std::puts("finally");
  co_await lamp();
  std::puts("shield");
  (void)co_await weir::settle(weir::with_timeout(1ms, order()));
  std::puts("services");
  co_await services();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
