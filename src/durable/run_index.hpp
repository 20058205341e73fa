// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace weir::detail {

class durable_run;

/// Runs by their ids: a hash table of pointers, with linear probing. It keeps neither hashes nor
/// nodes, so that a run costs at most 22 bytes in it.
class run_index {
 public:
  /// Null: there is none.
  durable_run* find(std::string_view id) const noexcept;
  /// Does nothing if there is one with its id.
  void add(durable_run& run);
  /// Does nothing if there is none.
  void remove(std::string_view id) noexcept;
  void reserve(std::size_t runs);
  void clear() noexcept;

 private:
  /// Where a run with this id is, or would be. REQUIRES: there is a free slot.
  std::size_t slot_of(std::string_view id) const noexcept;
  std::size_t home_of(std::string_view id) const noexcept;
  void resize(std::size_t slots);

  std::vector<durable_run*> slots_;  // none, or a power of two; at most three quarters are used
  std::size_t size_ = 0;
};

}  // namespace weir::detail
