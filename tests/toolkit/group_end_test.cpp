// SPDX-License-Identifier: MIT
// Groups: how with_group ends when the body returns, throws or is cancelled.
#include <sstream>

#include "toolkit_support.hpp"

using namespace weir_test;
using weir::group;

FIBER_TEST_IN_EVERY_ORDER(group_end, a_body_that_returns_without_wait_waits_for_the_jobs) {
  const auto start = weir::now();
  const int value = co_await weir::with_group([](group& g) -> task<int> {
    g.go(weir::sleep(30ms));
    co_return 6;
  });
  EXPECT_EQ(value, 6);
  EXPECT_EQ(ms_since(start), 30);
}

FIBER_TEST_IN_EVERY_ORDER(group_end, without_wait_the_first_error_comes_out_instead_of_the_value) {
  const auto start = weir::now();
  text_log log;
  auto out = co_await weir::settle(weir::with_group([&](group& g) -> task<int> {
    g.go(fail_after(5ms, 3));
    g.go(park(log, "sibling"));
    co_return 6;
  }));
  EXPECT_EQ(boom_of(out.error()), 3);
  EXPECT_TRUE(out.suppressed().empty());
  EXPECT_EQ(ms_since(start), 5);
  EXPECT_EQ(joined(log), "sibling");
}

FIBER_TEST_IN_EVERY_ORDER(group_end, an_error_caught_at_wait_is_not_raised_again) {
  auto out = co_await weir::settle(weir::with_group([](group& g) -> task<int> {
    g.go(fail_after(1ms, 3));
    const int caught = boom_of(co_await error_of(g.wait()));
    co_return caught;
  }));
  EXPECT_TRUE(out.is_value() && out.value() == 3);
  EXPECT_TRUE(out.suppressed().empty());
}

FIBER_TEST_IN_EVERY_ORDER(group_end, an_error_that_passes_through_the_body_comes_out_once) {
  auto out = co_await weir::settle(weir::with_group([](group& g) -> task<> {
    g.go(fail_after(1ms, 3));
    co_await g.wait();
  }));
  EXPECT_EQ(boom_of(out.error()), 3);
  EXPECT_TRUE(out.suppressed().empty());
}

FIBER_TEST_IN_EVERY_ORDER(group_end, a_body_that_throws_cancels_and_joins_the_jobs) {
  const auto start = weir::now();
  text_log log;
  auto out = co_await weir::settle(weir::with_group([&](group& g) -> task<int> {
    g.go(slow_to_stop(log, "job"));
    co_await weir::sleep(10ms);
    throw boom(9);
  }));
  EXPECT_EQ(boom_of(out.error()), 9);
  EXPECT_EQ(joined(log), "job stopped");
  EXPECT_EQ(ms_since(start), 40);
}

FIBER_TEST_IN_EVERY_ORDER(group_end, the_error_of_a_body_suppresses_the_stored_one_of_a_job) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  auto out = co_await weir::settle(weir::with_group([](group& g) -> task<> {
    g.go(fail_after(1ms, 1));
    co_await weir::sleep(10ms);
    throw boom(2);
  }));
  EXPECT_EQ(boom_of(out.error()), 2);
  EXPECT_EQ(booms_of(out.suppressed()), (std::vector<int>{1}));
  EXPECT_EQ(counted(events, "suppressed"), 1);
}

FIBER_TEST_IN_EVERY_ORDER(group_end, a_job_that_fails_because_the_body_threw_is_suppressed_too) {
  auto out = co_await weir::settle(weir::with_group([](group& g) -> task<> {
    g.go(weir::shield(fail_after(20ms, 1)));
    co_await weir::sleep(10ms);
    throw boom(2);
  }));
  EXPECT_EQ(boom_of(out.error()), 2);
  EXPECT_EQ(booms_of(out.suppressed()), (std::vector<int>{1}));
}

TEST(group_end, in_a_defer_of_the_body_no_job_is_accepted_any_more) {
  for (bool throws : {false, true}) {
    in_order([throws]() -> task<> {
      std::error_code refused;
      text_log events;
      auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
      auto out = co_await weir::settle(weir::with_group([&](group& g) -> task<> {
        weir::this_context().defer(
            [&refused, &g] { refused = code_thrown_by([&] { g.go(weir::sleep(1ms)); }); });
        if (throws) throw boom(2);
        co_return;
      }));
      EXPECT_EQ(out.is_error(), throws);
      EXPECT_EQ(refused, throws ? std::error_code() : make_error_code(errc::group_waiting));
      EXPECT_EQ(counted(events, "job_dropped"), throws ? 1 : 0);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(group_end,
                          a_job_that_starts_another_after_the_body_threw_has_it_dropped) {
  bool ran = false;
  auto late = [&]() -> task<> {
    ran = true;
    co_return;
  };
  auto out = co_await weir::settle(weir::with_group([&](group& g) -> task<> {
    auto starter = [&late, &g]() -> task<> {
      co_await weir::shield(weir::sleep(10ms));
      g.go(late);
    };
    g.go(starter);
    co_await weir::sleep(1ms);
    throw boom(2);
  }));
  EXPECT_EQ(boom_of(out.error()), 2);
  EXPECT_FALSE(ran);
}

// ------------------------------------------------------------------ a cancelled caller

FIBER_TEST_IN_EVERY_ORDER(group_end, a_cancelled_caller_unwinds_the_jobs_first_and_the_body_last) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto caller = s.spawn(weir::with_group([&](group& g) -> task<> {
      end_note body(log, "body");
      g.go(park(log, "job"));
      g.go(slow_to_stop(log, "slow"));
      co_await g.wait();
      log.push_back("WENT ON");
    }));
    co_await weir::sleep(1ms);
    caller.cancel("enough");
    (void)co_await error_of(caller.take());
    EXPECT_TRUE(caller.peek()->is_cancelled());  // no error of the group
  });
  EXPECT_EQ(joined(log), "job,slow stopped,body");
}

FIBER_TEST_IN_EVERY_ORDER(group_end,
                          a_cancellation_of_the_caller_alone_is_no_error_for_who_still_waits) {
  bool returned = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto caller = s.spawn(weir::with_group([&](group& g) -> task<> {
      g.go(sleep_for(1h));
      co_await weir::shield(g.wait());
      returned = true;
      EXPECT_TRUE(g.errors().empty());
    }));
    co_await weir::sleep(1ms);
    caller.cancel();
    (void)co_await error_of(caller.take());
  });
  EXPECT_TRUE(returned);
}

FIBER_TEST_IN_EVERY_ORDER(group_end,
                          jobs_that_end_well_although_their_caller_is_cancelled_are_no_error) {
  int finished = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto caller = s.spawn(weir::with_group([&](group& g) -> task<> {
      for (int i = 0; i < 3; ++i) {
        g.go([&]() -> task<> {
          co_await weir::shield(weir::sleep(10ms));
          ++finished;
        });
      }
      co_await g.wait();
    }));
    co_await weir::sleep(1ms);
    caller.cancel();
    (void)co_await error_of(caller.take());
    EXPECT_TRUE(caller.peek()->is_cancelled());
  });
  EXPECT_EQ(finished, 3);
}

FIBER_TEST_IN_EVERY_ORDER(group_end, a_job_started_on_a_cancelled_group_never_runs) {
  bool ran = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto caller = s.spawn(weir::with_group([&](group& g) -> task<> {
      co_await weir::shield(weir::sleep(10ms));
      g.go([&]() -> task<> {
        ran = true;
        co_return;
      });
      co_await g.wait();
    }));
    co_await weir::sleep(1ms);
    caller.cancel();
    (void)co_await error_of(caller.take());
  });
  EXPECT_FALSE(ran);
}

TEST(group_end, an_error_from_before_the_cancellation_is_thrown_and_a_later_one_suppressed) {
  for (bool before : {true, false}) {
    in_every_order([before]() -> task<> {
      int caught = 0;
      bool went_on = false;
      text_log events;
      auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto run_group = [&]() -> task<> {
          auto body = [&](group& g) -> task<> {
            g.go(weir::shield(fail_after(before ? 5ms : 20ms, 3)));
            g.go(weir::shield(weir::sleep(30ms)));
            co_return;
          };
          try {
            co_await weir::with_group(body);
          } catch (const boom& e) {
            caught = e.n;
          }
          co_await weir::checkpoint();
          went_on = true;
        };
        auto caller = s.spawn(run_group);
        co_await weir::sleep(10ms);
        caller.cancel();
        (void)co_await error_of(caller.take());
        EXPECT_TRUE(caller.peek()->is_cancelled());
      });
      EXPECT_EQ(caught, before ? 3 : 0);
      EXPECT_EQ(counted(events, "suppressed"), before ? 0 : 1);
      EXPECT_FALSE(went_on);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(group_end,
                          a_time_limit_around_a_group_is_a_timeout_and_no_error_of_a_job) {
  text_log log;
  auto run_group = [&] {
    return weir::with_group([&](group& g) -> task<> {
      g.go(park(log, "job"));
      co_await g.wait();
    });
  };
  const auto error = co_await error_of(weir::with_timeout(5ms, run_group));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(joined(log), "job");
}

// ------------------------------------------------------------------ jobs

FIBER_TEST_IN_EVERY_ORDER(group_jobs, a_job_may_start_others) {
  int ran = 0;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([&]() -> task<> {
      for (int i = 0; i < 3; ++i) {
        g.go([&]() -> task<> {
          co_await weir::yield();
          ++ran;
        });
      }
      co_return;
    });
    co_await weir::sleep(1ms);
    co_await g.wait();
  });
  EXPECT_EQ(ran, 3);
}

FIBER_TEST_IN_EVERY_ORDER(group_jobs,
                          a_callable_that_throws_before_it_makes_a_task_is_a_failed_job) {
  auto broken = []() -> task<> { throw boom(3); };
  auto thrower = [&](bool yes) -> task<> {
    if (yes) throw boom(4);
    return broken();
  };
  int caught = 0;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([&] { return thrower(true); });
    caught = boom_of(co_await error_of(g.wait()));
  });
  EXPECT_EQ(caught, 4);
}

FIBER_TEST_IN_EVERY_ORDER(group_jobs, a_cancelled_error_that_escapes_is_an_error_like_any_other) {
  std::exception_ptr caught;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([]() -> task<> { throw weir::cancelled_error(weir::cancel_reason()); });
    caught = co_await error_of(g.wait());
  });
  EXPECT_TRUE(holds<weir::cancelled_error>(caught));
}

FIBER_TEST_IN_EVERY_ORDER(group_jobs, a_failing_defer_of_a_job_fails_the_job) {
  int caught = 0;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([](weir::context& c) -> task<> {
      c.defer([] { throw boom(8); });
      co_return;
    });
    caught = boom_of(co_await error_of(g.wait()));
  });
  EXPECT_EQ(caught, 8);
}

FIBER_TEST_IN_EVERY_ORDER(group_jobs, what_the_body_defers_runs_after_the_last_job) {
  text_log log;
  co_await weir::with_group([&](group& g) -> task<> {
    weir::this_context().defer([&] { log.push_back("defer"); });
    g.go([&]() -> task<> {
      end_note job(log, "job");
      co_await weir::sleep(5ms);
    });
    co_return;
  });
  EXPECT_EQ(joined(log), "job,defer");
}

FIBER_TEST(group_jobs, a_finished_job_is_released_while_the_group_is_open) {
  auto token = std::make_shared<int>(1);
  co_await weir::with_group([&](group& g) -> task<> {
    const long before = live_fibers();
    for (int i = 0; i < 100; ++i) {
      g.go([token]() -> task<> { co_await weir::sleep(1ms); });
    }
    EXPECT_EQ(token.use_count(), 101);
    EXPECT_EQ(live_fibers(), before + 100);
    co_await weir::sleep(2ms);
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_EQ(live_fibers(), before);
    co_await g.wait();
  });
}

FIBER_TEST(group_jobs, siblings_that_outlive_the_grace_are_named) {
  text_log overdue;
  auto sub = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "cancel_overdue") overdue.emplace_back(e.object);
  });
  co_await weir::with_group([&](group& g) -> task<> {
    g.go(weir::shield(weir::sleep(1h)), {.name = "stubborn"});
    g.go(fail_after(1ms, 1));
    (void)co_await error_of(g.wait());
  });
  EXPECT_EQ(joined(overdue), "stubborn");
}

FIBER_TEST(group_jobs, a_dump_shows_the_group_its_jobs_and_who_waits_for_them) {
  std::ostringstream out;
  co_await weir::with_group({.name = "fetchers"}, [&](group& g) -> task<> {
    g.go(weir::sleep(10ms), {.name = "page"});
    g.go([&]() -> task<> {
      co_await weir::sleep(1ms);
      weir::dump(out);
    });
    co_await g.wait();
  });
  EXPECT_TRUE(contains(out.str(), "scope 'fetchers'")) << out.str();
  EXPECT_TRUE(contains(out.str(), "fiber 'page'")) << out.str();
  EXPECT_TRUE(contains(out.str(), "jobs of group 'fetchers'")) << out.str();
}
