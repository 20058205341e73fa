// SPDX-License-Identifier: MIT
// How a thread sleeps until another thread wakes it: one futex word, or, if the owner waits for I/O
// as well, that word and an eventfd.
//
//   awake    the owner runs, and was not rung since it last looked
//   rung     a wake-up is pending
//   sleeping the owner is about to sleep, or asleep
//   parked   the same, in a parker
//
// Invariants:
// 1. Any thread may change the word to `rung`; everything else is done by the owner.
// 2. A pending wake-up is taken by the owner only, in `sleep` or `heard`, which then say so. Rings
//    are not counted: of several the owner hears one.
//
// Why no wake-up is lost:
// - All changes of the word are read-modify-writes, so they have one order, and the owner's next
//   one after a ring finds `rung`.
// - A ring before `sleep`: its compare-exchange of `awake` fails, and it returns at once.
// - A ring after that exchange finds `sleeping` and calls the kernel. The kernel compares the word
//   and enqueues the sleeper in one step, with respect to the wake: either it finds `rung` and does
//   not put the owner to sleep, or the owner is in the queue when the ring wakes it.
// - The time limit may be reached at the moment of a ring. The owner then exchanges the word, as
//   after every sleep: it finds `rung` and reports the ring, not the limit.
//
// Memory orders: a ring releases and taking it acquires, so what the ringing thread wrote before is
// visible to the owner; of several rings, too, because each later one continues the release
// sequence of the earlier ones. `sleeping` publishes nothing: it only makes rings call the kernel.
//
// In a parker: the owner sleeps there instead of on the word, and a ring that finds `parked` writes
// to the eventfd, which the parker watches. The descriptor is stored before the word becomes
// `parked`, with release, and the ring acquires; so it finds the descriptor. It is not closed
// before the bell is destroyed, and whoever rings a bell that may be parked keeps it alive: a late
// write meets no other file.
//
// The kernel is called after the word was changed, and may be late: the owner may be gone already.
// That call does not read the word.
//
// A forked child has a word of its own: private futexes belong to one address space.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/futex.hpp"

namespace weir::detail {

class parker;

class bell {
 public:
  enum class slept : std::uint8_t {
    rung,       // a wake-up came, before or during the sleep
    timed_out,  // the limit was reached
    disturbed,  // by a signal handler, or for no reason: sleep again if nothing else is to be done
  };

  bell() noexcept = default;
  bell(const bell&) = delete;
  bell& operator=(const bell&) = delete;
  ~bell();

  /// Any thread, and signal handlers. One exchange; a system call if the owner sleeps.
  void ring() noexcept {
    const std::uint32_t before = word_.exchange(rung, std::memory_order_acq_rel);
    if (before == sleeping) {
      futex::wake_one(word_);
    } else if (before == parked) [[unlikely]] {
      write_descriptor();
    }
  }

  // The rest is for the owner only.

  /// Sleeps until it is rung or `nanoseconds` have passed (negative: no limit).
  slept sleep(std::int64_t nanoseconds) noexcept;
  /// The same in a parker that watches `descriptor()`.
  void sleep_in(parker& where, std::int64_t nanoseconds) noexcept;
  /// Like the beginning of `sleep_in`, for an owner that sleeps without calling this class: a ring
  /// writes to the descriptor, until `heard` is called. False: it was rung, and that is taken.
  bool park() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    if (seen == parked) return true;
    if (seen == awake && word_.compare_exchange_strong(seen, parked, std::memory_order_release,
                                                       std::memory_order_relaxed))
      return true;
    heard();
    return false;
  }
  /// An eventfd that is written when the sleeping owner is rung; made at the first call. Throws
  /// std::system_error. Nobody reads it: watch for edges.
  int descriptor();
  /// Takes a pending wake-up, without sleeping.
  bool heard() noexcept { return word_.exchange(awake, std::memory_order_acquire) == rung; }

 private:
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t rung = 1;
  static constexpr std::uint32_t sleeping = 2;
  static constexpr std::uint32_t parked = 3;

  void write_descriptor() noexcept;

  futex::word word_{awake};
  std::atomic<int> descriptor_{-1};
};

}  // namespace weir::detail
