// SPDX-License-Identifier: MIT
// Who wakes whom in a pool, in every order that the adversary finds: no wake-up is lost, no answer
// comes twice, and a job is taken back or starts, not both.
#include <array>
#include <vector>

#include "pool_support.hpp"

using namespace weir_test;

namespace {

task<> sleeps_10ms() { co_await weir::sleep(10ms); }

/// How a run ended: each of these counts one of its ends.
struct ends {
  int values = 0;
  int gone = 0;
  int cancelled = 0;
  int refused = 0;
  int sum() const noexcept { return values + gone + cancelled + refused; }
  void add(const weir::outcome<int>& how) {
    values += how.is_value() ? 1 : 0;
    cancelled += how.is_cancelled() ? 1 : 0;
    if (!how.is_error()) return;
    cancelled += holds<weir::cancelled_error>(how.error()) ? 1 : 0;
    gone += code_of(how.error()) == errc::loop_gone ? 1 : 0;
    refused += code_of(how.error()) == errc::pool_closed ? 1 : 0;
  }
};

}  // namespace

// ------------------------------------------------------------------ wake-ups

SCOPE_TEST_IN_EVERY_ORDER(pool_wake, a_burst_keeps_every_worker_busy) {
  weir::pool p(s, sized(3, 6));
  co_await settled();  // all are idle
  const auto start = weir::now();
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(p.try_submit(sleeps_10ms));
  co_await p.close();
  EXPECT_EQ(ms_since(start), 30);
}

SCOPE_TEST_IN_EVERY_ORDER(pool_wake,
                          workers_that_have_just_ended_a_job_and_idle_ones_share_a_burst) {
  weir::pool p(s, sized(2, 8));
  EXPECT_FALSE(p.try_submit([] {}));  // may or may not have ended when the others come
  co_await weir::yield();
  const auto start = weir::now();
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(p.try_submit(sleeps_10ms));
    co_await weir::yield();
  }
  co_await p.close();
  EXPECT_EQ(ms_since(start), 20);
}

SCOPE_TEST_IN_EVERY_ORDER(pool_wake, jobs_of_two_loops_wake_enough_workers) {
  weir::pool p(s, sized(2, 8));
  const weir::loop_thread other(s, {.name = "other"});
  const auto start = weir::now();
  auto submit = [&]() -> task<> {
    for (int i = 0; i < 3; ++i) {
      co_await p.submit(sleeps_10ms);
      co_await weir::yield();
    }
  };
  auto there = s.spawn_on(other, submit);
  co_await submit();
  co_await there;
  co_await p.close();
  EXPECT_EQ(ms_since(start), 30);
}

SCOPE_TEST_IN_EVERY_ORDER(pool_wake,
                          a_job_that_submits_another_does_not_run_it_itself_while_others_idle) {
  weir::pool p(s, sized(2, 2));
  co_await settled();
  const auto start = weir::now();
  EXPECT_FALSE(p.try_submit([&]() -> task<> {
    EXPECT_FALSE(p.try_submit(sleeps_10ms));
    co_await weir::sleep(10ms);
  }));
  co_await weir::sleep(1ms);
  co_await p.close();
  EXPECT_EQ(ms_since(start), 10);
}

// ------------------------------------------------------------------ crashes

TEST(pool_wake, a_worker_that_crashes_in_any_phase_passes_its_duty_on) {
  for (const char* const victim : {"p-0", "p-1"}) {
    for (int moment = 0; moment < 8; ++moment) {
      for_each_order([&](weir::sim::world& w) {
        w.run([&]() -> task<> {
          co_await weir::with_scope([&](weir::scope& s) -> task<> {
            weir::pool p(s, sized(2, 4));
            co_await settled();
            ends seen;
            auto caller = [&]() -> task<> {
              seen.add(co_await weir::settle(p.run([] { return 1; })));
            };
            for (int i = 0; i < 3; ++i) s.spawn(caller);
            for (int i = 0; i < moment; ++i) co_await weir::yield();
            w.crash(victim);
            co_await s.idle();
            EXPECT_EQ(seen.values + seen.gone, 3);
            EXPECT_LE(seen.gone, 1);  // only a job that the lost worker ran
            EXPECT_EQ(co_await p.run([] { return 2; }), 2);
          });
        });
      });
    }
  }
}

TEST(pool_wake, when_the_last_worker_crashes_each_caller_is_answered_once) {
  for (int moment = 0; moment < 10; ++moment) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          weir::pool p(s, sized(1, 1));
          ends seen;
          auto caller = [&]() -> task<> {
            seen.add(co_await weir::settle(p.run([] { return 1; })));
          };
          for (int i = 0; i < 4; ++i) s.spawn(caller);
          for (int i = 0; i < moment; ++i) co_await weir::yield();
          w.crash("p-0");
          co_await s.idle();
          EXPECT_EQ(seen.values + seen.gone, 4);
          EXPECT_EQ(p.try_submit([] {}), errc::loop_gone);
        });
      });
    });
  }
}

// ------------------------------------------------------------------ taking back

SCOPE_TEST_IN_EVERY_ORDER(pool_wake, a_run_is_taken_back_or_runs_and_its_place_is_free_afterwards) {
  weir::pool p(s, sized(1, 1));
  int ran = 0;
  ends seen;
  for (int moment = 0; moment < 6; ++moment) {
    const int before = ran;
    auto caller = s.spawn(p.run([&] { return ++ran; }));
    for (int i = 0; i < moment; ++i) co_await weir::yield();
    caller.cancel();
    const auto how = co_await weir::settle(caller);
    seen.add(how);
    if (how.is_value()) {
      EXPECT_EQ(ran, before + 1);
    }
    EXPECT_LE(ran, before + 1);
    EXPECT_EQ(co_await p.run([] { return 3; }), 3);
    EXPECT_FALSE(p.try_submit([] {}));
    co_await p.run([] {});  // first come, first served: that one has begun
  }
  EXPECT_EQ(seen.sum(), 6);
  co_await p.close();
}

SCOPE_TEST_IN_EVERY_ORDER(pool_wake,
                          a_place_that_a_cancelled_run_gives_up_goes_to_the_next_in_line) {
  weir::pool p(s, sized(1, 1));
  EXPECT_FALSE(p.try_submit(sleeps_10ms));
  co_await settled();
  auto queued = s.spawn(p.run([] { return 1; }));
  co_await settled();
  bool accepted = false;
  int ran = 0;
  s.spawn([&]() -> task<> {
    co_await p.submit([&] { ++ran; });
    accepted = true;
  });
  co_await settled();
  EXPECT_FALSE(accepted);
  queued.cancel();
  EXPECT_TRUE((co_await weir::settle(queued)).is_cancelled());
  co_await settled();
  EXPECT_TRUE(accepted);
  co_await p.close();
  EXPECT_EQ(ran, 1);
}

SCOPE_TEST_IN_EVERY_ORDER(pool_wake, after_a_run_there_is_room) {
  weir::pool p(s, sized(1, 1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(co_await p.run([] { return 1; }), 1);
    EXPECT_FALSE(p.try_submit([] {}));
    EXPECT_FALSE(p.try_submit([] {}));
    co_await weir::sleep(1ms);
  }
  co_await p.close();
}

// ------------------------------------------------------------------ ends

SCOPE_TEST_IN_EVERY_ORDER(pool_wake, cancel_and_the_end_of_a_job_give_one_answer) {
  weir::pool p(s, sized(2, 2));
  ends seen;
  auto caller = [&](bool waits) -> task<> {
    auto job = [waits]() -> task<int> {
      if (waits) co_await weir::yield();
      co_return 1;
    };
    seen.add(co_await weir::settle(p.run(job)));
  };
  for (int i = 0; i < 6; ++i) s.spawn(caller(i % 2 == 0));
  for (int i = 0; i < 3; ++i) co_await weir::yield();
  p.cancel();
  co_await p.close();
  co_await s.idle();
  EXPECT_EQ(seen.sum(), 6);
  EXPECT_EQ(seen.gone, 0);
}

SCOPE_TEST_IN_EVERY_ORDER(pool_wake,
                          a_submit_that_close_races_with_is_accepted_and_runs_or_is_refused) {
  weir::pool p(s, sized(1, 1));
  int ran = 0;
  int accepted = 0;
  int refused = 0;
  auto submitter = [&]() -> task<> {
    auto job = [&] { ++ran; };
    const auto how = co_await weir::settle(p.submit(job));
    accepted += how.is_value() ? 1 : 0;
    refused += how.is_error() && code_of(how.error()) == errc::pool_closed ? 1 : 0;
  };
  for (int i = 0; i < 5; ++i) s.spawn(submitter);
  for (int i = 0; i < 4; ++i) co_await weir::yield();
  co_await p.close();
  co_await s.idle();
  EXPECT_EQ(accepted + refused, 5);
  EXPECT_EQ(ran, accepted);
}

SCOPE_TEST_IN_EVERY_ORDER(pool_wake, submits_and_runs_that_wait_for_room_get_it_in_their_order) {
  weir::pool p(s, sized(1, 1));
  std::vector<int> began;
  EXPECT_FALSE(p.try_submit(sleeps_10ms));
  EXPECT_FALSE(p.try_submit(sleeps_10ms));
  co_await settled();
  for (int i = 0; i < 6; ++i) {
    auto job = [&, i] { began.push_back(i); };
    if (i % 2 == 0) {
      s.spawn(p.run(job));
    } else {
      s.spawn(p.submit(job));
    }
    co_await settled();
  }
  co_await s.idle();
  co_await p.close();
  EXPECT_EQ(began, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

// ------------------------------------------------------------------ plain callables

SCOPE_TEST_IN_EVERY_ORDER(pool_wake, a_plain_callable_may_leave_defers_whose_errors_are_its_own) {
  weir::pool p(s, sized(1, 1));
  text_log log;
  auto job = [&] {
    weir::this_context().defer([&]() -> task<> {
      co_await weir::sleep(5ms);
      log.push_back("deferred");
      throw boom(3);
    });
    log.push_back("called");
    return 1;
  };
  const auto how = co_await weir::settle(p.run(job));
  EXPECT_TRUE(how.is_error());
  EXPECT_EQ(boom_of(how.error()), 3);
  EXPECT_EQ(joined(log), "called,deferred");
  EXPECT_EQ(co_await p.run([] { return 4; }), 4);
}
