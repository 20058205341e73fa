// SPDX-License-Identifier: MIT
// fallback: what replaces a failed operation, and when.
#include "policy_support.hpp"

using namespace policy_test;

namespace {

task<> fails_without_value() {
  throw boom(1);
  co_return;
}

}  // namespace

FIBER_TEST(fallback, its_function_may_be_plain_or_a_task_and_may_take_the_error) {
  const stopwatch time;
  auto plain = weir::op(fails) | weir::fallback([] { return 5; });
  auto asked =
      weir::op(fails) | weir::fallback([](const std::exception_ptr& e) { return 10 + boom_of(e); });
  auto by_value = weir::op(fails) | weir::fallback([](std::exception_ptr e) -> task<int> {
                    co_await weir::sleep(1ms);
                    co_return 20 + boom_of(e);
                  });
  auto awaited = weir::op(fails) | weir::fallback([] { return after(1ms, 7); });
  EXPECT_EQ(co_await plain(), 5);
  EXPECT_EQ(co_await asked(), 11);
  EXPECT_EQ(co_await by_value(), 21);
  EXPECT_EQ(co_await awaited(), 7);
  EXPECT_EQ(time.ms(), 2);
}

FIBER_TEST(fallback, an_operation_without_a_value_may_have_one) {
  int told = 0;
  auto plain = weir::op(fails_without_value) | weir::fallback([&] { ++told; });
  auto waits = weir::op(fails_without_value) | weir::fallback([&] {
                 ++told;
                 return weir::sleep(1ms);
               });
  co_await plain();
  co_await waits();
  EXPECT_EQ(told, 2);
}

FIBER_TEST(fallback, it_does_not_run_after_a_value) {
  int told = 0;
  auto o = weir::op([] { return ready(3); }) | weir::fallback([&] { return ++told; });
  EXPECT_EQ(co_await o(), 3);
  EXPECT_EQ(told, 0);
}
FIBER_TEST(fallback, its_own_error_replaces_the_original_which_is_suppressed) {
  const event_record events;
  auto o = weir::op(fails) | weir::fallback([]() -> int { throw bang(2); });
  const auto ended = co_await weir::settle(o);
  EXPECT_TRUE(holds<bang>(ended.error()));
  EXPECT_EQ(ended.suppressed().size(), 1u);
  EXPECT_EQ(boom_of(ended.suppressed().at(0)), 1);
  EXPECT_EQ(events.count("suppressed"), 1);
  EXPECT_EQ(events.of("suppressed").at(0).object, "fallback");
  auto later = weir::op(fails) | weir::fallback([]() -> task<int> {
                 co_await weir::sleep(1ms);
                 throw bang(3);
               });
  EXPECT_TRUE(holds<bang>(co_await error_of(later())));
}
FIBER_TEST_IN_EVERY_ORDER(fallback, it_never_runs_after_a_cancellation) {
  int told = 0;
  auto o = weir::op([] { return after(1h, 1); }) | weir::fallback([&] { return ++told; });
  const auto late = co_await error_of(weir::with_timeout(10ms, o));
  EXPECT_TRUE(holds<weir::timeout_error>(late));
  weir::cancel_source source;
  source.cancel();
  auto stopped = weir::op([&] { return weir::with_token(source.token(), after(1h, 1)); }) |
                 weir::fallback([&] { return ++told; });
  const auto ended = co_await weir::settle(stopped);
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(told, 0);
}

FIBER_TEST(fallback, it_is_cancelled_like_any_operation) {
  text_log log;
  auto o = weir::op(fails) | weir::fallback([&]() -> task<int> {
             const end_note ended(log, "gone");
             co_await weir::sleep(1h);
             co_return 1;
           }) |
           weir::timeout(10ms);
  const stopwatch time;
  EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(o())));
  EXPECT_EQ(time.ms(), 10);
  EXPECT_EQ(joined(log), "gone");
}
