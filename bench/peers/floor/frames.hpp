// SPDX-License-Identifier: MIT
//
// The cheapest frame allocator that is still correct on one thread: a free list over a bump arena.
// The floors use it so that they show what coroutines themselves cost, not what malloc does.
#pragma once

#include <cstddef>
#include <new>

namespace bench {

class frame_cache {
 public:
  void* take(std::size_t size) {
    const std::size_t slot = slot_of(size);
    if (slot >= slots) return ::operator new(size);
    if (node* const reused = free_[slot]) {
      free_[slot] = reused->next;
      return reused;
    }
    return bump(slot * step);
  }

  void give_back(void* frame, std::size_t size) {
    const std::size_t slot = slot_of(size);
    if (slot >= slots) return ::operator delete(frame);
    free_[slot] = ::new (frame) node{free_[slot]};
  }

 private:
  struct node {
    node* next;
  };

  static constexpr std::size_t step = 16;
  static constexpr std::size_t slots = 64;
  static constexpr std::size_t chunk = std::size_t{1} << 20;

  static std::size_t slot_of(std::size_t size) { return (size + step - 1) / step; }

  // Chunks live until the process ends: a floor never gives memory back.
  void* bump(std::size_t size) {
    if (static_cast<std::size_t>(end_ - next_) < size) {
      next_ = static_cast<std::byte*>(::operator new(chunk));
      end_ = next_ + chunk;
    }
    void* const fresh = next_;
    next_ += size;
    return fresh;
  }

  node* free_[slots]{};
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
};

inline constinit frame_cache frames;

/// A promise derived from this takes its frame from the cache.
struct cached_frame {
  static void* operator new(std::size_t size) { return frames.take(size); }
  static void operator delete(void* frame, std::size_t size) { frames.give_back(frame, size); }
};

}  // namespace bench
