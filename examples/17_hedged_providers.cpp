// SPDX-License-Identifier: MIT
// Several providers of the same data: a second one is asked when the first is slow, and a fallback
// answers when none of them does.

#include <cstdio>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

struct provider {
  const char* name;
  weir::duration takes;
  bool works = true;
};

task<std::string> ask(const provider& p) {
  auto end = weir::scope_exit([&] {
    if (weir::unwinding() != nullptr) say(std::string(p.name) + " is not needed any more");
  });
  say(std::string("asking ") + p.name);
  co_await weir::sleep(p.takes);
  if (!p.works) throw std::runtime_error(std::string(p.name) + " is broken");
  co_return std::string("answer of ") + p.name;
}

/// Each attempt asks the next provider. The second one starts after 50 ms, or at once if the first
/// one fails; the first value wins, and the loser is cancelled and joined.
task<std::string> quote(const provider& first, const provider& second) {
  int next = 0;
  auto attempt = [&] { return ask(next++ == 0 ? first : second); };
  auto quote = weir::op(attempt) | weir::hedge({.after = 50ms, .max = 2}) | weir::timeout(200ms) |
               weir::fallback([] { return std::string("yesterday's"); });
  co_return co_await quote();
}

task<> show(const char* title, provider first, provider second) {
  std::puts(title);
  const auto begun = weir::now();
  const std::string answer = co_await quote(first, second);
  say(answer + " after " + std::to_string((weir::now() - begun) / 1ms) + " ms");
}

task<> program() {
  co_await show("the first is fast", {"north", 20ms}, {"south", 30ms});
  co_await show("the first is slow", {"north", 100ms}, {"south", 30ms});
  co_await show("the first is broken", {"north", 10ms, false}, {"south", 30ms});
  co_await show("both are broken", {"north", 10ms, false}, {"south", 30ms, false});
  co_await show("both are too slow", {"north", 1h}, {"south", 1h});
}

}  // namespace

int main() { weir::sim::run({}, program()); }
