// SPDX-License-Identifier: MIT
#include "durable/ended_runs.hpp"

#include <algorithm>

#include "durable/run_record.hpp"

namespace weir::detail {

std::uint64_t hash_of_id(std::string_view id) noexcept { return digest_of(id); }

std::uint32_t hash_of_key(std::string_view handler, std::string_view idempotency) noexcept {
  const std::uint64_t both = digest_of(handler) * 31 + digest_of(idempotency);
  const auto folded = static_cast<std::uint32_t>(both ^ both >> 32);
  return folded == 0 ? 1 : folded;
}

// ------------------------------------------------------------------ tables

// The numbers of runs are consecutive, so their bits are mixed.
std::size_t ended_runs::table::home(std::uint64_t hash) const noexcept {
  const std::uint64_t mixed = (hash ^ hash >> 32) * 0x9e37'79b9'7f4a'7c15U;
  return static_cast<std::size_t>(mixed >> 20) & (slots_.size() - 1);
}

void ended_runs::table::place(const ended_runs& of, slot s) noexcept {
  std::size_t i = home(hash_(of.at(s)));
  while (slots_[i] != none) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = s;
}

void ended_runs::table::grow(const ended_runs& of) {
  constexpr std::size_t at_first = 64;
  std::vector<slot> old(std::max(at_first, 2 * slots_.size()), none);
  std::swap(old, slots_);
  for (const slot s : old)
    if (s != none) place(of, s);
}

void ended_runs::table::insert(const ended_runs& of, slot s) {
  if (4 * (filled_ + 1) > 3 * slots_.size()) grow(of);
  place(of, s);
  ++filled_;
}

// Closes the gap: moves back every later entry of the row that may stand there.
void ended_runs::table::erase(const ended_runs& of, slot s) noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t gap = home(hash_(of.at(s)));
  while (slots_[gap] != s) gap = (gap + 1) & mask;
  for (std::size_t i = (gap + 1) & mask; slots_[i] != none; i = (i + 1) & mask) {
    const std::size_t wants = home(hash_(of.at(slots_[i])));
    if (((i - wants) & mask) < ((i - gap) & mask)) continue;
    slots_[gap] = slots_[i];
    gap = i;
  }
  slots_[gap] = none;
  --filled_;
}

// ------------------------------------------------------------------ entries

ended_run ended_runs::unpacked(const entry& e) noexcept {
  return {.number = e.number,
          .id_hash = e.id_hash,
          .key_hash = e.key_hash,
          .start = e.start,
          .end = e.end,
          .parent = e.parent,
          .at = wall_time(wall_time::duration(e.at)),
          .bytes = std::uint64_t{e.size} * size_unit,
          .state = static_cast<durable::run_state>(e.state)};
}

ended_runs::slot ended_runs::new_slot() {
  if (free_ != none) {
    const slot s = free_;
    free_ = at(s).next;
    return s;
  }
  if (used_ % slab_entries == 0 && used_ / slab_entries == slabs_.size())
    slabs_.push_back(std::make_unique<entry[]>(slab_entries));
  return used_++;
}

void ended_runs::add(const ended_run& run) {
  const slot s = new_slot();
  const std::uint64_t units = std::min<std::uint64_t>(run.bytes / size_unit, UINT32_MAX);
  at(s) = {.number = run.number,
           .id_hash = run.id_hash,
           .start = run.start,
           .end = run.end,
           .parent = run.parent,
           .at = run.at.time_since_epoch().count(),
           .key_hash = run.key_hash,
           .next = none,
           .size = static_cast<std::uint32_t>(units),
           .state = static_cast<std::uint8_t>(run.state),
           .in_queue = true};
  by_number_.insert(*this, s);
  by_id_.insert(*this, s);
  if (run.key_hash != 0) by_key_.insert(*this, s);
  enqueue(s);
  ++size_;
}

void ended_runs::enqueue(slot s) {
  const auto fits = std::find_if(queues_.begin(), queues_.end(), [&](const queue& q) {
    return q.last == none || at(q.last).at <= at(s).at;
  });
  if (fits == queues_.end()) {
    queues_.push_back({s, s});
    return;
  }
  if (fits->last == none) {
    *fits = {s, s};
  } else {
    at(fits->last).next = s;
    fits->last = s;
  }
}

void ended_runs::tidy(queue& q) noexcept {
  while (q.first != none && !at(q.first).kept()) {
    const slot gone = q.first;
    take_head(q);
    free_slot(gone);
  }
}

void ended_runs::take_head(queue& q) noexcept {
  at(q.first).in_queue = false;
  q.first = at(q.first).next;
  if (q.first == none) q.last = none;
}

void ended_runs::free_slot(slot s) noexcept {
  at(s).next = free_;
  free_ = s;
}

void ended_runs::unqueue(std::uint64_t number) noexcept {
  const slot s = slot_of(number);
  for (queue& q : queues_)
    if (q.first == s) return take_head(q);
}

void ended_runs::remove(std::uint64_t number) noexcept {
  const slot s = slot_of(number);
  by_number_.erase(*this, s);
  by_id_.erase(*this, s);
  if (at(s).key_hash != 0) by_key_.erase(*this, s);
  at(s).state = state_removed;
  --size_;
  if (!at(s).in_queue) return free_slot(s);
  for (queue& q : queues_)
    if (q.first == s) return tidy(q);
}

void ended_runs::clear() noexcept {
  slabs_.clear();
  used_ = 0;
  free_ = none;
  size_ = 0;
  queues_.clear();
  by_number_.clear();
  by_id_.clear();
  by_key_.clear();
}

// ------------------------------------------------------------------ finding

ended_runs::slot ended_runs::slot_of(std::uint64_t number) const noexcept {
  slot found = none;
  by_number_.visit(number, [&](slot s) {
    if (at(s).number == number) found = s;
  });
  return found;
}

bool ended_runs::contains(std::uint64_t number) const noexcept { return slot_of(number) != none; }

std::optional<ended_run> ended_runs::find(std::uint64_t number) const noexcept {
  const slot s = slot_of(number);
  if (s == none) return std::nullopt;
  return unpacked(at(s));
}

void ended_runs::with_id(std::uint64_t hash, std::vector<std::uint64_t>& into) const {
  by_id_.visit(hash, [&](slot s) {
    if (at(s).id_hash == hash) into.push_back(at(s).number);
  });
}

void ended_runs::with_key(std::uint32_t hash, std::vector<std::uint64_t>& into) const {
  by_key_.visit(hash, [&](slot s) {
    if (at(s).key_hash == hash) into.push_back(at(s).number);
  });
}

std::optional<ended_run> ended_runs::first() noexcept {
  slot earliest = none;
  for (queue& q : queues_) {
    tidy(q);
    if (q.first == none) continue;
    if (earliest == none || at(q.first).at < at(earliest).at) earliest = q.first;
  }
  std::erase_if(queues_, [](const queue& q) { return q.first == none; });
  if (earliest == none) return std::nullopt;
  return unpacked(at(earliest));
}

std::vector<std::uint64_t> ended_runs::numbers() const {
  std::vector<std::uint64_t> all;
  all.reserve(size_);
  for_each([&](const ended_run& e) { all.push_back(e.number); });
  std::sort(all.begin(), all.end());
  return all;
}

std::size_t ended_runs::memory() const noexcept {
  return slabs_.size() * (slab_entries * sizeof(entry) + sizeof(void*)) + by_number_.memory() +
         by_id_.memory() + by_key_.memory();
}

}  // namespace weir::detail
