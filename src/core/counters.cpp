// SPDX-License-Identifier: MIT
#include "core/counters.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "core/door.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t kinds = 14;
constexpr std::size_t cells = 1024;  // a power of two, well above pairs_max

/// Both ends of a text and its length. They determine a text of up to 16 bytes, so most comparisons
/// are of three numbers.
struct outline {
  std::uint64_t head;
  std::uint64_t tail;
  std::size_t size;
  friend bool operator==(const outline&, const outline&) = default;
};

/// Trivial, so that constructing a table does not touch the keys.
struct pair_key {
  outline object_outline;
  outline what_outline;
  const char* object;
  const char* what;
};

struct cell {
  std::atomic<const pair_key*> key{nullptr};  // set once, never removed
  counter value;
};

constexpr std::size_t tables_wanted = 128;  // exceeded only if all tables are in use
constexpr std::size_t text_bytes = std::size_t{32} * 1024;

struct table {
  table() noexcept {}  // keys and texts stay uninitialized

  std::array<cell, cells> all;
  counter uncounted;
  std::array<counter, kinds> cancels;
  // Only the writing thread uses these.
  std::size_t keys_used = 0;
  std::size_t text_used = 0;
  std::array<pair_key, counters::pairs_max> keys;
  std::array<char, text_bytes> texts;
};

std::uint64_t load(const char* from, std::size_t bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

outline outline_of(std::string_view text) noexcept {
  const char* at = text.data();
  const std::size_t n = text.size();
  if (n >= 8) return {load(at, 8), load(at + n - 8, 8), n};
  if (n >= 4) return {load(at, 4), load(at + n - 4, 4), n};
  if (n == 0) return {0, 0, 0};
  return {load(at, 1) | load(at + n / 2, 1) << 8, load(at + n - 1, 1), n};
}

std::uint64_t hash_of(const outline& object, const outline& what) noexcept {
  std::uint64_t h = (object.head ^ object.tail * 31 ^ object.size) * 0x9e3779b97f4a7c15U;
  h ^= (what.head ^ what.tail * 29 ^ what.size) * 0xbf58476d1ce4e5b9U;
  return h >> 32 ^ h >> 20;
}

/// A key to look up, with its outlines and hash.
struct wanted {
  wanted(std::string_view o, std::string_view w) noexcept
      : object(o.substr(0, counters::object_max)),
        what(w),
        object_outline(outline_of(object)),
        what_outline(outline_of(what)),
        first(hash_of(object_outline, what_outline) % cells) {}
  static bool same_middle(const char* kept, std::string_view text) noexcept {
    return text.size() <= 16 || std::memcmp(kept, text.data(), text.size()) == 0;
  }
  bool is(const pair_key& key) const noexcept {
    if (!(key.object_outline == object_outline && key.what_outline == what_outline)) return false;
    return same_middle(key.object, object) && same_middle(key.what, what);
  }
  std::string_view object;
  std::string_view what;
  outline object_outline;
  outline what_outline;
  std::size_t first;  // the cell where probing starts
};

class all_tables {
 public:
  static all_tables& instance() {
    static all_tables* const made = new all_tables;  // never destroyed: threads may outlive main
    return *made;
  }
  /// The emptiest idle table. If that is more than half full, a new one (up to `tables_wanted`), so
  /// that the keys of earlier threads do not take the next thread's room.
  table* lease() {
    const std::lock_guard lock(mutex_);
    const auto emptier = [](const table* x, const table* y) { return x->keys_used < y->keys_used; };
    const auto best = std::min_element(idle_.begin(), idle_.end(), emptier);
    const bool roomy = best != idle_.end() && (*best)->keys_used <= counters::pairs_max / 2;
    if (roomy || (best != idle_.end() && tables_.size() >= tables_wanted)) {
      table* again = *best;
      idle_.erase(best);
      return again;
    }
    std::unique_ptr<table> made(new table);
    idle_.reserve(tables_.size() + 1);  // so that giving it back cannot fail
    tables_.push_back(std::move(made));
    return tables_.back().get();
  }
  void give_back(table* t) noexcept {
    const std::lock_guard lock(mutex_);
    idle_.push_back(t);
  }
  template <class F>
  std::uint64_t sum(F&& part) {
    const std::lock_guard lock(mutex_);
    std::uint64_t total = 0;
    for (const auto& t : tables_) total += static_cast<std::uint64_t>(part(*t));
    return total;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<table>> tables_;
  std::vector<table*> idle_;
};

constinit thread_local table* own_counts = nullptr;

/// Returns the thread's table when the thread ends.
struct lease {
  lease() : taken(all_tables::instance().lease()) { own_counts = taken; }
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;
  ~lease() {
    own_counts = nullptr;
    all_tables::instance().give_back(taken);
  }
  table* taken;
};

[[gnu::noinline]] table* lease_table() noexcept {
  try {
    static thread_local lease mine;
    return own_counts;
  } catch (...) {
    return nullptr;
  }
}

/// The table of this thread; null if memory is exhausted or the thread is almost over.
inline table* own_table() noexcept {
  table* const own = own_counts;
  return own != nullptr ? own : lease_table();
}

const char* keep(table& t, std::string_view text) noexcept {
  char* at = t.texts.data() + t.text_used;
  text.copy(at, text.size());
  t.text_used += text.size();
  return at;
}

counter& add_pair(table& t, cell& free, const wanted& w) noexcept {
  const bool fits = t.keys_used < counters::pairs_max &&
                    w.object.size() + w.what.size() <= text_bytes - t.text_used;
  if (!fits) return t.uncounted;
  pair_key& key = t.keys[t.keys_used++];
  key = {w.object_outline, w.what_outline, keep(t, w.object), keep(t, w.what)};
  free.key.store(&key, std::memory_order_release);
  return free.value;
}

}  // namespace

void counters::prepare() noexcept { (void)own_table(); }

void counters::count(std::string_view object, std::string_view what) noexcept {
  table* t = own_table();
  if (t == nullptr) return;
  const wanted w(object, what);
  for (std::size_t i = w.first;; i = (i + 1) % cells) {
    cell& c = t->all[i];
    const pair_key* key = c.key.load(std::memory_order_relaxed);
    if (key == nullptr) return add_pair(*t, c, w).add(1);
    if (w.is(*key)) return c.value.add(1);
  }
}

void counters::count_cancel(cancel_kind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  if (table* t = own_table(); t != nullptr && index < kinds) t->cancels[index].add(1);
}

std::uint64_t counters::read(std::string_view object, std::string_view what) {
  const wanted w(object, what);
  return all_tables::instance().sum([&](const table& t) -> std::int64_t {
    for (std::size_t i = w.first;; i = (i + 1) % cells) {
      const pair_key* key = t.all[i].key.load(std::memory_order_acquire);
      if (key == nullptr) return 0;
      if (w.is(*key)) return t.all[i].value.get();
    }
  });
}

std::uint64_t counters::read_cancels(cancel_kind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  if (index >= kinds) return 0;
  return all_tables::instance().sum([&](const table& t) { return t.cancels[index].get(); });
}

std::uint64_t counters::read_uncounted() {
  return all_tables::instance().sum([](const table& t) { return t.uncounted.get(); });
}

}  // namespace weir::detail
