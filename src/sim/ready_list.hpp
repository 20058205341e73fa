// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <weir/detail/frame.hpp>

namespace weir::detail {

struct hosted_loop;

/// Something that could happen next: a strand that is ready, or (null) the oldest message of a
/// loop's inbox.
struct ready_item {
  strand* which = nullptr;
  hosted_loop* on = nullptr;
  std::int64_t since = 0;  // the step in which it became ready
  std::uint16_t& rank() const noexcept;
};

/// What could happen next, in all loops of a simulation: in order of arrival, any of it can be
/// taken. Kept in blocks, so that taking one of n costs O(n / block_size + block_size) at worst and
/// O(1) at the front.
class ready_list {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  /// What has been ready longest. REQUIRES: not empty.
  const ready_item& front() const noexcept { return blocks_.front().items[blocks_.front().first]; }
  void push(const ready_item& item);

  /// What was pushed last is the strand that just ran and could have gone on: production would go
  /// on with it, so it is the first option of the next choice. After that it is the last in line.
  void last_goes_first() noexcept { goes_first_ = size_ - 1; }
  /// Options are the items in order of arrival, except for the one that goes first.
  std::size_t index_of(std::size_t option) const noexcept {
    if (goes_first_ == unknown || option > goes_first_) return option;
    return option == 0 ? goes_first_ : option - 1;
  }
  std::size_t option_of(std::size_t index) const noexcept {
    if (goes_first_ == unknown || index > goes_first_) return index;
    return index == goes_first_ ? 0 : index + 1;
  }

  /// Takes the index-th in order of arrival.
  ready_item take(std::size_t index) noexcept;
  /// The index of the highest rank, the first of equals. REQUIRES: not empty.
  std::size_t best() noexcept;
  /// Gives the index-th another rank.
  void set_rank(std::size_t index, std::uint16_t rank) noexcept;
  /// A loop is gone: so is what could have happened there.
  void remove_all_of(const hosted_loop& on);

 private:
  static constexpr std::size_t block_size = 256;
  static constexpr std::size_t unknown = ~std::size_t{0};
  struct block {
    std::size_t size() const noexcept { return items.size() - first; }
    std::vector<ready_item> items;
    std::size_t first = 0;       // those before it were taken
    std::size_t best = unknown;  // counted from `first`
  };
  /// The block of the index-th, whose place in it is left in `index`.
  block& find(std::size_t& index) noexcept;
  static std::size_t best_of(block& b) noexcept;

  std::deque<block> blocks_;
  std::size_t size_ = 0;
  std::size_t goes_first_ = unknown;
};

}  // namespace weir::detail
