// SPDX-License-Identifier: MIT
//
// Two agents that cast a number to each other. A round trip is two messages, each of which is made,
// queued, handled by an agent that was idle, and freed.
#pragma once

#include <weir/weir.hpp>

#include <optional>

#include "support/measure.hpp"

namespace bench {

class ping;

class pong {
 public:
  void meet(weir::agent_ref<ping> first) { first_ = std::move(first); }
  void hit(std::int64_t value);

 private:
  std::optional<weir::agent_ref<ping>> first_;
};

class ping {
 public:
  ping(weir::agent_ref<pong> other, weir::event* over) : other_(std::move(other)), over_(over) {}
  void start(std::int64_t round_trips) {
    left_ = round_trips;
    other_.cast(&pong::hit, 0);
  }
  void hit(std::int64_t value) {
    if (--left_ > 0) {
      other_.cast(&pong::hit, value);
    } else {
      over_->set();
    }
  }

 private:
  weir::agent_ref<pong> other_;
  weir::event* over_;
  std::int64_t left_ = 0;
};

inline void pong::hit(std::int64_t value) { first_->cast(&ping::hit, value + 1); }

/// The second player lives where `there` says. Reports the median over some rounds as `row`.
inline weir::task<> play(const char* row, weir::agent_options there, std::int64_t size) {
  constexpr int rounds = 5;
  weir::event over;
  samples each;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto second = weir::spawn_agent<pong>(s, there);
    auto first = weir::spawn_agent<ping>(s, {.name = "ping"}, second, &over);
    co_await second.call(&pong::meet, first);
    for (int round = 0; round <= rounds; ++round) {
      over.reset();
      const auto start = clock::now();
      first.cast(&ping::start, size);
      co_await over.wait();
      const double cost = nanoseconds_since(start) / static_cast<double>(size);
      if (round > 0) each.add(cost);
    }
  });
  report(row, size, each.median(), "ns");
}

}  // namespace bench
