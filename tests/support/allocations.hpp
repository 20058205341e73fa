// SPDX-License-Identifier: MIT
// Counts allocations and their bytes: support/counting_new.cpp replaces the global operator new of
// every test program by one that counts what the armed thread asks for; not under ThreadSanitizer,
// which brings operators of its own.
#pragma once

namespace test_support {

inline thread_local bool armed = false;
inline thread_local long allocations = 0;
/// Allocated and not freed since the count began, and the highest value of that.
inline thread_local long long live_bytes = 0;
inline thread_local long long peak_bytes = 0;

inline void begin_to_count() noexcept {
  allocations = 0;
  live_bytes = peak_bytes = 0;
  armed = true;
}
inline long end_count() noexcept {
  armed = false;
  return allocations;
}

}  // namespace test_support
