// SPDX-License-Identifier: MIT
// Counts what the armed thread asks the global operator new for. One file of a test program
// replaces the operators, and the others use the same count.
#pragma once

namespace aid {

inline thread_local bool counts_allocations = false;
inline thread_local long allocations = 0;

/// Begins to count from 0.
inline void begin_to_count() {
  allocations = 0;
  counts_allocations = true;
}
inline long end_count() {
  counts_allocations = false;
  return allocations;
}

}  // namespace aid
