// SPDX-License-Identifier: MIT
// Bounded stack: errors that are the cause of a cancellation that is an error, and so on, are taken
// apart without recursion.
#include <exception>
#include <optional>
#include <utility>

#include "scope_support.hpp"
#include "support/small_stack.hpp"

using namespace weir_test;
using weir::task;

namespace {

constexpr int long_chain = 10'000;

weir::cancel_reason caused_by(std::exception_ptr cause) {
  weir::cancel_reason reason(cancel_kind::sibling_failed);
  reason.cause = std::move(cause);
  return reason;
}

/// An error that was caused by an error that was caused by ...
std::exception_ptr chain_of_causes(std::exception_ptr origin) {
  for (int i = 0; i < long_chain; ++i)
    origin = std::make_exception_ptr(weir::cancelled_error(caused_by(std::move(origin))));
  return origin;
}

}  // namespace

TEST(cancel_cause_stack, errors_that_caused_one_another_10000_deep_are_destroyed) {
  on_a_small_stack([] {
    auto origin = std::make_exception_ptr(boom(1));
    auto last = chain_of_causes(origin);
    EXPECT_TRUE(holds<weir::cancelled_error>(last));
    last = nullptr;
    EXPECT_EQ(boom_of(origin), 1);
  });
}

TEST(cancel_cause_stack, a_reason_with_10000_causes_is_copied_and_destroyed) {
  on_a_small_stack([] {
    std::optional<weir::cancel_reason> first = caused_by(chain_of_causes(nullptr));
    std::optional<weir::cancel_reason> copy = first;
    first.reset();
    EXPECT_TRUE(holds<weir::cancelled_error>(copy->cause));
    copy.reset();
  });
}

TEST(cancel_cause_stack, a_scope_cancelled_with_10000_causes_ends) {
  on_a_small_stack([] {
    weir::sim::run({.seed = 1}, []() -> task<> {
      auto error = co_await error_of(weir::with_scope([](weir::scope& s) -> task<> {
        s.spawn(sleep_for(1h));
        s.cancel(caused_by(chain_of_causes(nullptr)));
        co_await weir::sleep(1h);
      }));
      EXPECT_TRUE(holds<weir::cancelled_error>(error));
    });
  });
}

TEST(cancel_cause_stack, groups_of_causes_of_groups_10000_deep_are_destroyed) {
  on_a_small_stack([] {
    auto error = std::make_exception_ptr(boom(1));
    for (int i = 0; i < long_chain / 2; ++i) {
      error = std::make_exception_ptr(weir::error_group({error}));
      error = std::make_exception_ptr(weir::cancelled_error(caused_by(std::move(error))));
    }
    EXPECT_TRUE(holds<weir::cancelled_error>(error));
    error = nullptr;
  });
}
