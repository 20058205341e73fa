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
  ready_item(strand* s, hosted_loop& l, std::int64_t step) noexcept
      : which(s), on(&l), since(step & step_mask) {}

  static constexpr std::int64_t step_mask = (std::int64_t{1} << 47) - 1;
  strand* which;
  hosted_loop* on;
  std::int64_t since : 48;  // the step at which it became ready
  // A copy of `kept_rank` while it is in the list, so that the search for the highest one looks at
  // no strand.
  std::uint64_t rank : 16 = 0;
  std::uint16_t& kept_rank() const noexcept;
};
static_assert(sizeof(ready_item) == 3 * sizeof(void*), "many are looked at in each step");

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
  /// The loop is gone or paused: takes its items, in order.
  std::vector<ready_item> take_all_of(const hosted_loop& on);

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
