// SPDX-License-Identifier: MIT
// Memory for coroutine frames and fiber records.
//
// Each thread keeps free blocks by size (steps of 16 bytes) in two magazines per size; a full
// magazine goes to the process-wide depot and an empty one is exchanged for a full one from there,
// so a block that is allocated on one thread and freed on another comes back, and the depot's lock
// is taken at most once in `magazine_size` operations. Slabs are kept for reuse and never returned
// to the system. Under a sanitizer each block is an allocation of its own, so that a use after the
// end of a frame is found.
#include <weir/detail/frame.hpp>

#include <array>
#include <mutex>
#include <new>

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
constexpr std::size_t classes = 64;  // up to 1008 bytes; larger frames are rare
constexpr std::size_t magazine_size = 128;
constexpr std::size_t slab_bytes = std::size_t{256} * 1024;

struct block {
  block* next;
  block* next_magazine;  // of the first block of a magazine in the depot
};

struct magazine {
  block* first = nullptr;
  std::size_t count = 0;
};

/// Full magazines of all threads, and the slabs that blocks are cut from.
class depot {
 public:
  magazine take(std::size_t size_class) {
    magazine taken;
    {
      const std::lock_guard lock(mutex_);
      taken.first = full_[size_class];
      if (taken.first == nullptr) return taken;
      full_[size_class] = taken.first->next_magazine;
    }
    for (const block* b = taken.first; b != nullptr; b = b->next) ++taken.count;
    return taken;
  }
  void give(std::size_t size_class, magazine given) noexcept {
    if (given.first == nullptr) return;
    const std::lock_guard lock(mutex_);
    given.first->next_magazine = full_[size_class];
    full_[size_class] = given.first;
  }

 private:
  std::mutex mutex_;
  std::array<block*, classes> full_{};
};

depot& shared_depot() {
  // Never destroyed: threads may end after the static objects of the program.
  static depot* const instance = new depot;
  return *instance;
}

class thread_cache {
 public:
  thread_cache() noexcept = default;
  thread_cache(const thread_cache&) = delete;
  thread_cache& operator=(const thread_cache&) = delete;
  ~thread_cache() {
    for (std::size_t c = 0; c < classes; ++c) {
      shared_depot().give(c, loaded_[c]);
      shared_depot().give(c, reserve_[c]);
      loaded_[c] = reserve_[c] = {};
    }
    ended_ = true;
  }

  void* get(std::size_t c) {
    magazine& m = loaded_[c];
    if (m.first == nullptr) [[unlikely]]
      return refill(c);
    block* taken = m.first;
    m.first = taken->next;
    --m.count;
    return taken;
  }
  void put(std::size_t c, void* memory) noexcept {
    magazine& m = loaded_[c];
    if (m.count == magazine_size) [[unlikely]]
      spill(c);
    auto* freed = static_cast<block*>(memory);
    freed->next = m.first;
    m.first = freed;
    ++m.count;
    if (ended_) [[unlikely]]
      spill(c);
  }

 private:
  void* refill(std::size_t c) {
    std::swap(loaded_[c], reserve_[c]);
    if (loaded_[c].first == nullptr) loaded_[c] = shared_depot().take(c);
    if (loaded_[c].first != nullptr) return get(c);
    return cut(c * step);
  }
  void spill(std::size_t c) noexcept {
    shared_depot().give(c, reserve_[c]);
    reserve_[c] = loaded_[c];
    loaded_[c] = {};
    if (ended_) {
      shared_depot().give(c, reserve_[c]);
      reserve_[c] = {};
    }
  }
  void* cut(std::size_t bytes) {
    if (slab_left_ < bytes) {
      slab_ = static_cast<std::byte*>(::operator new(slab_bytes, std::align_val_t{64}));
      slab_left_ = slab_bytes;
    }
    void* cut_here = slab_;
    slab_ += bytes;
    slab_left_ -= bytes;
    return cut_here;
  }

  std::array<magazine, classes> loaded_{};
  std::array<magazine, classes> reserve_{};
  std::byte* slab_ = nullptr;
  std::size_t slab_left_ = 0;
  bool ended_ = false;
};

thread_local thread_cache cache;

}  // namespace

void* allocate_frame(std::size_t bytes) {
  const std::size_t c = (bytes + step - 1) / step;
  if (c >= classes) return ::operator new(bytes);
  return cache.get(c);
}

void deallocate_frame(void* memory, std::size_t bytes) noexcept {
  const std::size_t c = (bytes + step - 1) / step;
  if (c >= classes) return ::operator delete(memory, bytes);
  cache.put(c, memory);
}

#endif

}  // namespace weir::detail
