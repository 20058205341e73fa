// SPDX-License-Identifier: MIT
#include "core/futex.hpp"

#include <cerrno>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_TSAN_FUTEX 1
#include <sanitizer/linux_syscall_hooks.h>
#endif
#endif

namespace weir::detail {

namespace {

// Its cost is little beside that of the system call that follows.
std::atomic<std::uint64_t> calls_made{0};

// TSan puts a signal off until its thread enters a function that it intercepts, and ::syscall is
// not one of them: without this a thread that sleeps here would never see the signal.
struct interruptible {
#if defined(WEIR_TSAN_FUTEX)
  interruptible() noexcept { __sanitizer_syscall_pre_futex(0, 0, 0, 0, 0, 0); }
  ~interruptible() { __sanitizer_syscall_post_futex(0, 0, 0, 0, 0, 0, 0); }
#else
  interruptible() noexcept {}
#endif
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;
};

long call(futex::word& at, int operation, std::uint32_t value, const timespec* limit) noexcept {
  static_assert(sizeof at == sizeof(std::uint32_t) && futex::word::is_always_lock_free);
  calls_made.fetch_add(1, std::memory_order_relaxed);
  const int before = errno;
  long result = ::syscall(SYS_futex, &at, operation | FUTEX_PRIVATE_FLAG, value, limit);
  if (result < 0) result = -errno;
  errno = before;
  return result;
}

}  // namespace

long futex::sleep(word& at, std::uint32_t value, std::int64_t nanoseconds) noexcept {
  const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  const interruptible signals_arrive_here;
  return call(at, FUTEX_WAIT, value, nanoseconds < 0 ? nullptr : &limit);
}

void futex::wake_one(word& at) noexcept { call(at, FUTEX_WAKE, 1, nullptr); }

std::uint64_t futex::calls() noexcept { return calls_made.load(std::memory_order_relaxed); }

}  // namespace weir::detail
