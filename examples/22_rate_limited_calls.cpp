// SPDX-License-Identifier: MIT
// Calls to a service with a rate limit: a burst first, the rest at the rate; a limit on calls in
// flight as well; and a share for each kind of customer.

#include <cstdio>
#include <string>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %4d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

/// Takes 300 ms for an answer.
struct service {
  int in_flight = 0;

  task<int> ask(int question) {
    ++in_flight;
    say("question " + std::to_string(question) + ", in flight: " + std::to_string(in_flight));
    co_await weir::sleep(300ms);
    --in_flight;
    co_return 2 * question;
  }
};

// Three at once, because the bucket is full at first; then ten per second.
task<> at_a_rate() {
  service s;
  weir::rate_governor rate({.name = "service", .per_second = 10, .burst = 3});
  auto ask = rate.wrap([&](int question) { return s.ask(question); });
  const std::vector<int> questions{1, 2, 3, 4, 5, 6};
  const auto answers = co_await weir::parallel_map(questions, ask, weir::unbounded);
  say("the last answer is " + std::to_string(answers.back()));
}

// The same rate, and at most two in flight: one permit of both governors.
task<> at_a_rate_and_not_too_many() {
  service s;
  weir::counting_governor in_flight(2);
  weir::rate_governor rate({.per_second = 10, .burst = 3});
  auto both = weir::compose(in_flight, rate);
  auto ask = weir::wrap(both, [&](int question) { return s.ask(question); });
  const std::vector<int> questions{1, 2, 3, 4};
  co_await weir::parallel_map(questions, ask, weir::unbounded);
}

// A caller that would wait for more than 250 ms gives up, and has used no permit.
task<> impatient() {
  weir::rate_governor rate({.per_second = 10, .burst = 1});
  auto question = [&]() -> task<> {
    try {
      auto permit = co_await rate.acquire_for(250ms);
      say("asked");
    } catch (const weir::timeout_error&) {
      say("gave up");
    }
  };
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    for (int i = 0; i < 5; ++i) scope.spawn(question);
    co_await scope.join();
  });
}

// Six can be served at once. Paying customers are entitled to four of them; the others may borrow
// what is unused, and a released permit goes first to a part below its share.
task<> shares() {
  weir::partitioned_governor seats(6, {{"paying", 60}, {"free", 30}});
  auto visit = [&](const char* kind) -> task<> {
    auto seat = co_await seats.part(kind).acquire();
    say(std::string(kind) + ", paying " + std::to_string(seats.part("paying").active()) +
        ", free " + std::to_string(seats.part("free").active()));
    co_await weir::sleep(100ms);
  };
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    for (int i = 0; i < 8; ++i) scope.spawn([&] { return visit("free"); });
    co_await weir::sleep(50ms);
    for (int i = 0; i < 4; ++i) scope.spawn([&] { return visit("paying"); });
    co_await scope.join();
  });
}

template <class F>
void chapter(const char* title, F part) {
  std::puts(title);
  weir::sim::run({}, part);
}

}  // namespace

int main() {
  chapter("at a rate", at_a_rate);
  chapter("at a rate, and at most two in flight", at_a_rate_and_not_too_many);
  chapter("with little patience", impatient);
  chapter("with shares", shares);
}
