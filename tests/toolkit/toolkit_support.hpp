// SPDX-License-Identifier: MIT
// What the tests of the toolkit share beside scope/scope_support.hpp.
#pragma once

#include <weir/interop/gtest.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <source_location>

#include "scope/scope_support.hpp"

namespace weir_test {

using weir::errc;
using weir::task;
using callable = std::function<task<>()>;
using function_pointer = task<> (*)();

inline task<> fail_after(weir::duration d, int number) {
  co_await weir::sleep(d);
  throw boom(number);
}

inline task<> forever() { co_await weir::sleep(1000h); }

inline void raise_to(std::atomic<int>& most, int now) {
  int seen = most;
  while (now > seen && !most.compare_exchange_weak(seen, now)) {
  }
}

}  // namespace weir_test
