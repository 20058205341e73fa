// SPDX-License-Identifier: MIT
// The forms that docs/compilers.md recommends, because g++-12 miscompiles others.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

// A closure that owns something is made in a separate statement.
task<> named_closure(std::string greeting) {
  auto body = [greeting](weir::scope& s) -> task<> {
    auto child = s.spawn([greeting]() -> task<> {
      co_await weir::sleep(1ms);
      say(greeting + " from the child");
    });
    co_await child;
    say(greeting + " from the body");
  };
  co_await weir::with_scope(std::move(body));
}

// Captures by reference are safe in place: this frame lives until the await is over.
task<> by_reference(std::string greeting) {
  co_await weir::with_timeout(1s, [&]() -> task<> {
    co_await weir::sleep(1ms);
    say(greeting + " by reference");
  });
}

task<int> sum(std::vector<int> numbers) {
  int total = 0;
  for (const int n : numbers) total += n;
  co_return total;
}

task<> list_first() {
  std::vector<int> numbers{1, 2, 3};
  say("sum " + std::to_string(co_await sum(std::move(numbers))));
}

task<bool> is_open(int tries) {
  co_await weir::sleep(1ms);
  co_return tries == 2;
}

task<std::string> greeting() {
  co_await weir::sleep(1ms);
  co_return "hello";
}

struct labelled {
  std::string title;
  int number = 0;
};

// An aggregate with a string is made in a statement without an await.
task<> awaited_first() {
  std::string title = co_await greeting();
  const labelled row{std::move(title), 1};
  weir::queue<labelled> rows(1);
  co_await rows.push(row);
  say("pushed " + row.title);
}

// So is an object that a conditional operator chooses.
task<> chosen_first(bool formal) {
  const bool evening = co_await is_open(2);
  std::string chosen = formal ? std::string("good evening") : std::string("hello");
  weir::queue<std::string> words(1);
  co_await words.push(std::move(chosen));
  say(evening ? "chosen in the evening" : "chosen");
}

// The result of an await has a name before it is a condition.
task<> in_a_condition(int& tries) {
  const bool open = co_await is_open(tries);
  if (open) say("open after " + std::to_string(tries) + " tries");
}

// What is awaited only if something else holds is awaited in a statement of its own.
task<> on_the_right(bool has_ticket, int tries) {
  bool enters = has_ticket;
  if (enters) enters = co_await is_open(tries);
  say(enters ? "enters" : "stays outside");
}

// A loop that goes on while an await says so awaits in its body.
task<> in_a_loop() {
  int tries = 0;
  for (bool open = false; !open;) open = co_await is_open(tries++);
  say("knocked " + std::to_string(tries) + " times");
}

// An await in a throw expression is cancelled before the exception is made, not after.
task<> before_a_throw() {
  try {
    const std::string reason = co_await greeting();
    throw std::runtime_error(reason);
  } catch (const std::runtime_error& e) {
    say("caught " + std::string(e.what()));
  }
}

struct alignas(64) cache_line {
  std::int64_t counters[8] = {};
};

task<> over_aligned() {
  const auto line = std::make_unique<cache_line>();
  co_await weir::yield();
  line->counters[0] = 1;
  say(reinterpret_cast<std::uintptr_t>(line.get()) % 64 == 0 ? "aligned" : "misaligned?");
}

task<> program() {
  co_await named_closure("hello");
  co_await by_reference("hello");
  co_await list_first();
  int tries = 2;
  co_await awaited_first();
  co_await chosen_first(true);
  co_await in_a_condition(tries);
  co_await on_the_right(true, tries);
  co_await on_the_right(false, tries);
  co_await in_a_loop();
  co_await before_a_throw();
  co_await over_aligned();
}

}  // namespace

int main() {
  std::puts("safe forms");
  weir::sim::run({}, program());
}
