// SPDX-License-Identifier: MIT
#include "peers/caf/system.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

struct state {
  std::int64_t count = 0;
};

caf::behavior counter(caf::stateful_actor<state>* self) {
  return {[=](std::int64_t n) { return self->state.count + n; }};
}

void ask(caf::event_based_actor* self, const caf::actor& whom, std::int64_t left,
         const caf::actor& told) {
  self->request(whom, caf::infinite, left).then([=](std::int64_t answer) {
    if (answer > 1) {
      ask(self, whom, answer - 1, told);
    } else {
      self->send(told, true);
    }
  });
}

/// Starts when it is sent whom to tell at the end.
caf::behavior caller(caf::event_based_actor* self, const caf::actor& whom, std::int64_t calls) {
  return {[=](const caf::actor& told) { ask(self, whom, calls, told); }};
}

double call_all(caf::actor_system& system, std::int64_t callers, std::int64_t size) {
  caf::scoped_actor self(system);
  const caf::actor whom = system.spawn(counter);
  std::vector<caf::actor> all;
  for (std::int64_t i = 0; i < callers; ++i) {
    all.push_back(system.spawn(caller, whom, size / callers));
  }
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = bench::clock::now();
    for (const caf::actor& one : all) self->send(one, caf::actor(self));
    for (std::int64_t i = 0; i < callers; ++i) bench::wait_until_told(self);
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  return each.median();
}

void measure(const char* row, std::int64_t callers, std::int64_t size) {
  const double each = bench::best_of_workers(
      [&](caf::actor_system& system) { return call_all(system, callers, size); });
  bench::report(row, size, each, "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  measure("call_1", 1, size);
  measure("call_100", 100, size);
}
