// SPDX-License-Identifier: MIT
#include "core/bell.hpp"

#include <cerrno>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

#include "core/parker.hpp"

namespace weir::detail {

bell::~bell() {
  if (const int descriptor = descriptor_.load(std::memory_order_relaxed); descriptor >= 0)
    ::close(descriptor);
}

void bell::write_descriptor() noexcept {
  const int before = errno;
  const std::uint64_t one = 1;
  // It fails only if the counter is full, and then the parker has something to see.
  [[maybe_unused]] const auto written =
      ::write(descriptor_.load(std::memory_order_relaxed), &one, sizeof one);
  errno = before;
}

int bell::descriptor() {
  int made = descriptor_.load(std::memory_order_relaxed);
  if (made >= 0) return made;
  made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made < 0) throw std::system_error(errno, std::system_category(), "eventfd");
  descriptor_.store(made, std::memory_order_relaxed);
  return made;
}

void bell::sleep_in(parker& where, std::int64_t nanoseconds) noexcept {
  std::uint32_t seen = awake;
  if (word_.compare_exchange_strong(seen, parked, std::memory_order_release,
                                    std::memory_order_relaxed))
    where.sleep(nanoseconds);
  heard();
}

bell::slept bell::sleep(std::int64_t nanoseconds) noexcept {
  std::uint32_t seen = awake;
  long result = 0;
  if (word_.compare_exchange_strong(seen, sleeping, std::memory_order_relaxed))
    result = futex::sleep(word_, sleeping, nanoseconds);
  if (heard()) return slept::rung;
  return result == -ETIMEDOUT ? slept::timed_out : slept::disturbed;
}

}  // namespace weir::detail
