// SPDX-License-Identifier: MIT
// Random numbers that depend on the seed only, not on the standard library.
#pragma once

#include <chrono>
#include <cstdint>

#include <weir/duration.hpp>

namespace fuzz {

using namespace std::chrono_literals;

class dice {
 public:
  // The factor is not the step of `number`, so that neighbours have nothing in common.
  explicit dice(std::uint64_t seed) noexcept : state_((seed + 1) * 0xd1342543de82ef95U) {}

  std::uint64_t number() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// 0 to end - 1.
  int below(int end) noexcept {
    return static_cast<int>(number() % static_cast<std::uint64_t>(end));
  }
  int between(int first, int last) noexcept { return first + below(last - first + 1); }
  bool percent(int chance) noexcept { return below(100) < chance; }

 private:
  std::uint64_t state_;
};

}  // namespace fuzz
