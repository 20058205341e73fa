// SPDX-License-Identifier: MIT
#pragma once

#include <bitset>
#include <cstdint>
#include <unordered_map>

namespace weir::detail {

/// A set of numbers of runs. Neighbours share a word of memory, so a million runs in a row take 200
/// KB; a run without neighbours takes 100 bytes.
class run_set {
 public:
  void add(std::uint64_t number) { blocks_[number / block_runs].set(number % block_runs); }
  bool contains(std::uint64_t number) const noexcept {
    const auto found = blocks_.find(number / block_runs);
    return found != blocks_.end() && found->second.test(number % block_runs);
  }

 private:
  static constexpr std::size_t block_runs = 256;
  std::unordered_map<std::uint64_t, std::bitset<block_runs>> blocks_;
};

}  // namespace weir::detail
