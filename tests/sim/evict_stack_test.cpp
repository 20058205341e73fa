// SPDX-License-Identifier: MIT
// A crash destroys deep chains of frames and of fibers without recursion.
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "support/small_stack.hpp"
#include "support/test_support.hpp"

namespace {

using namespace test_support;
using weir::task;

// NOLINTNEXTLINE(misc-no-recursion): that is the point
task<> frames(int depth) {
  if (depth > 0) {
    co_await frames(depth - 1);
    co_return;
  }
  bool forever = true;
  while (forever) {
    co_await weir::yield();
    forever = weir::now() >= weir::time_point::min();
  }
}

// NOLINTNEXTLINE(misc-no-recursion): that is the point
task<> fibers(int depth) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    if (depth > 0) s.spawn(fibers(depth - 1));
    for (;;) co_await weir::yield();
  });
}

template <class Op>
void ends_in_a_livelock(Op op, std::int64_t steps) {
  const auto error = thrown_by([&] { weir::sim::run({.max_steps = steps}, std::move(op)); });
  EXPECT_EQ(code_of(error), weir::errc::livelock);
}

}  // namespace

TEST(evict, frames_awaiting_each_other_100000_deep_need_little_stack) {
  on_a_small_stack([] { ends_in_a_livelock(frames(100'000), 10'000); });
}

TEST(evict, fibers_in_scopes_nested_5000_deep_need_little_stack) {
  on_a_small_stack([] { ends_in_a_livelock(fibers(5'000), 50'000); });
}
