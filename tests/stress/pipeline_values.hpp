// SPDX-License-Identifier: MIT
// The functions that random pipelines apply to the numbers of items, for the program and its model.
#pragma once

#include <vector>

namespace fuzz {

inline constexpr int extra_item = 900'000;  // of start_with; those of catch_with follow it
inline constexpr int recovery_items = 2;

inline std::vector<int> counted(int first, int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(first + i);
  return all;
}
inline int mapped(int v) { return v + 10'000; }
inline bool kept(int v, int k) { return v % 5 != k; }
inline bool early(int v, int k) { return v % 7 != k; }
inline int inner_item(int v) { return v + 500; }
inline bool fails(int v) { return v % 4 == 3; }

}  // namespace fuzz
