// SPDX-License-Identifier: MIT
//
// The recursion that makes nothing but calls, and how many they are.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "support/measure.hpp"

namespace bench {

constexpr std::int64_t plain_fib(std::int64_t n) {
  std::int64_t value = 0;
  for (std::int64_t next = 1; n > 0; --n) {
    const std::int64_t sum = value + next;
    value = next;
    next = sum;
  }
  return value;
}

/// How many calls fib(n) makes, itself included, if each makes two down to fib(1) and fib(0).
constexpr std::int64_t fib_calls(std::int64_t n) { return 2 * plain_fib(n + 1) - 1; }

inline void check_fib(std::int64_t n, std::int64_t value) {
  if (value != plain_fib(n)) std::abort();
}

}  // namespace bench
