// SPDX-License-Identifier: MIT
// Two payment providers, simulated, and how the shop protects itself from them: at most so many
// calls at once, a time limit, a circuit breaker for each, a second one asked when the first is
// slow, and a budget for everything that is asked twice.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>

#include <weir/weir.hpp>

#include "order.hpp"

namespace shop {

using namespace std::chrono_literals;

class provider {
 public:
  /// `outage_at`: about which of its calls on it is broken for a while; 0: never.
  provider(weir::name name, int hurry, int outage_at)
      : name_(name.view()),
        hurry_(hurry),
        outage_at_(outage_at),
        governor_(4, {.name = name}),
        breaker_({.name = name,
                  .minimum_calls = 6,
                  .window = 2000ms / hurry,
                  .open_for = 1000ms / hurry}) {}

  /// Policies are read from the inside out: a call holds one of four permits, has 400 ms for
  /// everything, and is not even tried while the breaker is open.
  weir::task<authorization> authorize(const order& o) {
    auto call = [&] { return answer(o); };
    auto guarded = weir::op(call) | weir::bulkhead(governor_) | weir::timeout(400ms / hurry_) |
                   weir::breaker(breaker_);
    co_return co_await guarded();
  }

 private:
  /// Most answers come soon, one in eight is slow, one in twenty is an error.
  weir::task<authorization> answer(const order& o) {
    ++calls_;
    const auto chance = weir::random();
    const auto usual = milliseconds(20 + static_cast<int>(chance % 60));
    co_await weir::sleep((chance % 8 == 0 ? 300ms : usual) / hurry_);
    const bool outage = outage_at_ > 0 && calls_ >= outage_at_ && calls_ < outage_at_ + 15;
    if (outage || weir::random() % 20 == 0) throw std::runtime_error(name_ + " does not answer");
    authorization a;
    a.provider = name_;
    a.accepted = o.card != "expired";
    co_return a;
  }

  std::string name_;
  int hurry_;
  int outage_at_;
  int calls_ = 0;
  weir::counting_governor governor_;
  weir::circuit_breaker breaker_;
};

class payments {
 public:
  explicit payments(int hurry)
      : providers_{provider("north", hurry, 12), provider("south", hurry, 0)}, hurry_(hurry) {}

  /// Each attempt asks the other provider. The second one is asked when the first one is slow, or
  /// at once if it fails; the first answer wins, and the loser is cancelled and joined. Both hedges
  /// and retries are paid from one budget, so that a broken provider is not flooded.
  weir::task<authorization> authorize(const order& o) {
    std::size_t asked = 0;
    auto ask = [&] { return providers_[asked++ % 2].authorize(o); };
    auto hedged = weir::op(ask) | weir::hedge({.after = 120ms / hurry_, .budget = &budget_}) |
                  weir::retry({.attempts = 3, .base = 50ms / hurry_, .budget = &budget_});
    co_return co_await hedged();
  }

 private:
  std::array<provider, 2> providers_;
  int hurry_;
  weir::retry_budget budget_{{.ratio = 0.5, .min_per_second = 5}};
};

}  // namespace shop
