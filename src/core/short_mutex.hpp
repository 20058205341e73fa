// SPDX-License-Identifier: MIT
// A mutex for critical sections of a few instructions, in which nothing is allocated, no user code
// runs and no thread is woken: a thread that finds it locked polls shortly before it sleeps,
// because the owner will have left it by then. For std::lock_guard and std::unique_lock.
//
// It is one futex word: `free`, `locked`, or `contended` (locked, and a thread may sleep on it). To
// lock it is one compare-exchange, to unlock it one exchange, both inlined.
//
// Exclusion: a thread owns it that has changed the word from `free`, by a read-modify-write; only
// the owner changes it to `free`. Acquire and release at these two order the sections.
//
// Why no sleeper is forgotten: a thread sleeps only while the word is `contended`. From then on the
// word stays `contended` until an owner unlocks, which wakes one sleeper. Others may sleep still:
// the thread that was woken, and any other that has not polled in vain, cannot know. So a thread
// that has once found it locked for long takes it by exchanging in `contended`, and wakes one
// thread when it unlocks, perhaps for nothing. A thread that takes it by `free` -> `locked`
// meanwhile delays the woken one, which finds it locked, marks it again and sleeps again.
#pragma once

#include "core/futex.hpp"

namespace weir::detail {

class short_mutex {
 public:
  constexpr short_mutex() noexcept = default;
  short_mutex(const short_mutex&) = delete;
  short_mutex& operator=(const short_mutex&) = delete;

  void lock() noexcept {
    ++locked_by_thread_;
    if (!take()) [[unlikely]]
      lock_slowly();
  }
  bool try_lock() noexcept { return take(); }
  void unlock() noexcept {
    if (word_.exchange(free, std::memory_order_release) == contended) [[unlikely]]
      futex::wake_one(word_);
  }

  /// How often this thread has locked one: for tests that count.
  static long locked_by_this_thread() noexcept { return locked_by_thread_; }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t locked = 1;
  static constexpr std::uint32_t contended = 2;

  bool take() noexcept {
    std::uint32_t seen = free;
    return word_.compare_exchange_strong(seen, locked, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void lock_slowly() noexcept;

  futex::word word_{free};

  static inline constinit thread_local long locked_by_thread_ = 0;
};

}  // namespace weir::detail
