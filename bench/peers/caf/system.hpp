// SPDX-License-Identifier: MIT
//
// CAF at its best: everything is measured with one worker thread and with one for each core, and
// the cheaper of the two is reported.
#pragma once

#include <caf/all.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace bench {

class config : public caf::actor_system_config {
 public:
  explicit config(std::size_t workers) { set("scheduler.max-threads", workers); }
};

/// `work` gets an actor system and returns a cost.
template <class Work>
double best_of_workers(Work work) {
  const auto with = [&](std::size_t workers) {
    config settings(workers);
    caf::actor_system system(settings);
    return work(system);
  };
  const std::size_t cores = std::thread::hardware_concurrency();
  const double one = with(1);
  return cores > 1 ? std::min(one, with(cores)) : one;
}

/// Blocks until somebody sends `true` to `self`.
inline void wait_until_told(caf::scoped_actor& self) {
  self->receive([](bool) {});
}

}  // namespace bench
