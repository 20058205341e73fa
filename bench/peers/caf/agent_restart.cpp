// SPDX-License-Identifier: MIT
//
// CAF has no supervisors: an actor that monitors another and spawns it again when it goes down is
// the usual way. It counts nothing and knows no order.
#include "peers/caf/system.hpp"
#include "support/measure.hpp"

#include <stdexcept>

namespace {

/// Crashes on its first message, which is its own.
caf::behavior child(caf::event_based_actor* self) {
  // The default handler prints every error.
  self->set_exception_handler(
      [](std::exception_ptr&) -> caf::error { return caf::sec::runtime_error; });
  self->send(self, true);
  return {[](bool) { throw std::runtime_error("boom"); }};
}

struct state {
  std::int64_t left = 0;
  caf::actor told;
};

/// Starts when it is sent whom to tell at the end.
caf::behavior supervisor(caf::stateful_actor<state>* self, std::int64_t restarts) {
  self->set_down_handler([=](caf::down_msg&) {
    if (--self->state.left < 0) {
      self->send(self->state.told, true);
    } else {
      self->spawn<caf::monitored>(child);
    }
  });
  return {[=](const caf::actor& told) {
    self->state = {restarts, told};
    self->spawn<caf::monitored>(child);
  }};
}

double restart_all(caf::actor_system& system, std::int64_t size) {
  caf::scoped_actor self(system);
  const caf::actor parent = system.spawn(supervisor, size);
  const auto start = bench::clock::now();
  self->send(parent, caf::actor(self));
  bench::wait_until_told(self);
  return bench::nanoseconds_since(start) / static_cast<double>(size);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  const double each =
      bench::best_of_workers([&](caf::actor_system& system) { return restart_all(system, size); });
  bench::report("restart_all", size, each, "ns");
}
