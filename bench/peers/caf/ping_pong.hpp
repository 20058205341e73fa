// SPDX-License-Identifier: MIT
//
// Two actors that send a number back and forth.
#pragma once

#include "peers/caf/system.hpp"
#include "support/measure.hpp"

namespace bench {

inline caf::behavior pong(caf::event_based_actor*) {
  return {[](std::int64_t value) { return value + 1; }};
}

struct game {
  std::int64_t left = 0;
  caf::actor told;
};

/// Starts when it is sent whom to tell at the end.
inline caf::behavior ping(caf::stateful_actor<game>* self, caf::actor other, std::int64_t size) {
  return {
      [=](caf::actor told) {
        self->state = {size, told};
        self->send(other, std::int64_t{0});
      },
      [=](std::int64_t value) {
        if (--self->state.left > 0) {
          self->send(other, value);
        } else {
          self->send(self->state.told, true);
        }
      },
  };
}

template <caf::spawn_options Options = caf::no_spawn_options>
double play(caf::actor_system& system, std::int64_t size) {
  constexpr int rounds = 5;
  caf::scoped_actor self(system);
  const caf::actor first = system.spawn<Options>(ping, system.spawn<Options>(pong), size);
  samples each;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = clock::now();
    self->send(first, caf::actor(self));
    wait_until_told(self);
    const double cost = nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  return each.median();
}

}  // namespace bench
