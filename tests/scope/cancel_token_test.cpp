// SPDX-License-Identifier: MIT
// Tokens whose source is cancelled on another simulated loop, in every order of what meets there.
#include "scope_support.hpp"

using namespace weir_test;

TEST(cancel_token, fired_on_another_loop_while_its_op_ends_it_gives_a_value_or_a_cancellation) {
  int values = 0;
  int cancellations = 0;
  for_each_order([&](weir::sim::world& w) {
    w.run([&]() -> weir::task<> {
      weir::cancel_source source;
      w.loop("peer").post([source]() mutable { source.cancel("now"); });
      auto op = []() -> weir::task<int> {
        for (int i = 0; i < 3; ++i) co_await weir::yield();
        co_return 1;
      };
      auto ended = co_await weir::settle(weir::with_token(source.token(), op));
      const bool is_value = ended.is_value() && ended.value() == 1;
      const bool is_cancelled = ended.is_cancelled() && message_of(ended.reason()) == "now";
      EXPECT_TRUE(is_value || is_cancelled);
      ++(is_value ? values : cancellations);
      // What is still on its way finds the region gone, and this fiber untouched.
      co_await weir::sleep(1ms);
      EXPECT_TRUE(source.cancel_requested());
      EXPECT_FALSE(weir::this_context().cancel_requested());
    });
  });
  EXPECT_GT(values, 0);
  EXPECT_GT(cancellations, 0);
}

FIBER_TEST_IN_EVERY_ORDER(cancel_token,
                          of_two_loops_that_cancel_it_the_first_reason_wins_for_every_op) {
  weir::cancel_source source;
  for (const char* name : {"a", "b"})
    w.loop(name).post([source, name]() mutable { source.cancel(name); });
  std::vector<std::string> reasons;
  auto parked = [&]() -> weir::task<> {
    auto ended = co_await weir::settle(weir::with_token(source.token(), sleep_for(1h)));
    reasons.push_back(ended.is_cancelled() ? message_of(ended.reason()) : "WENT ON");
  };
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (int i = 0; i < 3; ++i) s.spawn(parked);
    co_await s.join();
  });
  EXPECT_EQ(reasons.size(), 3u);
  for (const std::string& reason : reasons) EXPECT_EQ(reason, reasons.front());
  EXPECT_TRUE(reasons.front() == "a" || reasons.front() == "b") << reasons.front();
}
