// SPDX-License-Identifier: MIT
#include "durable/run_index.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "durable/run.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t slots_min = 16;

}  // namespace

std::size_t run_index::home_of(std::string_view id) const noexcept {
  return std::hash<std::string_view>()(id) & (slots_.size() - 1);
}

std::size_t run_index::slot_of(std::string_view id) const noexcept {
  std::size_t at = home_of(id);
  while (slots_[at] != nullptr && slots_[at]->id.view() != id) at = (at + 1) & (slots_.size() - 1);
  return at;
}

durable_run* run_index::find(std::string_view id) const noexcept {
  return slots_.empty() ? nullptr : slots_[slot_of(id)];
}

void run_index::add(durable_run& run) {
  reserve(size_ + 1);
  durable_run*& slot = slots_[slot_of(run.id)];
  if (slot != nullptr) return;
  slot = &run;
  ++size_;
}

// The runs behind a freed slot move up, so that each can be reached from its home without a gap.
void run_index::remove(std::string_view id) noexcept {
  if (slots_.empty()) return;
  std::size_t gap = slot_of(id);
  if (slots_[gap] == nullptr) return;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = (gap + 1) & mask; slots_[at] != nullptr; at = (at + 1) & mask) {
    const std::size_t from_home = (at - home_of(slots_[at]->id)) & mask;
    if (from_home < ((at - gap) & mask)) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap] = nullptr;
  --size_;
}

void run_index::reserve(std::size_t runs) {
  if (runs * 4 <= slots_.size() * 3) return;
  resize(std::max(slots_min, std::bit_ceil(runs * 4 / 3 + 1)));
}

void run_index::resize(std::size_t slots) {
  std::vector<durable_run*> old(slots);
  slots_.swap(old);
  for (durable_run* run : old)
    if (run != nullptr) slots_[slot_of(run->id)] = run;
}

void run_index::clear() noexcept {
  slots_ = {};
  size_ = 0;
}

}  // namespace weir::detail
