// SPDX-License-Identifier: MIT
#include "sim/ready_list.hpp"

#include <algorithm>

#include "sim/simulation.hpp"

namespace weir::detail {

std::uint16_t& ready_item::kept_rank() const noexcept {
  return which != nullptr ? which->rank : on->rank;
}

void ready_list::push(const ready_item& item) {
  if (blocks_.empty() || blocks_.back().items.size() >= block_size) {
    blocks_.emplace_back();
    if (blocks_.size() > 1) blocks_.back().items.reserve(block_size);
  }
  block& last = blocks_.back();
  last.items.push_back(item);
  last.items.back().rank = item.kept_rank();
  last.best = unknown;
  ++size_;
}

ready_list::block& ready_list::find(std::size_t& index) noexcept {
  auto at = blocks_.begin();
  while (index >= at->size()) {
    index -= at->size();
    ++at;
  }
  return *at;
}

ready_item ready_list::take(std::size_t index) noexcept {
  goes_first_ = unknown;
  block& b = find(index);
  const ready_item taken = b.items[b.first + index];
  if (index == 0) {
    ++b.first;
  } else {
    b.items.erase(b.items.begin() + static_cast<std::ptrdiff_t>(b.first + index));
  }
  b.best = unknown;
  --size_;
  if (b.size() == 0) {
    if (blocks_.size() == 1) {
      b.items.clear();
      b.first = 0;
    } else {
      blocks_.erase(std::find_if(blocks_.begin(), blocks_.end(),
                                 [&](const block& other) { return &other == &b; }));
    }
  }
  return taken;
}

std::size_t ready_list::best_of(block& b) noexcept {
  if (b.best != unknown) return b.best;
  b.best = 0;
  for (std::size_t i = 1; i < b.size(); ++i)
    if (b.items[b.first + i].rank > b.items[b.first + b.best].rank) b.best = i;
  return b.best;
}

std::size_t ready_list::best() noexcept {
  std::size_t found = 0;
  std::size_t before = 0;
  std::uint16_t highest = 0;
  for (block& b : blocks_) {
    const std::size_t candidate = best_of(b);
    const std::uint16_t rank = b.items[b.first + candidate].rank;
    if (rank > highest) {
      highest = rank;
      found = before + candidate;
    }
    before += b.size();
  }
  return found;
}

void ready_list::set_rank(std::size_t index, std::uint16_t rank) noexcept {
  block& b = find(index);
  ready_item& changed = b.items[b.first + index];
  changed.kept_rank() = rank;
  changed.rank = rank;
  b.best = unknown;
}

std::vector<ready_item> ready_list::take_all_of(const hosted_loop& on) {
  std::vector<ready_item> taken;
  std::deque<block> old = std::move(blocks_);
  blocks_.clear();
  size_ = 0;
  goes_first_ = unknown;
  for (const block& b : old)
    for (std::size_t i = b.first; i < b.items.size(); ++i) {
      const ready_item& item = b.items[i];
      if (item.on == &on) {
        taken.push_back(item);
      } else {
        push(item);
      }
    }
  return taken;
}

}  // namespace weir::detail
