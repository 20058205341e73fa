// SPDX-License-Identifier: MIT
// Periodic work: a cleanup that runs until it is cancelled, or until its handle stops it.

#include <cstdio>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

struct cache {
  int entries = 100;
  task<> drop_old() {
    co_await weir::sleep(50ms);
    entries -= 10;
    say(std::to_string(entries) + " entries are left");
  }
};

// `every` does not end by itself: it is cancelled with the fiber that it runs in.
task<> until_cancelled() {
  cache sessions;
  try {
    co_await weir::with_timeout(
        4s, [&] { return weir::every(1s, [&] { return sessions.drop_old(); }); });
  } catch (const weir::timeout_error&) {
    say("stopped by the time limit");
  }
}

// In the background of a scope; dropping the handle, or the end of the scope, stops it.
task<> until_stopped() {
  cache sessions;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto cleaner = weir::start_every(s, 1s, [&] { return sessions.drop_old(); });
    co_await weir::sleep(2s + 75ms);  // in the middle of the second run
    cleaner.stop();                   // no further run; this one finishes
    co_await cleaner.wait();
    say("stopped by the handle");
  });
}

// At a fixed rate the starts do not drift; those that a slow run missed are skipped and counted.
task<> at_a_fixed_rate() {
  auto told = weir::on_event([](const weir::event_info& e) {
    if (e.name == "every_skipped") say(std::to_string(e.number) + " starts skipped");
  });
  const auto begun = weir::now();
  int run = 0;
  auto job = [&]() -> task<> {
    say("run after " + std::to_string((weir::now() - begun) / 1s) + " s");
    co_await weir::sleep(++run == 2 ? 3500ms : 100ms);
  };
  const auto ended = co_await weir::settle(
      weir::with_timeout(7500ms, [&] { return weir::every(1s, {.fixed_rate = true}, job); }));
  say(ended.is_error() ? "stopped by the time limit" : "ended?");
}

task<> program() {
  std::puts("until it is cancelled");
  co_await until_cancelled();
  std::puts("until it is stopped");
  co_await until_stopped();
  std::puts("at a fixed rate");
  co_await at_a_fixed_rate();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
