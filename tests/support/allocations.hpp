// SPDX-License-Identifier: MIT
// Counts allocations and their bytes: support/counting_new.cpp replaces the global operator new of
// every test program by one that counts what the armed thread asks for; not under ThreadSanitizer,
// which brings operators of its own.
#pragma once

#include <cstddef>

namespace test_support {

inline thread_local bool armed = false;
inline thread_local long allocations = 0;
inline thread_local long allocated_bytes = 0;  // in all, freed ones included
inline thread_local long held_bytes = 0;       // less what was freed, with the heap's own part
inline thread_local long peak_bytes = 0;       // the highest value of that

inline void begin_to_count() noexcept {
  allocations = allocated_bytes = held_bytes = peak_bytes = 0;
  armed = true;
}
inline long end_count() noexcept {
  armed = false;
  return allocations;
}

}  // namespace test_support
