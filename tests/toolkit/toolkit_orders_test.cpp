// SPDX-License-Identifier: MIT
// The promises of pools, `on` and `blocking` in many orders. WEIR_ORDERS is how many seeds each
// program has (200 by default, 100,000 in a torture run), half of them with priorities.
#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

#include "support/sanitizers.hpp"
#include "toolkit/promise_list.hpp"

namespace {

std::int64_t orders() {
  const char* given = std::getenv("WEIR_ORDERS");
  return given != nullptr ? std::atoll(given) : 200 / (WEIR_TEST_ASAN != 0 ? 2 : 1);
}

template <class F>
void explore(F program) {
  const std::int64_t each = (orders() + 1) / 2;
  for (const weir::sim::strategy how : {weir::sim::random, weir::sim::pct(3)}) {
    const weir::sim::report found = weir::sim::explore(
        {.runs = each, .strategy = how, .seed = 1, .max_steps = 20'000}, program);
    if (!found.ok()) {
      ADD_FAILURE() << found;
      return;
    }
  }
}

}  // namespace

#define WEIR_PROMISE(name) \
  TEST(promises, name) { explore(pool_promises::name); }
PROMISES(WEIR_PROMISE)
