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

void* allocate_slowly(std::size_t bytes) { return ::operator new(bytes); }
void deallocate_slowly(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, bytes);
}

#else

namespace {

constexpr std::size_t magazine_size = 128;
constexpr std::size_t slab_bytes = std::size_t{256} * 1024;
constexpr std::size_t large_bytes_max = std::size_t{64} * 1024;
constexpr std::size_t large_classes = 16;  // 5, 6, 7, 8, 10, 12, 14, 16, 20, ..., 64 KB
constexpr std::size_t large_kept_bytes_max = std::size_t{1024} * 1024;

/// The first block of a magazine in the depot.
struct deposited : free_block {
  deposited* next_magazine;
  std::size_t room;
};

/// Magazines that threads have given up, for all threads.
class depot {
 public:
  magazine take(std::size_t size_class) {
    const std::lock_guard lock(mutex_);
    deposited* const taken = full_[size_class];
    if (taken == nullptr) return {};
    full_[size_class] = taken->next_magazine;
    return {taken, taken->room};
  }
  void give(std::size_t size_class, magazine given) noexcept {
    if (given.first == nullptr) return;
    free_block* const rest = given.first->next;
    const std::lock_guard lock(mutex_);
    full_[size_class] =
        ::new (static_cast<void*>(given.first)) deposited{{rest}, full_[size_class], given.room};
  }

 private:
  std::mutex mutex_;
  std::array<deposited*, frame_classes> full_{};
};

depot& shared_depot() {
  // Never destroyed: threads may outlive static objects.
  static depot* const instance = new depot;
  return *instance;
}

/// What one thread keeps besides its loaded magazines. Constant-initialised and trivially
/// destructible, so that access needs no check; `reaper` returns the blocks when the thread ends.
struct thread_cache {
  std::array<magazine, frame_classes> reserve{};
  std::byte* slab = nullptr;
  std::size_t slab_left = 0;
  std::array<free_block*, large_classes> large{};
  std::size_t large_kept_bytes = 0;
  bool ended = false;
};
constinit thread_local thread_cache cache;

struct reaper {
  reaper() noexcept = default;
  reaper(const reaper&) = delete;
  reaper& operator=(const reaper&) = delete;
  ~reaper() {
    // Later deallocations take the slow path, straight to the depot or the heap.
    for (std::size_t c = 0; c < frame_classes; ++c) {
      shared_depot().give(c, std::exchange(loaded_magazines[c], {}));
      shared_depot().give(c, std::exchange(cache.reserve[c], {}));
    }
    for (free_block*& first : cache.large) {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
    cache.ended = true;
  }
  void touch() const noexcept {}
};
thread_local reaper at_thread_end;

void* cut(std::size_t wanted) {
  const std::size_t bytes = std::max(wanted, 2 * frame_step);  // room for a `deposited`
  if (cache.slab_left < bytes) {
    cache.slab = static_cast<std::byte*>(::operator new(slab_bytes, std::align_val_t{64}));
    cache.slab_left = slab_bytes;
  }
  void* cut_here = cache.slab;
  cache.slab += bytes;
  cache.slab_left -= bytes;
  return cut_here;
}

// The loaded magazine is empty.
void* refill(std::size_t c) {
  if (cache.ended) return cut(c * frame_step);
  at_thread_end.touch();
  magazine& loaded = loaded_magazines[c];
  std::swap(loaded, cache.reserve[c]);
  if (loaded.first == nullptr) loaded = shared_depot().take(c);
  if (loaded.first == nullptr) return cut(c * frame_step);
  ++loaded.room;
  return std::exchange(loaded.first, loaded.first->next);
}

// The loaded magazine is full, or this thread has not used it yet.
void put_slowly(std::size_t c, void* memory) noexcept {
  const magazine single{::new (memory) free_block{nullptr}, magazine_size - 1};
  if (cache.ended) return shared_depot().give(c, single);
  at_thread_end.touch();
  magazine& loaded = loaded_magazines[c];
  if (loaded.first != nullptr) {
    shared_depot().give(c, cache.reserve[c]);
    cache.reserve[c] = loaded;
  }
  loaded = single;
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

void* allocate_large(std::size_t bytes) {
  if (bytes > large_bytes_max) return ::operator new(bytes);
  const large_class c = large_class_of(bytes);
  free_block*& first = cache.large[c.index];
  if (first == nullptr) return ::operator new(c.bytes);
  cache.large_kept_bytes -= c.bytes;
  return std::exchange(first, first->next);
}

void deallocate_large(void* memory, std::size_t bytes) noexcept {
  if (bytes > large_bytes_max || cache.ended) return ::operator delete(memory);
  const large_class c = large_class_of(bytes);
  if (cache.large_kept_bytes + c.bytes > large_kept_bytes_max) return ::operator delete(memory);
  at_thread_end.touch();
  cache.large_kept_bytes += c.bytes;
  cache.large[c.index] = ::new (memory) free_block{cache.large[c.index]};
}

}  // namespace

void* allocate_slowly(std::size_t bytes) {
  const std::size_t c = (bytes + frame_step - 1) / frame_step;
  return c >= frame_classes ? allocate_large(bytes) : refill(c);
}

void deallocate_slowly(void* memory, std::size_t bytes) noexcept {
  const std::size_t c = (bytes + frame_step - 1) / frame_step;
  return c >= frame_classes ? deallocate_large(memory, bytes) : put_slowly(c, memory);
}

#endif

}  // namespace weir::detail
