// SPDX-License-Identifier: MIT
// The system calls with which threads sleep on a word of memory and wake each other.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::detail {

/// Only for `bell` and `short_mutex`, whose headers say why no wake-up is lost. errno is kept:
/// signal handlers wake threads, too.
struct futex {
  using word = std::atomic<std::uint32_t>;

  /// Sleeps while the word has this value, for at most `nanoseconds` (negative: no limit). The
  /// kernel compares and enqueues in one step, with respect to `wake_one`. Returns 0 or -errno.
  static long sleep(word& at, std::uint32_t value, std::int64_t nanoseconds) noexcept;
  /// Wakes one of the threads that sleep there. The word is not read: its memory may be gone, or
  /// have a new use; a sleeper there is disturbed, which every user of futexes expects.
  static void wake_one(word& at) noexcept;

  /// How often this process has called the kernel here: for tests that count.
  static std::uint64_t calls() noexcept;
};

}  // namespace weir::detail
