// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <weir/detail/core/frame.hpp>

namespace weir::detail {

struct hosted_loop;

/// A possible next step: a ready strand, or (null) the oldest message of a loop's inbox.
struct ready_item {
  strand* which = nullptr;
  hosted_loop* on = nullptr;
  std::int64_t since = 0;  // the step at which it became ready
  std::uint16_t& rank() const noexcept;
};

/// The possible next steps of all loops of a simulation, in order of arrival; any of them can be
/// taken. Kept in blocks, so taking one of n costs O(n / block_size + block_size) at worst and O(1)
/// at the front.
class ready_list {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  /// The item that has been ready longest. REQUIRES: not empty.
  const ready_item& front() const noexcept { return blocks_.front().items[blocks_.front().first]; }
  void push(const ready_item& item);

  /// The last item pushed is the strand that just ran and was preempted. Production would continue
  /// with it, so it is the first option of the next choice; after that it is the last in line.
  void last_goes_first() noexcept { goes_first_ = size_ - 1; }
  /// Options are the items in order of arrival, except that the preempted strand comes first.
  std::size_t index_of(std::size_t option) const noexcept {
    if (goes_first_ == unknown || option > goes_first_) return option;
    return option == 0 ? goes_first_ : option - 1;
  }
  std::size_t option_of(std::size_t index) const noexcept {
    if (goes_first_ == unknown || index > goes_first_) return index;
    return index == goes_first_ ? 0 : index + 1;
  }

  /// Takes the item at `index`, in order of arrival.
  ready_item take(std::size_t index) noexcept;
  /// The index of the highest rank; of the first item among equals. REQUIRES: not empty.
  std::size_t best() noexcept;
  void set_rank(std::size_t index, std::uint16_t rank) noexcept;
  /// The loop is gone: removes its items.
  void remove_all_of(const hosted_loop& on);

 private:
  static constexpr std::size_t block_size = 256;
  static constexpr std::size_t unknown = ~std::size_t{0};
  struct block {
    std::size_t size() const noexcept { return items.size() - first; }
    std::vector<ready_item> items;
    std::size_t first = 0;       // items before it were taken
    std::size_t best = unknown;  // relative to `first`
  };
  /// The block that contains `index`, which is changed to the position within it.
  block& find(std::size_t& index) noexcept;
  static std::size_t best_of(block& b) noexcept;

  std::deque<block> blocks_;
  std::size_t size_ = 0;
  std::size_t goes_first_ = unknown;
};

}  // namespace weir::detail
