// SPDX-License-Identifier: MIT
#include "peers/caf/system.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

struct state {
  std::int64_t left = 0;
  caf::actor told;
};

/// Is told how many will come and whom to tell after the last one.
caf::behavior counter(caf::stateful_actor<state>* self) {
  return {
      [=](std::int64_t expected, const caf::actor& told) { self->state = {expected, told}; },
      [=](std::int64_t n) {
        if ((self->state.left -= n) == 0) self->send(self->state.told, true);
      },
  };
}

caf::behavior sender(caf::event_based_actor* self, const caf::actor& whom) {
  return {[=](std::int64_t messages) {
    for (std::int64_t i = 0; i < messages; ++i) self->send(whom, std::int64_t{1});
  }};
}

double send_all(caf::actor_system& system, std::int64_t senders, std::int64_t size) {
  caf::scoped_actor self(system);
  const caf::actor whom = system.spawn(counter);
  std::vector<caf::actor> all;
  for (std::int64_t i = 0; i < senders; ++i) all.push_back(system.spawn(sender, whom));
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    self->send(whom, size, caf::actor(self));
    const auto start = bench::clock::now();
    for (const caf::actor& one : all) self->send(one, size / senders);
    bench::wait_until_told(self);
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  return each.median();
}

void measure(const char* row, std::int64_t senders, std::int64_t size) {
  const double each = bench::best_of_workers(
      [&](caf::actor_system& system) { return send_all(system, senders, size); });
  bench::report(row, size, each, "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  measure("senders_1", 1, size);
  measure("senders_4", 4, size);
  measure("senders_100", 100, size);
}
