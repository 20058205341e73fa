// SPDX-License-Identifier: MIT
// An audit log: records come from a hot source, which continues with or without subscribers. The
// log must have every record: it makes the source wait when it is behind, and it is consumed to
// completion when the source ends. A dashboard beside it may miss records.

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

struct record {
  int number;
  std::string what;
};

// A disk that takes 20 ms for each record.
task<> write(record r) {
  co_await weir::sleep(20ms);
  say("logged " + std::to_string(r.number) + ", " + r.what);
}

// The function that uses a subscription owns it, so it lives as long as it is used.
task<> drain(weir::subscription<record> from) { co_await (from.stream() | weir::for_each(write)); }

// Reads the latest record from time to time.
task<> show(weir::subscription<record> from) {
  for (;;) {
    auto latest = co_await from.next();
    if (!latest) break;
    say("dashboard: " + std::to_string(latest->number) + ", missed " +
        std::to_string(from.missed()));
    co_await weir::sleep(60ms);
  }
}

// A cold description of the source: nothing happens before the first pull.
weir::stream<record> actions() {
  const char* const all[] = {"login", "read", "read", "write", "logout"};
  int number = 0;
  for (const char* const what : all) {
    co_await weir::sleep(5ms);
    say("done " + std::to_string(++number));
    record next{number, what};  // not inside co_yield: see docs/compilers.md
    co_yield std::move(next);
  }
}

// share() makes it hot: a child of the scope pulls it and gives each record to every subscriber.
task<> to_completion() {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    auto hot = weir::share(s, actions(), {.capacity = 2, .stop = weir::when::never});
    auto log = hot.subscribe();  // overflow::wait: the source waits rather than lose a record
    s.background(show(hot.subscribe({.overflow = weir::overflow::conflate})));
    co_await drain(std::move(log));  // until the source has ended
    say("the log is complete");
  });
}

// The same by hand: the emitter closes the broadcast, and the log is drained before the scope ends,
// long after the service has stopped.
task<> after_the_end() {
  weir::broadcast<record> records(8);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(drain(records.subscribe()));
    for (int number = 1; number <= 3; ++number) {
      record next{number, "request"};
      co_await records.emit(std::move(next));
    }
    records.close();
    say("the service has stopped");
  });
  say("the log is complete");
}

template <class F>
void chapter(const char* title, F part) {
  std::puts(title);
  weir::sim::run({}, part);
}

}  // namespace

int main() {
  chapter("a shared source", to_completion);
  chapter("after the end of the service", after_the_end);
}
