// SPDX-License-Identifier: MIT
// Several operations as one, under time limits and with limited concurrency.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<std::string> ask(const char* server, weir::duration delay) {
  co_await weir::sleep(delay);
  co_return std::string("answer of ") + server;
}

task<std::string> refuse(const char* server) {
  co_await weir::sleep(1ms);
  throw std::runtime_error(std::string(server) + " refused");
}

task<> time_limits() {
  say(co_await weir::with_timeout(10ms, ask("near", 5ms)));
  say(co_await (ask("near", 5ms) | weir::timeout(10ms)));
  try {
    say(co_await weir::with_timeout(10ms, ask("far", 5s)));
  } catch (const weir::timeout_error& e) {
    say(e.what());
  }

  // The innermost operation sees the nearest of all limits around it.
  auto inner = [](weir::context& self) -> task<> {
    const auto left = *self.deadline() - weir::now();
    say("left: " + std::to_string(left / 1ms) + " ms");
    co_return;
  };
  co_await weir::with_timeout(50ms, weir::with_timeout(1h, inner));
}

task<> all_and_race() {
  auto [left, right] = co_await weir::all(ask("left", 5ms), ask("right", 3ms));
  say(left + ", " + right);
  say(co_await weir::race(ask("tortoise", 1h), ask("hare", 1ms)));
  say(co_await weir::any(refuse("primary"), ask("replica", 20ms)));

  auto outcomes = co_await weir::all_settled(ask("steady", 1ms), refuse("shaky"));
  say(std::get<0>(outcomes).value() + (std::get<1>(outcomes).is_error() ? ", one error" : ""));
}

// Over waits the index of the variant says which was first; the other is withdrawn, not lost.
task<> permit_or_patience(weir::counting_governor& seats) {
  auto first = co_await weir::race(seats.acquire(), weir::sleep(10ms));
  if (auto* seat = std::get_if<weir::permit>(&first)) {
    say("got a seat");
    seat->release();
  } else {
    say("left after 10 ms");
  }
}

task<> observing() {
  auto body = [](weir::scope& s) -> task<> {
    auto slow = s.spawn(ask("slow", 9ms));
    auto fast = s.spawn(ask("fast", 2ms));
    const auto index = co_await weir::select(slow, fast);  // futures are observed, not cancelled
    say("first settled: number " + std::to_string(index));
    say(co_await slow + " came as well");
  };
  co_await weir::with_scope(body);
}

task<int> square(int n) {
  co_await weir::sleep(1ms);
  co_return n* n;
}

task<> limited_concurrency() {
  const std::vector<int> numbers{1, 2, 3, 4, 5};
  const std::vector<int> squares = co_await weir::parallel_map(numbers, square, 2);
  say("the last of " + std::to_string(squares.size()) + " squares: " + std::to_string(squares[4]));

  weir::counting_governor licences(2, {.name = "licences"});
  const int value = co_await weir::with(licences, square(7));
  say(std::to_string(value) + ", licences free: " + std::to_string(licences.available()));
}

task<> program() {
  std::puts("time limits");
  co_await time_limits();
  std::puts("all, race, any, all_settled");
  co_await all_and_race();
  std::puts("a race over waits");
  weir::counting_governor seats(1, {.name = "seats"});
  co_await permit_or_patience(seats);
  {
    const weir::permit taken = co_await seats.acquire();
    co_await permit_or_patience(seats);
  }
  std::puts("select");
  co_await observing();
  std::puts("limited concurrency");
  co_await limited_concurrency();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
