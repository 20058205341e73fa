// SPDX-License-Identifier: MIT
#include "core/bell.hpp"

#include <cerrno>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weir::detail {

namespace {

// The raw call: signal handlers ring, too, so errno is kept.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) noexcept {
  static_assert(sizeof word == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  const int before = errno;
  long result = ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, limit);
  if (result < 0) result = -errno;
  errno = before;
  return result;
}

}  // namespace

std::atomic<std::uint64_t> bell::system_calls_{0};

void bell::wake_sleeper() noexcept {
  system_calls_.fetch_add(1, std::memory_order_relaxed);
  futex(word_, FUTEX_WAKE, 1, nullptr);
}

bell::slept bell::sleep(std::int64_t nanoseconds) noexcept {
  std::uint32_t seen = awake;
  long result = 0;
  if (word_.compare_exchange_strong(seen, sleeping, std::memory_order_relaxed)) {
    const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    system_calls_.fetch_add(1, std::memory_order_relaxed);
    result = futex(word_, FUTEX_WAIT, sleeping, nanoseconds < 0 ? nullptr : &limit);
  }
  if (heard()) return slept::rung;
  return result == -ETIMEDOUT ? slept::timed_out : slept::disturbed;
}

}  // namespace weir::detail
