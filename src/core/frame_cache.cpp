// SPDX-License-Identifier: MIT
// Memory for coroutine frames and fiber records.
//
// Each thread keeps free blocks by size (steps of 16 bytes) in two magazines per size. A full
// magazine goes to the process-wide depot, and an empty one is exchanged for a full one from there.
// So a block that is freed on another thread comes back. Reused blocks cost the depot's lock about
// once in `magazine_size` operations, each new one cut from a slab once. Slabs are kept for reuse
// and never returned to the system.
//
// Frames of more than 4 KB (an array as a local variable, a pipeline of many policies) come from
// the heap one by one. A thread keeps up to 1 MB of free ones, by size in steps of a quarter of a
// power of two, and returns the rest. Above 64 KB nothing is kept.
//
// Under a sanitizer each block is a separate allocation, so that a use after the end of a frame is
// detected.
#include <weir/detail/core/frame.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_PLAIN_FRAMES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_PLAIN_FRAMES 1
#endif
#endif

namespace weir::detail {

#ifdef WEIR_PLAIN_FRAMES

void* allocate_frame(std::size_t bytes) { return ::operator new(bytes); }
void deallocate_frame(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, bytes);
}

#else

namespace {

constexpr std::size_t step = 16;
constexpr std::size_t classes = 257;  // up to 4 KB
constexpr std::size_t magazine_size = 128;
constexpr std::size_t slab_bytes = std::size_t{256} * 1024;
constexpr std::size_t large_bytes_max = std::size_t{64} * 1024;
constexpr std::size_t large_classes = 16;  // 5, 6, 7, 8, 10, 12, 14, 16, 20, ..., 64 KB
constexpr std::size_t large_kept_bytes_max = std::size_t{1024} * 1024;

struct block {
  block* next;
  // Of the first block of a magazine in the depot:
  block* next_magazine;
  std::size_t count;
};

struct magazine {
  block* first = nullptr;
  std::size_t count = 0;
};
constexpr magazine unused{nullptr, magazine_size};

/// Magazines that threads have given up, for all threads.
class depot {
 public:
  magazine take(std::size_t size_class) {
    magazine taken;
    const std::lock_guard lock(mutex_);
    taken.first = full_[size_class];
    if (taken.first == nullptr) return taken;
    full_[size_class] = taken.first->next_magazine;
    taken.count = taken.first->count;
    return taken;
  }
  void give(std::size_t size_class, magazine given) noexcept {
    if (given.first == nullptr) return;
    const std::lock_guard lock(mutex_);
    given.first->next_magazine = full_[size_class];
    given.first->count = given.count;
    full_[size_class] = given.first;
  }

 private:
  std::mutex mutex_;
  std::array<block*, classes> full_{};
};

depot& shared_depot() {
  // Never destroyed: threads may outlive static objects.
  static depot* const instance = new depot;
  return *instance;
}

constexpr std::array<magazine, classes> all_unused() {
  std::array<magazine, classes> all{};
  for (magazine& m : all) m = unused;
  return all;
}

/// The free blocks of one thread. Constant-initialised and trivially destructible, so that access
/// needs no check; `reaper` returns the blocks when the thread ends.
struct thread_cache {
  std::array<magazine, classes> loaded = all_unused();
  std::array<magazine, classes> reserve{};
  std::byte* slab = nullptr;
  std::size_t slab_left = 0;
  std::array<block*, large_classes> large{};
  std::size_t large_kept_bytes = 0;
  bool ended = false;
};
constinit thread_local thread_cache cache;

struct reaper {
  reaper() noexcept = default;
  reaper(const reaper&) = delete;
  reaper& operator=(const reaper&) = delete;
  ~reaper() {
    for (std::size_t c = 0; c < classes; ++c) {
      shared_depot().give(c, std::exchange(cache.loaded[c], {}));
      shared_depot().give(c, std::exchange(cache.reserve[c], {}));
    }
    for (block*& first : cache.large) {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
    // Later deallocations take the slow path, straight to the depot or the heap.
    cache.ended = true;
    for (magazine& m : cache.loaded) m.count = magazine_size;
  }
  void touch() const noexcept {}
};
thread_local reaper at_thread_end;

void* cut(std::size_t wanted) {
  const std::size_t bytes = std::max(wanted, 2 * step);  // room for a block
  if (cache.slab_left < bytes) {
    cache.slab = static_cast<std::byte*>(::operator new(slab_bytes, std::align_val_t{64}));
    cache.slab_left = slab_bytes;
  }
  void* cut_here = cache.slab;
  cache.slab += bytes;
  cache.slab_left -= bytes;
  return cut_here;
}

void* take(magazine& m) noexcept {
  block* taken = m.first;
  m.first = taken->next;
  --m.count;
  return taken;
}

[[gnu::noinline]] void* refill(std::size_t c) {
  if (cache.ended) return cut(c * step);
  at_thread_end.touch();
  if (cache.loaded[c].first == nullptr) cache.loaded[c] = {};
  std::swap(cache.loaded[c], cache.reserve[c]);
  if (cache.loaded[c].first == nullptr) cache.loaded[c] = shared_depot().take(c);
  return cache.loaded[c].first != nullptr ? take(cache.loaded[c]) : cut(c * step);
}

void put(magazine& m, void* memory) noexcept {
  auto* freed = static_cast<block*>(memory);
  freed->next = m.first;
  m.first = freed;
  ++m.count;
}

[[gnu::noinline]] void put_slowly(std::size_t c, void* memory) noexcept {
  if (cache.ended) {
    magazine single;
    put(single, memory);
    return shared_depot().give(c, single);
  }
  at_thread_end.touch();
  if (cache.loaded[c].first == nullptr) {
    cache.loaded[c] = {};  // the first of this size on this thread
  } else {
    shared_depot().give(c, cache.reserve[c]);
    cache.reserve[c] = std::exchange(cache.loaded[c], {});
  }
  put(cache.loaded[c], memory);
}

struct large_class {
  std::size_t index;
  std::size_t bytes;
};

/// The smallest class for a frame of more than 4 KB and at most 64 KB.
large_class large_class_of(std::size_t bytes) noexcept {
  const auto power = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 12 for 4097
  const std::size_t quarter = std::size_t{1} << (power - 2);
  const std::size_t quarters = (bytes + quarter - 1) / quarter;  // 5 to 8
  return {(power - 12) * 4 + quarters - 5, quarters * quarter};
}

[[gnu::noinline]] void* allocate_large(std::size_t bytes) {
  if (bytes > large_bytes_max) return ::operator new(bytes);
  const large_class c = large_class_of(bytes);
  block*& first = cache.large[c.index];
  if (first == nullptr) return ::operator new(c.bytes);
  cache.large_kept_bytes -= c.bytes;
  return std::exchange(first, first->next);
}

[[gnu::noinline]] void deallocate_large(void* memory, std::size_t bytes) noexcept {
  if (bytes > large_bytes_max || cache.ended) return ::operator delete(memory);
  const large_class c = large_class_of(bytes);
  if (cache.large_kept_bytes + c.bytes > large_kept_bytes_max) return ::operator delete(memory);
  at_thread_end.touch();
  cache.large_kept_bytes += c.bytes;
  auto* freed = static_cast<block*>(memory);
  freed->next = std::exchange(cache.large[c.index], freed);
}

}  // namespace

void* allocate_frame(std::size_t bytes) {
  const std::size_t c = (bytes + step - 1) / step;
  if (c >= classes) [[unlikely]]
    return allocate_large(bytes);
  magazine& m = cache.loaded[c];
  return m.first != nullptr ? take(m) : refill(c);
}

void deallocate_frame(void* memory, std::size_t bytes) noexcept {
  const std::size_t c = (bytes + step - 1) / step;
  if (c >= classes) [[unlikely]]
    return deallocate_large(memory, bytes);
  magazine& m = cache.loaded[c];
  if (m.count == magazine_size) [[unlikely]]
    return put_slowly(c, memory);
  put(m, memory);
}

#endif

}  // namespace weir::detail
