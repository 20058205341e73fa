// SPDX-License-Identifier: MIT
// What a failing child or body does to the others, and which errors leave the scope: the three
// failure modes, the two errors modes, and what is suppressed.
#include "scope_support.hpp"

using namespace weir_test;

namespace {

/// Fails with `number`, `d` after it was cancelled: the shielded part delivers its error.
weir::task<> fails_when_stopped(weir::duration d, int number) {
  co_await weir::shield([&]() -> weir::task<> {
    co_await weir::sleep(d);
    throw boom(number);
  });
}

/// The leaves of the group that `error` is; a single -2 if it is no group.
std::vector<int> group_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const weir::error_group& group) {
    return booms_of(group.errors());
  } catch (...) {
    return {-2};
  }
}

}  // namespace
TEST(scope_failure, a_failing_child_cancels_its_siblings_before_the_scope_ends) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    std::optional<weir::future<int>> failing;
    std::optional<weir::future<void>> sibling;
    std::optional<weir::scope_id> id;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        id.emplace(s.id());
        failing = s.spawn(fails_after(5ms, 1), {.name = "failing"});
        sibling = s.spawn(park(log, "sibling"));
        s.spawn(slow_to_stop(log, "slow"));
        co_await weir::sleep(1h);
        log.push_back("WENT ON");
      }));
      log.push_back("scope");
      EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 1);
      EXPECT_EQ(weir::now() - start, 35ms);
    });
    EXPECT_EQ(joined(log), "sibling,slow stopped,scope");
    ASSERT_TRUE(failing->peek() != nullptr && failing->peek()->is_error());
    EXPECT_EQ(boom_of(failing->peek()->error()), 1);
    ASSERT_TRUE(sibling->peek() != nullptr && sibling->peek()->is_cancelled());
    const weir::cancel_reason reason = sibling->peek()->reason();
    EXPECT_EQ(reason.kind, cancel_kind::sibling_failed);
    EXPECT_TRUE(reason.source == *id);
    EXPECT_EQ(boom_of(reason.cause), 1);
  });
}

// Children are cancelled, their cleanup runs, and only then the body's error is raised.
TEST(scope_failure, a_failing_body_cancels_its_children_and_joins_them_before_it_throws) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    std::optional<weir::future<int>> child;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      try {
        co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
          child = s.spawn(slow_to_stop(log, "child"));
          co_await weir::sleep(5ms);
          throw boom(9);
        });
      } catch (const boom& e) {
        log.push_back("caught " + std::to_string(e.n));
      }
      EXPECT_EQ(weir::now() - start, 35ms);
    });
    EXPECT_EQ(joined(log), "child stopped,caught 9");
    ASSERT_TRUE(child->peek() != nullptr && child->peek()->is_cancelled());
    EXPECT_EQ(child->peek()->reason().kind, cancel_kind::sibling_failed);
  });
}

TEST(scope_failure, neither_body_nor_sibling_sees_the_error_of_a_child_in_a_catch_block) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto failing = s.spawn(fails_after(5ms, 1));
        auto wait_for_it = [&]() -> weir::task<> {
          try {
            co_await failing;
          } catch (...) {
            log.push_back("CAUGHT");
          }
          log.push_back("WENT ON");
        };
        s.spawn(wait_for_it);
        co_await wait_for_it();
      }));
      EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 1);
    });
    EXPECT_EQ(joined(log), "");
  });
}

TEST(scope_failure, a_failing_child_unwinds_the_body_out_of_join) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        end_note body(log, "body unwound");
        s.spawn(fails_after(5ms, 1));
        s.spawn(park(log, "sibling"));
        try {
          co_await s.join();
        } catch (...) {
          log.push_back("CAUGHT");
        }
        log.push_back("WENT ON");
      }));
      EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 1);
    });
    EXPECT_EQ(joined(log), "sibling,body unwound");
  });
}

FIBER_TEST_IN_EVERY_ORDER(scope_failure, the_error_of_a_settled_child_is_handled_inside_the_scope) {
  const int value = co_await weir::with_scope([](weir::scope& s) -> weir::task<int> {
    auto settled = s.spawn(weir::settle(fails_after(5ms, 6)));
    auto sibling = s.spawn(after(10ms, 1));
    const auto& ended = co_await settled;
    const int number = ended.is_error() ? boom_of(ended.error()) : 0;
    co_return number + co_await sibling;
  });
  EXPECT_EQ(value, 7);
}

TEST(scope_failure, wait_for_all_cancels_nobody_and_fails_at_the_end) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      auto ended = co_await weir::settle(weir::with_scope(
          {.failure = weir::failure::wait_for_all}, [&](weir::scope& s) -> weir::task<int> {
            auto failing = s.spawn(fails_after(5ms, 1));
            s.spawn([&]() -> weir::task<> {
              co_await weir::sleep(20ms);
              log.push_back("sibling");
            });
            try {
              co_await failing;
            } catch (const boom&) {
              log.push_back("body caught it");
            }
            co_await weir::sleep(5ms);
            log.push_back("body");
            co_return 3;
          }));
      EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 1);
      EXPECT_EQ(weir::now() - start, 20ms);
    });
    EXPECT_EQ(joined(log), "body caught it,body,sibling");
  });
}

TEST(scope_failure, an_error_caught_at_join_is_not_raised_again) {
  for (auto mode : {weir::failure::wait_for_all, weir::failure::isolate}) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> weir::task<> {
        const auto start = weir::now();
        int caught = 0;
        const int value =
            co_await weir::with_scope({.failure = mode}, [&](weir::scope& s) -> weir::task<int> {
              s.spawn(fails_after(5ms, 4));
              s.spawn(sleep_for(20ms));
              try {
                co_await s.join();
              } catch (const boom& e) {
                caught = e.n;
              }
              co_return 8;
            });
        EXPECT_EQ(caught, 4);
        EXPECT_EQ(value, 8);
        EXPECT_EQ(weir::now() - start, 20ms);
      });
    });
  }
}

TEST(scope_failure, idle_does_not_throw_and_leaves_the_error_to_the_end_of_the_scope) {
  for_each_order([](weir::sim::world& w) {
    bool went_on = false;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope({.failure = weir::failure::wait_for_all},
                                                          [&](weir::scope& s) -> weir::task<> {
                                                            s.spawn(fails_after(5ms, 4));
                                                            co_await s.idle();
                                                            went_on = true;
                                                          }));
      EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 4);
    });
    EXPECT_TRUE(went_on);
  });
}

TEST(scope_failure, a_failing_body_cancels_nobody_unless_siblings_are_to_be_cancelled) {
  for_each_order([](weir::sim::world& w) {
    for (auto mode : {weir::failure::wait_for_all, weir::failure::isolate}) {
      w.run([&]() -> weir::task<> {
        const auto start = weir::now();
        bool finished = false;
        auto ended = co_await weir::settle(
            weir::with_scope({.failure = mode}, [&](weir::scope& s) -> weir::task<> {
              s.spawn([&]() -> weir::task<> {
                co_await weir::sleep(20ms);
                finished = true;
              });
              co_await weir::sleep(1ms);
              throw boom(2);
            }));
        EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 2);
        EXPECT_TRUE(finished);
        EXPECT_EQ(weir::now() - start, 20ms);
      });
    }
  });
}

FIBER_TEST_IN_EVERY_ORDER(scope_failure, an_isolated_failure_that_was_awaited_stays_in_its_future) {
  bool sibling_finished = false;
  int seen = 0;
  const int value = co_await weir::with_scope({.failure = weir::failure::isolate},
                                              [&](weir::scope& s) -> weir::task<int> {
                                                auto failing = s.spawn(fails_after(5ms, 3));
                                                s.spawn([&]() -> weir::task<> {
                                                  co_await weir::sleep(20ms);
                                                  sibling_finished = true;
                                                });
                                                try {
                                                  co_await failing;
                                                } catch (const boom& e) {
                                                  seen = e.n;
                                                }
                                                co_return 11;
                                              });
  EXPECT_EQ(value, 11);
  EXPECT_EQ(seen, 3);
  EXPECT_TRUE(sibling_finished);
}

// The failure of a fiber that nobody awaits is not lost.
FIBER_TEST_IN_EVERY_ORDER(scope_failure,
                          an_isolated_failure_that_nobody_awaited_is_raised_at_the_end) {
  bool body_finished = false;
  auto ended = co_await weir::settle(
      weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> weir::task<> {
        s.spawn(fails_after(5ms, 6));
        auto awaited = s.spawn(fails_after(1ms, 7));
        try {
          co_await awaited;
        } catch (const boom&) {
        }
        co_await weir::sleep(50ms);
        body_finished = true;
      }));
  EXPECT_TRUE(body_finished);
  EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 6);
  EXPECT_TRUE(ended.suppressed().empty());
}
FIBER_TEST_IN_EVERY_ORDER(
    scope_failure, errors_first_rethrows_the_first_error_unwrapped_and_suppresses_later_ones) {
  text_log events;
  auto observer =
      weir::on_event([&](const weir::event_info& event) { events.emplace_back(event.name); });
  auto ended = co_await weir::settle(weir::with_scope({.failure = weir::failure::wait_for_all},
                                                      [](weir::scope& s) -> weir::task<> {
                                                        s.spawn(fails_after(10ms, 2));
                                                        s.spawn(fails_after(5ms, 1));
                                                        s.spawn(fails_after(15ms, 3));
                                                        co_return;
                                                      }));
  EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 1);
  EXPECT_EQ(booms_of(ended.suppressed()), (std::vector<int>{2, 3}));
  EXPECT_EQ(counted(events, "suppressed"), 2);
}
FIBER_TEST_IN_EVERY_ORDER(scope_failure,
                          an_error_of_a_sibling_that_is_being_cancelled_is_suppressed) {
  auto ended = co_await weir::settle(weir::with_scope([](weir::scope& s) -> weir::task<> {
    s.spawn(fails_when_stopped(15ms, 2));
    s.spawn(fails_after(5ms, 1));
    co_return;
  }));
  EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 1);
  EXPECT_EQ(booms_of(ended.suppressed()), std::vector<int>{2});
}

// Exactly [e], neither nested nor duplicated: the cancelled sibling is no failure.
TEST(scope_failure, errors_all_makes_a_group_of_one_for_one_failure) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(
          weir::with_scope({.errors = weir::errors::all}, [&](weir::scope& s) -> weir::task<> {
            s.spawn(fails_after(5ms, 1));
            s.spawn(park(log, "sibling"));
            co_await s.join();
          }));
      EXPECT_TRUE(ended.is_error());
      EXPECT_EQ(group_of(ended.error()), std::vector<int>{1});
      EXPECT_EQ(code_of(ended.error()), weir::errc::group);
    });
    EXPECT_EQ(joined(log), "sibling");
  });
}
FIBER_TEST_IN_EVERY_ORDER(scope_failure,
                          errors_all_lists_body_and_children_in_the_order_of_their_ends) {
  auto ended = co_await weir::settle(
      weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                       [](weir::scope& s) -> weir::task<> {
                         s.spawn(fails_after(20ms, 3));
                         s.spawn(fails_after(5ms, 1));
                         s.spawn(sleep_for(30ms));
                         co_await weir::sleep(10ms);
                         throw boom(2);
                       }));
  EXPECT_TRUE(ended.is_error());
  EXPECT_EQ(group_of(ended.error()), (std::vector<int>{1, 2, 3}));
}

// The body's error comes first because it caused the cancellation.
FIBER_TEST_IN_EVERY_ORDER(scope_failure,
                          errors_all_keeps_what_failed_while_it_was_being_cancelled) {
  auto ended = co_await weir::settle(
      weir::with_scope({.errors = weir::errors::all}, [](weir::scope& s) -> weir::task<> {
        s.spawn(fails_when_stopped(15ms, 2));
        co_await weir::sleep(5ms);
        throw boom(1);
      }));
  EXPECT_TRUE(ended.is_error());
  EXPECT_EQ(group_of(ended.error()), (std::vector<int>{1, 2}));
}

// An error after the scope's own cancel() is that error.
FIBER_TEST_IN_EVERY_ORDER(scope_failure,
                          a_child_that_fails_after_the_scope_was_cancelled_gives_its_error) {
  auto ended = co_await weir::settle(weir::with_scope([](weir::scope& s) -> weir::task<> {
    s.spawn(fails_when_stopped(15ms, 2));
    co_await weir::sleep(5ms);
    s.cancel("stop");
    co_await weir::sleep(1h);
  }));
  EXPECT_EQ(ended.is_error() ? boom_of(ended.error()) : 0, 2);
}

FIBER_TEST_IN_EVERY_ORDER(scope_failure,
                          all_children_failing_in_one_instant_are_each_reported_once) {
  auto ended = co_await weir::settle(
      weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                       [](weir::scope& s) -> weir::task<> {
                         for (int i = 1; i <= 5; ++i) s.spawn(fails_after(5ms, i));
                         co_return;
                       }));
  EXPECT_TRUE(ended.is_error());
  auto numbers = group_of(ended.error());
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3, 4, 5}));
}

// An op that lets a cancelled_error escape ended with an error, not cancelled.
TEST(scope_failure, an_escaping_cancelled_error_fails_the_scope_like_any_error) {
  for_each_order([](weir::sim::world& w) {
    std::optional<weir::future<void>> waiting;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto stopped = s.spawn(sleep_for(1h));
        waiting = s.spawn([&]() -> weir::task<> { co_await stopped; });
        co_await weir::sleep(1ms);
        stopped.cancel("only this one");
        co_await weir::sleep(1h);
      }));
      EXPECT_TRUE(ended.is_error() && holds<weir::cancelled_error>(ended.error()));
    });
    ASSERT_NE(waiting->peek(), nullptr);
    EXPECT_TRUE(waiting->peek()->is_error());
  });
}
