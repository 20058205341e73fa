// SPDX-License-Identifier: MIT
// A checkout that survives a crash of its process: the results of its steps are in a journal, and
// the process that opens the journal next continues after the last one. Here the process is a loop
// of a simulated world, which is crashed and loses everything that its disk had not synced.

#include <cstdio>
#include <string>

#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

struct order {
  std::string id;
  int cents = 0;
};
WEIR_DESCRIBE(order, id, cents)

void say(const std::string& what) {
  const auto hours = weir::now().time_since_epoch() / 1h;
  std::printf("  %2d h: %s\n", static_cast<int>(hours), what.c_str());
}

// Everything with an external effect is in a step. The code between steps runs again in each
// process, with the same outcome: the results of steps are read from the journal.
task<std::string> checkout(order o) {
  const int paid = co_await weir::step("charge", [&] {
    say("charge " + std::to_string(o.cents));
    return o.cents;
  });
  co_await weir::sleep(24h);  // until then, in whichever process
  co_return co_await weir::step("ship", [&] {
    say("ship " + o.id);
    return o.id + " for " + std::to_string(paid);
  });
}

task<> process(weir::disk& disk) {
  auto body = [](weir::durable::engine& e) -> task<> {
    e.add("checkout", checkout);
    say("a process opens the journal");
    co_await e.open();  // resumes unfinished runs
    const order o{"o-17", 900};
    // The same id is the same run: the second process attaches to it.
    auto run = co_await e.start<std::string>("checkout", {.id = o.id}, o);
    say("done: " + co_await run.result());
  };
  co_await weir::durable::with_engine(
      {.path = "orders.weir", .segment_bytes = 64 << 10, .disk = &disk}, body);
}

task<> crash_in_between(weir::sim::world& w) {
  auto work = [&] { return process(w.disk()); };
  co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
    auto first = s.spawn_on(w.loop("shop"), work);
    co_await weir::sleep(10h);
    w.crash("shop");
    say("the process is dead");
    (void)co_await weir::settle(first);
    co_await weir::sleep(5h);
    co_await weir::on(w.loop("shop"), work);
  });
}

}  // namespace

int main() {
  weir::sim::world w;
  w.run(crash_in_between);
}
