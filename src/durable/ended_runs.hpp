// SPDX-License-Identifier: MIT
// What stays in memory of runs that have ended, until their retention is over: an index, without
// texts. Everything else is read from the journal when somebody asks.
//
// Costs: at most 100 bytes for a run, and no allocation per run: entries lie in slabs of constant
// size, tables of their numbers double. A run is found by the hash of its id, of its idempotency
// key, or by its number, in constant time on average.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <weir/durable/engine.hpp>
#include <weir/duration.hpp>

#include "durable/record.hpp"

namespace weir::detail {

/// A run that has ended, as the index knows it.
struct ended_run {
  std::uint64_t number = 0;
  std::uint64_t id_hash = 0;
  std::uint32_t key_hash = 0;  // of handler and idempotency key; 0: it has none
  record_place start = 0;
  record_place end = 0;
  std::uint64_t parent = 0;  // the run that called it, 0: none
  wall_time at{};            // when it ended
  std::uint64_t bytes = 0;   // of its records, about
  durable::run_state state = durable::run_state::completed;
};

std::uint64_t hash_of_id(std::string_view id) noexcept;
/// Never 0.
std::uint32_t hash_of_key(std::string_view handler, std::string_view idempotency) noexcept;

/// Invariants:
/// 1. A slot is in the free list, or in one queue, or belongs to a run that was taken out of its
///    queue. A queue is ordered by the times of the ends; there are several if the wall clock was
///    set back between two ends.
/// 2. The tables hold exactly the slots of runs that were added and not removed. A removed run
/// keeps
///    its slot until its queue gets to it.
/// 3. In a table the entries of a hash lie in one unbroken row from its home on (linear probing).
class ended_runs {
 public:
  void add(const ended_run& run);
  /// REQUIRES: `number` is in the index.
  void remove(std::uint64_t number) noexcept;
  /// Takes the run that `first` gave out of its queue: it stays until it is removed. Does nothing
  /// if it is in none.
  void unqueue(std::uint64_t number) noexcept;
  void clear() noexcept;

  std::size_t size() const noexcept { return size_; }
  bool contains(std::uint64_t number) const noexcept;
  std::optional<ended_run> find(std::uint64_t number) const noexcept;
  /// The numbers of the runs whose id, or idempotency key, has this hash: usually one or none.
  void with_id(std::uint64_t hash, std::vector<std::uint64_t>& into) const;
  void with_key(std::uint32_t hash, std::vector<std::uint64_t>& into) const;
  /// Of the runs in queues the one that ended first.
  std::optional<ended_run> first() noexcept;
  /// All numbers, in order.
  std::vector<std::uint64_t> numbers() const;
  template <class F>
  void for_each(F&& f) const {
    for (std::uint32_t s = 0; s < used_; ++s)
      if (at(s).kept()) f(unpacked(at(s)));
  }

  /// Bytes of memory, without what malloc adds: for the test of its costs.
  std::size_t memory() const noexcept;

 private:
  using slot = std::uint32_t;
  static constexpr slot none = ~slot{0};
  static constexpr std::size_t slab_entries = 1024;

  struct entry {
    std::uint64_t number;
    std::uint64_t id_hash;
    record_place start;
    record_place end;
    std::uint64_t parent;
    std::int64_t at;
    std::uint32_t key_hash;
    slot next;           // in its queue, or in the free list
    std::uint32_t size;  // of its records, in units
    std::uint8_t state;  // state_removed: not kept
    bool in_queue;

    bool kept() const noexcept { return state != state_removed; }
  };
  static constexpr std::uint8_t state_removed = 0xff;
  static constexpr std::uint64_t size_unit = 16;

  /// An open hash table of slots; `Hash` gives the hash of an entry.
  class table {
   public:
    explicit table(std::uint64_t (*hash)(const entry&)) noexcept : hash_(hash) {}
    void insert(const ended_runs& of, slot s);
    void erase(const ended_runs& of, slot s) noexcept;
    /// Calls f with the slots that may have this hash.
    template <class F>
    void visit(std::uint64_t hash, F&& f) const {
      if (slots_.empty()) return;
      for (std::size_t i = home(hash); slots_[i] != none; i = (i + 1) & (slots_.size() - 1))
        f(slots_[i]);
    }
    void clear() noexcept {
      slots_ = {};
      filled_ = 0;
    }
    std::size_t memory() const noexcept { return slots_.capacity() * sizeof(slot); }

   private:
    std::size_t home(std::uint64_t hash) const noexcept;
    void place(const ended_runs& of, slot s) noexcept;
    void grow(const ended_runs& of);

    std::uint64_t (*hash_)(const entry&);
    std::vector<slot> slots_;
    std::size_t filled_ = 0;
  };
  struct queue {
    slot first = none;
    slot last = none;
  };

  entry& at(slot s) noexcept { return slabs_[s / slab_entries][s % slab_entries]; }
  const entry& at(slot s) const noexcept { return slabs_[s / slab_entries][s % slab_entries]; }
  static ended_run unpacked(const entry& e) noexcept;
  slot slot_of(std::uint64_t number) const noexcept;
  slot new_slot();
  void enqueue(slot s);
  /// Frees the removed entries at the head of a queue.
  void tidy(queue& q) noexcept;
  void take_head(queue& q) noexcept;
  void free_slot(slot s) noexcept;

  std::vector<std::unique_ptr<entry[]>> slabs_;
  slot used_ = 0;  // slots that were ever used
  slot free_ = none;
  std::size_t size_ = 0;
  std::vector<queue> queues_;
  table by_number_{[](const entry& e) { return e.number; }};
  table by_id_{[](const entry& e) { return e.id_hash; }};
  table by_key_{[](const entry& e) { return std::uint64_t{e.key_hash}; }};
};

}  // namespace weir::detail
