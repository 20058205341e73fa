// SPDX-License-Identifier: MIT
//
// Coroutines asleep on a timer, with the cheapest way Asio has to stop them all: their timers are
// cancelled directly and the error is returned in a tuple, so that nothing is thrown.
#pragma once

#include <cstdint>
#include <vector>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace bench {

class sleepers {
 public:
  sleepers(executor where, std::int64_t size)
      : where_(where), all_(where, size), timers_(static_cast<std::size_t>(size)) {}

  /// co_spawn starts a coroutine inline, so all are asleep when this returns.
  void spawn() {
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      asio::co_spawn(where_, sleep(i), [this](std::exception_ptr) { all_.arrive(); });
    }
  }

  awaitable<> cancel_and_join() {
    for (timer* const each : timers_) each->cancel();
    co_await all_.wait();
  }

 private:
  awaitable<> sleep(std::size_t index) {
    timer asleep(where_, far_away(static_cast<std::int64_t>(index)));
    timers_[index] = &asleep;
    co_await asleep.async_wait(asio::as_tuple(use_awaitable));
  }

  executor where_;
  countdown all_;
  std::vector<timer*> timers_;
};

}  // namespace bench
