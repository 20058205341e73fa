// SPDX-License-Identifier: MIT
#include <weir/detail/core/timer.hpp>

#include <algorithm>
#include <bit>

#include "core/environment.hpp"

namespace weir::detail {

namespace {

constexpr unsigned bits = 6;
constexpr std::size_t scan_limit = 16;

unsigned shift_of(std::size_t level) noexcept { return static_cast<unsigned>(level) * bits; }

}  // namespace

timer_wheel::timer_wheel(bool by_order) noexcept : by_order_(by_order) {
  for (timer_node& head : heads_) head.previous = head.next = &head;
}

bool timer_wheel::first_slot(std::size_t& level, std::size_t& slot) const noexcept {
  for (level = 0; level < levels; ++level) {
    if (occupied_[level] == 0) continue;
    slot = static_cast<std::size_t>(std::countr_zero(occupied_[level]));
    return true;
  }
  return false;
}

std::uint64_t timer_wheel::start_of(std::size_t level, std::size_t slot) const noexcept {
  const unsigned above = shift_of(level) + bits;
  const std::uint64_t high = above >= 64 ? 0 : elapsed_ >> above << above;
  return high | static_cast<std::uint64_t>(slot) << shift_of(level);
}

std::size_t timer_wheel::slot_of(std::uint64_t when) const noexcept {
  const std::uint64_t differs = when ^ elapsed_;
  const std::size_t level =
      differs == 0 ? 0 : static_cast<std::size_t>(63 - std::countl_zero(differs)) / bits;
  return level * slots + (when >> shift_of(level) & (slots - 1));
}

void timer_wheel::place(timer_node& node) noexcept {
  const std::size_t slot = slot_of(node.when);
  occupied_[slot / slots] |= std::uint64_t{1} << (slot % slots);
  timer_node& head = heads_[slot];
  timer_node* before = head.previous;
  if (by_order_ && slot < slots) {
    const std::uint32_t order = static_cast<deadline_node&>(node).order;
    const auto later = [&](timer_node* other) {
      return static_cast<std::int32_t>(static_cast<deadline_node*>(other)->order - order) > 0;
    };
    while (before != &head && later(before)) before = before->previous;
  }
  node.previous = before;
  node.next = before->next;
  node.next->previous = &node;
  before->next = &node;
}

void timer_wheel::unlink(timer_node& node) noexcept {
  timer_node* const before = node.previous;
  before->next = node.next;
  node.next->previous = before;
  // The only node of its slot has the slot's head on both sides.
  if (before == node.next) {
    const std::size_t slot = slot_of(node.when);
    occupied_[slot / slots] &= ~(std::uint64_t{1} << (slot % slots));
  }
  node.next = node.previous = nullptr;
}

void timer_wheel::arm(timer_node& node, std::uint64_t when) noexcept {
  node.when = std::max(when, elapsed_);
  place(node);
  ++size_;
}

void timer_wheel::cancel(timer_node& node) noexcept {
  unlink(node);
  --size_;
}

void timer_wheel::move_down(std::size_t level, std::size_t slot) noexcept {
  timer_node& head = heads_[level * slots + slot];
  timer_node* node = head.next;
  head.previous = head.next = &head;
  occupied_[level] &= ~(std::uint64_t{1} << slot);
  while (node != &head) {
    timer_node* following = node->next;
    place(*node);
    node = following;
  }
}

// Offers only the first few: the order of the strands that they wake is chosen anyway.
timer_node* timer_wheel::choose(timer_node& head, chooser& order) noexcept {
  std::size_t count = 0;
  for (timer_node* node = head.next; node != &head && count < choice_limit; node = node->next)
    ++count;
  timer_node* chosen = head.next;
  if (count > 1)
    for (std::size_t skip = order.choose(count); skip > 0; --skip) chosen = chosen->next;
  return chosen;
}

timer_node* timer_wheel::pop_due(std::uint64_t now, chooser* order) noexcept {
  std::size_t level = 0;
  std::size_t slot = 0;
  while (first_slot(level, slot)) {
    const std::uint64_t start = start_of(level, slot);
    if (start > now) break;
    elapsed_ = std::max(elapsed_, start);
    if (level == 0) {
      timer_node* due = order == nullptr ? heads_[slot].next : choose(heads_[slot], *order);
      cancel(*due);
      return due;
    }
    move_down(level, slot);
  }
  elapsed_ = std::max(elapsed_, now);
  return nullptr;
}

std::uint64_t timer_wheel::next_look() const noexcept {
  std::size_t level = 0;
  std::size_t slot = 0;
  if (!first_slot(level, slot)) return never;
  const std::uint64_t start = start_of(level, slot);
  if (level == 0) return start;
  const timer_node& head = heads_[level * slots + slot];
  std::uint64_t earliest = never;
  std::size_t seen = 0;
  for (const timer_node* node = head.next; node != &head; node = node->next) {
    if (++seen > scan_limit) return start;
    earliest = std::min(earliest, node->when);
  }
  return earliest;
}

}  // namespace weir::detail
