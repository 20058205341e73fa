// SPDX-License-Identifier: MIT
// In which order a random program runs.
#pragma once

#include <cstdint>

#include <weir/sim.hpp>

#include "stress/dice.hpp"

namespace fuzz {

enum class order : std::uint8_t { fifo, random, pct };

inline order any_order(dice& d) {
  if (d.percent(30)) return order::fifo;
  return d.percent(70) ? order::random : order::pct;
}

inline const char* name_of(order o) {
  static constexpr const char* names[] = {"fifo", "random", "pct(3)"};
  return names[static_cast<int>(o)];
}

inline weir::sim::strategy strategy_of(order o) {
  switch (o) {
    case order::fifo:
      return weir::sim::fifo;
    case order::random:
      return weir::sim::random;
    default:
      return weir::sim::pct(3);
  }
}

}  // namespace fuzz
