// SPDX-License-Identifier: MIT
// One class, twice: as an agent, whose messages are handled one at a time while its process lives,
// and as a durable object, whose messages are handled one at a time per key, and whose state
// survives the process.

#include <cstdio>
#include <map>
#include <string>

#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

struct line {
  std::string item;
  int count = 0;
};
WEIR_DESCRIBE(line, item, count);

// Nothing in it knows how it is kept.
class basket {
 public:
  int add(const line& l) {
    if (l.count <= 0) throw weir::terminal_error("nothing to add");
    return items[l.item] += l.count;
  }
  int size() const {
    int all = 0;
    for (const auto& [item, count] : items) all += count;
    return all;
  }

  std::map<std::string, int> items;
};
WEIR_DESCRIBE(basket, items);

task<> as_an_agent(weir::scope& s) {
  auto b = weir::spawn_agent<basket>(s, {.name = "basket"});
  const line two_cups{"cup", 2};
  const int cups = co_await b.call(&basket::add, two_cups);
  const int all = co_await b.call(&basket::size);
  say(std::to_string(cups) + " cups, " + std::to_string(all) + " in all");
  co_await b.stop();
}

// A message of the agent is a handler of the object: it takes the state, calls the class, and puts
// the state back. State, result and the mail are committed together, or not at all.
task<int> add(line l) {
  auto state = weir::stored<basket>("basket");
  const std::optional<basket> before = co_await state.get();
  basket b = before.value_or(basket{});
  const int count = b.add(l);
  state.set(b);
  const std::string text = weir::this_key() + " has " + std::to_string(count) + " " + l.item;
  co_await weir::send("mail", text, {.delay = 1h});
  co_await weir::sleep(10min);  // the next message of this key waits, those of others do not
  if (l.item == "glass") throw weir::terminal_error("glass is sold out");
  co_return count;
}

// Shared: it runs beside the others and sees what was committed last.
task<int> size() {
  const std::optional<basket> b = co_await weir::stored<basket>("basket").get();
  co_return b.value_or(basket{}).size();
}

task<> mail(std::string text) {
  co_await weir::step("mail", [&] { say("mail: " + text); });
}

void add_handlers(weir::durable::engine& e) {
  e.add_object("basket", {{"add", add}, {"size", weir::durable::shared(size)}});
  e.add("mail", mail);
}

task<int> size_of(weir::durable::engine& e, std::string_view key) {
  auto run = co_await e.start<int>("basket/size", {.key = key});
  co_return co_await run.result();
}

task<> first_process(weir::durable::engine& e) {
  const line cups{"cup", 2}, glasses{"glass", 1};
  auto first = co_await e.start<int>("basket/add", {.id = "a1", .key = "ann"}, cups);
  auto fails = co_await e.start<int>("basket/add", {.id = "a2", .key = "ann"}, glasses);
  (void)co_await e.start<int>("basket/add", {.id = "a3", .key = "ann"}, cups);
  auto other = co_await e.start<int>("basket/add", {.id = "b1", .key = "bob"}, cups);
  say("ann and bob: " + std::to_string(co_await first.result()) + " and " +
      std::to_string(co_await other.result()) + " cups");
  try {
    (void)co_await fails.result();
  } catch (const weir::terminal_error& error) {
    say(std::string("failed: ") + error.what());
  }
  const int size_now = co_await size_of(e, "ann");
  say("ann has " + std::to_string(size_now) + " things, and one message waits");
}

task<> second_process(weir::durable::engine& e) {
  const line cups{"cup", 2};
  auto last = co_await e.start<int>("basket/add", {.id = "a3", .key = "ann"}, cups);
  const int count = co_await last.result();
  say("ann has " + std::to_string(count) + " cups");
  co_await weir::sleep(2h);  // no mail of the message that has failed
}

task<> process(weir::disk& disk, task<> (*use)(weir::durable::engine&)) {
  auto body = [use](weir::durable::engine& e) -> task<> {
    add_handlers(e);
    co_await e.open();
    co_await use(e);
  };
  co_await weir::durable::with_engine(
      {.path = "baskets.weir", .segment_bytes = 64 << 10, .disk = &disk}, body);
}

}  // namespace

int main() {
  std::puts("an agent");
  weir::sim::run({}, [] { return weir::with_scope(as_an_agent); });
  weir::sim::world w;
  std::puts("an object");
  w.run([&] { return process(w.disk(), first_process); });
  std::puts("in the next process");
  w.run([&] { return process(w.disk(), second_process); });
}
