// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <weir/detail/core/time.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/duration.hpp>

namespace weir {

/// Waits for `d` of the loop's time; zero or less is `yield()`.
template <class Rep, class Period>
detail::pending<detail::sleep_wait> sleep(std::chrono::duration<Rep, Period> d) {
  return detail::make_sleep(detail::saturating_cast(d));
}
/// Waits until the loop's clock shows `at`; a time in the past is `yield()`.
template <class Duration>
detail::pending<detail::sleep_wait> sleep_until(
    std::chrono::time_point<std::chrono::steady_clock, Duration> at) {
  return detail::make_sleep_until(std::chrono::time_point_cast<duration>(at));
}
/// Lets all other ready fibers run first.
detail::pending<detail::yield_wait> yield();
/// A cancellation point that does not wait; it also notices an expired deadline.
detail::pending<detail::checkpoint_wait> checkpoint();

/// The loop's steady clock: virtual in simulation; read at most once per step of a fiber.
time_point now();
/// The loop's wall clock.
wall_time wall_now();
/// 64 random bits from the loop's environment: reproducible in simulation.
std::uint64_t random();
/// A random UUID (version 4) from the loop's environment, in the usual text form.
std::string uuid();

}  // namespace weir
