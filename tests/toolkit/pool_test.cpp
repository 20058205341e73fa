// SPDX-License-Identifier: MIT
// Pools in a simulation: limits, admission, results, and every way in which one ends.
#include <functional>
#include <memory>
#include <optional>

#include "pool_support.hpp"

using namespace weir_test;

namespace {

weir::local<int> tag_of_submitter(0);

/// A job: logs its name when it starts, and takes a while.
auto working(text_log& log, std::string name, weir::duration d = 10ms) {
  return [&log, name, d]() -> task<> {
    log.push_back(name);
    co_await weir::sleep(d);
  };
}

/// Submits a job as a fiber of its own and logs when it was accepted.
task<> submitter(weir::pool& p, text_log& log, std::string name) {
  auto job = working(log, name);
  co_await p.submit(std::move(job));
  log.push_back(name + " in");
}

}  // namespace

TEST(pool, workers_and_queue_size_must_be_positive_and_the_error_names_which) {
  in_order([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (std::int64_t bad : {0, -3}) {
        auto no_workers = thrown_by([&] { weir::pool p(s, sized(bad, 1)); });
        EXPECT_EQ(code_of(no_workers), errc::invalid_argument);
        EXPECT_TRUE(contains(what_of(no_workers), "workers")) << what_of(no_workers);
        EXPECT_TRUE(contains(what_of(no_workers), "'p'")) << what_of(no_workers);
        auto no_queue = thrown_by([&] { weir::pool p(s, sized(1, bad)); });
        EXPECT_EQ(code_of(no_queue), errc::invalid_argument);
        EXPECT_TRUE(contains(what_of(no_queue), "queue_size")) << what_of(no_queue);
        auto neither = thrown_by([&] { weir::pool p(s, sized(bad, bad)); });
        EXPECT_TRUE(contains(what_of(neither), "workers")) << what_of(neither);
      }
      EXPECT_EQ(weir::live().loops, 1U);
      co_return;
    });
  });
  EXPECT_EQ(weir::pool_options{}.queue_size, 128);
  EXPECT_GE(weir::pool_options{}.workers, 1);
}

TEST(pool, at_most_workers_jobs_run_and_a_suspended_one_occupies_its_worker) {
  in_every_order(pooled(2, 4, [](weir::scope&, weir::pool& p) -> task<> {
    int inside = 0;
    int most = 0;
    int done = 0;
    auto job = [&]() -> task<> {
      most = std::max(most, ++inside);
      co_await weir::sleep(10ms);
      --inside;
      ++done;
    };
    const auto start = weir::now();
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(p.try_submit(job));
    co_await settled();
    EXPECT_EQ(inside, 2);
    co_await p.close();
    EXPECT_EQ(most, 2);
    EXPECT_EQ(done, 4);
    EXPECT_EQ(ms_since(start), 20);
  }));
}

TEST(pool, at_most_workers_and_queue_size_are_accepted_and_unfinished) {
  in_every_order(pooled(2, 3, [](weir::scope&, weir::pool& p) -> task<> {
    text_log log;
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(p.try_submit(working(log, "a")));
    EXPECT_EQ(p.try_submit(working(log, "b")), errc::pool_full);
    co_await settled();
    EXPECT_EQ(p.try_submit(working(log, "b")), errc::pool_full);
    co_await weir::sleep(10ms);  // two have ended
    EXPECT_FALSE(p.try_submit(working(log, "c")));
    EXPECT_FALSE(p.try_submit(working(log, "c")));
    EXPECT_EQ(p.try_submit(working(log, "b")), errc::pool_full);
    co_await p.close();
    EXPECT_EQ(counted(log, "a") + counted(log, "c"), 7);
    EXPECT_EQ(counted(log, "b"), 0);
  }));
}

TEST(pool, an_empty_job_is_refused_before_a_closed_pool_before_a_full_one) {
  in_every_order(pooled(1, 1, [](weir::scope&, weir::pool& p) -> task<> {
    text_log log;
    callable none;
    function_pointer null = nullptr;
    std::function<int()> plain;
    auto job = working(log, "a");
    auto refused = [&](std::error_code code) -> task<> {
      EXPECT_EQ(p.try_submit(none), code);
      EXPECT_EQ(p.try_submit(null), code);
      EXPECT_EQ(p.try_submit(plain), code);
      EXPECT_EQ(code_of(co_await attempt([&] { return p.submit(none); })), code);
      EXPECT_EQ(code_of(co_await attempt([&] { return p.submit_for(1h, plain); })), code);
      EXPECT_EQ(code_of(co_await attempt([&] { return p.run(plain); })), code);
    };
    co_await refused(errc::empty_job);
    EXPECT_FALSE(p.try_submit(job));
    EXPECT_FALSE(p.try_submit(job));
    EXPECT_EQ(p.try_submit(job), errc::pool_full);
    co_await refused(errc::empty_job);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto closing = s.spawn([&] { return p.close(); });
      co_await weir::yield();
      co_await settled();
      EXPECT_TRUE(p.closed());
      co_await refused(errc::empty_job);
      EXPECT_EQ(p.try_submit(job), errc::pool_closed);  // and full
      EXPECT_EQ(code_of(co_await attempt([&] { return p.submit(job); })), errc::pool_closed);
      EXPECT_EQ(code_of(co_await attempt([&] { return p.submit_for(1h, job); })),
                errc::pool_closed);
      auto late = co_await attempt([&] { return p.run(job); });
      EXPECT_EQ(code_of(late), errc::pool_closed);
      EXPECT_TRUE(contains(what_of(late), "'p'")) << what_of(late);
      co_await closing;
    });
    EXPECT_EQ(p.try_submit(job), errc::pool_closed);
    EXPECT_EQ(joined(log), "a,a");
  }));
}

TEST(pool, jobs_start_in_the_order_in_which_they_were_accepted_however_they_came) {
  in_every_order(pooled(1, 2, [](weir::scope& s, weir::pool& p) -> task<> {
    std::vector<int> started;
    int accepted = 0;
    auto numbered = [&](int n) {
      return [&started, n]() -> task<> {
        started.push_back(n);
        co_await weir::sleep(1ms);
      };
    };
    // One fiber at a time enters, so the order of entering is the order of the numbers.
    for (int round = 0; round < 4; ++round) {
      auto first = numbered(accepted++);
      if (p.try_submit(first)) co_await p.submit(first);
      auto second = s.spawn([&, job = numbered(accepted++)] { return p.run(job); });
      co_await settled();
      auto third = numbered(accepted++);
      co_await p.submit(third);
      co_await second;
    }
    co_await p.close();
    EXPECT_EQ(started.size(), 12U);
    EXPECT_TRUE(std::is_sorted(started.begin(), started.end()));
  }));
}

TEST(pool, with_several_workers_each_takes_the_job_that_was_queued_earliest) {
  std::vector<int> started;
  auto program = pooled(3, 20, [&](weir::scope&, weir::pool& p) -> task<> {
    started.clear();
    for (int i = 0; i < 15; ++i)
      EXPECT_FALSE(p.try_submit([&started, i]() -> task<> {
        started.push_back(i);
        co_await weir::sleep(1ms * (1 + i % 3));
      }));
    co_await p.close();
    EXPECT_EQ(started.size(), 15U);
    // Of what was taken, at most what the other two workers took has not been started.
    std::vector<int> before;
    for (const int job : started) {
      const auto earlier =
          std::count_if(before.begin(), before.end(), [&](int b) { return b < job; });
      EXPECT_LE(job - earlier, 2);
      before.push_back(job);
    }
  });
  in_order(program);
  EXPECT_TRUE(std::is_sorted(started.begin(), started.end()));
  in_every_order(program);
}

TEST(pool, submit_waits_for_room_first_come_first_served_and_one_is_woken_per_place) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    text_log log;
    EXPECT_FALSE(p.try_submit(working(log, "x")));
    EXPECT_FALSE(p.try_submit(working(log, "y")));
    co_await settled();
    std::vector<int> in;
    for (int i = 0; i < 8; ++i) {
      s.spawn([&, i]() -> task<> {
        auto job = working(log, std::to_string(i));
        co_await p.submit(std::move(job));
        in.push_back(i);
      });
      co_await settled();
    }
    EXPECT_TRUE(in.empty());
    for (std::size_t i = 1; i <= 8; ++i) {
      co_await weir::sleep(10ms);
      EXPECT_EQ(in.size(), i);  // one job has ended, one was accepted
    }
    EXPECT_TRUE(std::is_sorted(in.begin(), in.end()));
    co_await p.close();
    EXPECT_EQ(joined(log), "x,y,0,1,2,3,4,5,6,7");
  }));
}

TEST(pool, nobody_overtakes_a_waiting_submitter) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    text_log log;
    EXPECT_FALSE(p.try_submit(working(log, "x")));
    EXPECT_FALSE(p.try_submit(working(log, "y")));
    co_await settled();
    auto waiting = s.spawn(submitter(p, log, "w"));
    co_await settled();
    // Whenever the place becomes free, it belongs to the one that waits.
    while (!waiting.done()) {
      const bool accepted = !p.try_submit(working(log, "barger"));
      EXPECT_FALSE(accepted && counted(log, "w in") == 0);
      co_await weir::sleep(1ms);
    }
    co_await p.close();
    EXPECT_LT(std::find(log.begin(), log.end(), "w"), std::find(log.begin(), log.end(), "barger"));
  }));
}

TEST(pool, a_submit_that_times_out_leaves_nothing_behind) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    text_log log;
    auto token = std::make_shared<int>(0);
    EXPECT_FALSE(p.try_submit(working(log, "x", 100ms)));
    EXPECT_FALSE(p.try_submit(working(log, "y")));
    const auto start = weir::now();
    auto job = [&log, token] { log.push_back("LATE"); };
    auto limited = [&] { return p.submit_for(20ms, job); };
    auto first = s.spawn(attempt(limited));
    co_await settled();
    auto second = s.spawn(submitter(p, log, "z"));
    EXPECT_TRUE(holds<weir::timeout_error>(co_await first));
    EXPECT_EQ(ms_since(start), 20);
    EXPECT_EQ(token.use_count(), 2);  // ours and the one in `job`
    co_await second;
    EXPECT_EQ(ms_since(start), 100);
    auto in_time = [&] { return p.submit_for(1h, working(log, "q")); };
    EXPECT_FALSE(co_await attempt(in_time));
    co_await p.close();
    EXPECT_EQ(counted(log, "LATE"), 0);
    std::erase(log, "z in");  // which comes before or after y
    EXPECT_EQ(joined(log), "x,y,z,q");
  }));
}

TEST(pool, a_cancelled_submit_leaves_nothing_behind) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    text_log log;
    auto token = std::make_shared<int>(0);
    EXPECT_FALSE(p.try_submit(working(log, "x")));
    EXPECT_FALSE(p.try_submit(working(log, "y")));
    auto waiting = s.spawn([&]() -> task<> {
      auto job = [&log, token] { log.push_back("CANCELLED"); };
      co_await p.submit(std::move(job));
      log.push_back("WENT ON");
    });
    co_await settled();
    auto next = s.spawn(submitter(p, log, "z"));
    co_await settled();
    waiting.cancel();
    EXPECT_TRUE((co_await weir::settle(waiting)).is_cancelled());
    EXPECT_EQ(token.use_count(), 1);
    co_await next;
    co_await p.close();
    EXPECT_EQ(counted(log, "CANCELLED") + counted(log, "WENT ON"), 0);
    EXPECT_EQ(counted(log, "z"), 1);
  }));
}

TEST(pool, a_submit_cancelled_at_any_moment_is_accepted_once_or_not_at_all) {
  bool ever_ran = false;
  bool ever_gone = false;
  in_every_order([&]() -> task<> {
    int ran = 0;
    bool accepted = false;
    co_await pooled(1, 1, [&](weir::scope& s, weir::pool& p) -> task<> {
      for (int i = 0; i < 2; ++i) EXPECT_FALSE(p.try_submit([] {}));
      auto child = s.spawn([&]() -> task<> {
        co_await p.submit([&] { ++ran; });
        accepted = true;
      });
      for (int i = 0; i < 2; ++i) co_await weir::yield();
      child.cancel();
      co_await s.join();
      co_await p.close();
    })();
    EXPECT_LE(ran, 1);
    EXPECT_TRUE(ran == 1 || !accepted);
    (ran == 1 ? ever_ran : ever_gone) = true;
  });
  EXPECT_TRUE(ever_ran);
  EXPECT_TRUE(ever_gone);
}

TEST(pool, run_gives_the_value_of_operations_and_of_plain_callables) {
  in_every_order(pooled(2, 2, [](weir::scope&, weir::pool& p) -> task<> {
    const auto home = weir::this_loop();
    EXPECT_EQ(co_await p.run([&] { return weir::this_loop() == home ? 0 : 7; }), 7);
    EXPECT_EQ(co_await p.run(after(5ms, 8)), 8);
    EXPECT_EQ(weir::this_loop(), home);
    auto made = co_await p.run([] { return std::make_unique<int>(9); });
    EXPECT_EQ(*made, 9);
    auto job = [kept = std::make_unique<int>(10)]() -> task<std::unique_ptr<int>> {
      co_await weir::sleep(1ms);
      co_return std::make_unique<int>(*kept + 1);
    };
    auto op = p.run(std::move(job));
    EXPECT_EQ(*co_await std::move(op), 11);
    int ran = 0;
    co_await p.run([&] { ++ran; });
    auto once = [&ran, kept = std::make_unique<int>(1)] { ran += *kept; };
    EXPECT_FALSE(p.try_submit(std::move(once)));
    auto twice = [&ran, kept = std::make_unique<int>(1)]() -> task<> { co_return void(++ran); };
    co_await p.submit(std::move(twice));
    co_await p.close();
    EXPECT_EQ(ran, 3);
  }));
}

TEST(pool, the_error_of_a_run_goes_to_its_caller_and_is_not_one_of_the_pool) {
  in_every_order(pooled(1, 4, [](weir::scope&, weir::pool& p) -> task<> {
    EXPECT_EQ(boom_of(co_await error_of(p.run(fails_after(1ms, 3)))), 3);
    EXPECT_EQ(boom_of(co_await error_of(p.run([]() -> int { throw boom(4); }))), 4);
    EXPECT_EQ(co_await p.run([] { return 5; }), 5);
    co_await p.close();
  }));
}

TEST(pool, a_job_is_destroyed_when_it_has_ended_and_not_later) {
  in_every_order(pooled(1, 4, [](weir::scope&, weir::pool& p) -> task<> {
    auto token = std::make_shared<int>(0);
    auto job = [token]() -> task<> { co_await weir::sleep(1ms); };
    EXPECT_FALSE(p.try_submit(job));
    auto op = p.run(job);
    EXPECT_EQ(token.use_count(), 4);
    co_await std::move(op);
    EXPECT_EQ(token.use_count(), 2);
    EXPECT_FALSE(p.try_submit(std::move(job)));
    co_await weir::sleep(10ms);
    EXPECT_EQ(token.use_count(), 1);  // close() has not been called
    co_await p.close();
  }));
}

TEST(pool, a_cancelled_run_that_waits_for_room_or_is_queued_is_taken_back_at_once) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    text_log log;
    const auto start = weir::now();
    EXPECT_FALSE(p.try_submit(working(log, "x", 50ms)));
    co_await settled();
    auto queued = s.spawn([&] { return p.run(working(log, "QUEUED")); });
    co_await settled();
    auto waiting = s.spawn([&] { return p.run(working(log, "WAITING")); });
    co_await settled();
    auto next = s.spawn(submitter(p, log, "z"));
    co_await settled();
    waiting.cancel();
    EXPECT_TRUE((co_await weir::settle(waiting)).is_cancelled());
    EXPECT_FALSE(next.done());
    queued.cancel();
    EXPECT_TRUE((co_await weir::settle(queued)).is_cancelled());
    co_await next;  // got the place of the queued one
    EXPECT_EQ(ms_since(start), 0);
    co_await p.close();
    EXPECT_EQ(joined(log), "x,z in,z");
  }));
}

TEST(pool, a_cancelled_run_that_runs_is_cancelled_and_joined) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    text_log log;
    auto running = s.spawn([&] { return p.run(slow_to_stop(log, "job")); });
    co_await weir::sleep(5ms);
    const auto start = weir::now();
    running.cancel("enough");
    EXPECT_TRUE((co_await weir::settle(running)).is_cancelled());
    EXPECT_EQ(ms_since(start), 30);
    EXPECT_EQ(joined(log), "job stopped");
    auto limited = [&] { return weir::with_timeout(5ms, p.run(slow_to_stop(log, "two"))); };
    EXPECT_TRUE(holds<weir::timeout_error>(co_await attempt(limited)));
    EXPECT_EQ(joined(log), "job stopped,two stopped");
    co_await p.close();
  }));
}

FIBER_TEST_IN_EVERY_ORDER(
    pool, a_run_cancelled_at_any_moment_runs_at_most_once_and_not_after_its_caller) {
  bool caller_alive = true;
  bool late = false;
  int ran = 0;
  co_await pooled(2, 1, [&](weir::scope& s, weir::pool& p) -> task<> {
    auto job = [&]() -> task<> {
      ++ran;
      for (int i = 0; i < 3; ++i) {
        late = late || !caller_alive;
        co_await weir::yield();
      }
    };
    auto child = s.spawn([&] { return p.run(job); });
    for (int i = 0; i < 3; ++i) co_await weir::yield();
    child.cancel();
    (void)co_await weir::settle(child);
    caller_alive = false;
    co_await p.close();
  })();
  EXPECT_LE(ran, 1);
  EXPECT_FALSE(late);
}

TEST(pool, jobs_may_submit_to_their_own_pool) {
  in_every_order(pooled(1, 2, [](weir::scope&, weir::pool& p) -> task<> {
    text_log log;
    auto job = [&]() -> task<> {
      EXPECT_FALSE(p.try_submit(working(log, "a")));
      co_await p.submit(working(log, "b"));
      EXPECT_EQ(p.try_submit(working(log, "c")), errc::pool_full);
      log.push_back("parent");
    };
    co_await p.run(job);
    co_await p.close();
    EXPECT_EQ(joined(log), "parent,a,b");
  }));
}

TEST(pool, what_would_wait_for_its_own_worker_is_refused_and_close_is_not_used_up) {
  in_every_order(pooled(1, 1, [](weir::scope&, weir::pool& p) -> task<> {
    int ran = 0;
    auto plain = [&] { ++ran; };
    std::vector<std::exception_ptr> found;
    std::exception_ptr empty;
    auto job = [&]() -> task<> {
      found.push_back(co_await attempt([&] { return p.close(); }));
      found.push_back(co_await attempt([&] { return p.wait(); }));
      found.push_back(co_await attempt([&] { return p.run(plain); }));
      co_await p.submit(plain);  // there is room
      found.push_back(co_await attempt([&] { return p.submit(plain); }));
      found.push_back(co_await attempt([&] { return p.submit_for(1h, plain); }));
      found.push_back(co_await attempt([&] { return p.run(plain); }));
      empty = co_await attempt([&] { return p.run(callable()); });
      EXPECT_FALSE(p.closed());
    };
    co_await p.run(job);
    for (const auto& error : found) {
      EXPECT_EQ(code_of(error), errc::would_deadlock) << what_of(error);
      EXPECT_TRUE(contains(what_of(error), "'p'")) << what_of(error);
    }
    EXPECT_EQ(found.size(), 6U);
    EXPECT_EQ(code_of(empty), errc::empty_job);
    co_await p.close();
    EXPECT_EQ(ran, 1);
  }));
}

TEST(pool, a_job_may_wait_for_another_pool) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    weir::pool other(s, sized(1, 1));
    auto job = [&]() -> task<int> {
      const int got = co_await other.run(after(1ms, 4));
      co_await other.close();
      co_return got;
    };
    EXPECT_EQ(co_await p.run(job), 4);
    EXPECT_TRUE(other.closed());
  }));
}

TEST(pool, run_sees_the_deadline_and_the_locals_of_its_caller_and_a_submitted_job_does_not) {
  in_every_order(pooled(1, 4, [](weir::scope&, weir::pool& p) -> task<> {
    struct view {
      int local = -1;
      std::optional<weir::time_point> deadline;
    };
    view in_run, in_submit, in_try;
    const auto look = [](view& v) {
      v.local = tag_of_submitter.get();
      v.deadline = weir::this_context().deadline();
    };
    const auto at = weir::now() + 1h;
    auto body = [&]() -> task<> {
      co_await p.run([&] { look(in_run); });
      co_await p.submit([&] { look(in_submit); });
      EXPECT_FALSE(p.try_submit([&] { look(in_try); }));
    };
    co_await weir::with_local(tag_of_submitter, 5, weir::with_deadline(at, body));
    co_await p.close();
    EXPECT_EQ(in_run.local, 5);
    EXPECT_EQ(in_run.deadline, at);
    for (const view& v : {in_submit, in_try}) {
      EXPECT_EQ(v.local, 0);
      EXPECT_FALSE(v.deadline);
    }
  }));
}

TEST(pool, a_caller_that_is_cancelled_already_or_has_no_time_left_gets_nothing_accepted) {
  in_every_order(pooled(1, 8, [](weir::scope& s, weir::pool& p) -> task<> {
    int ran = 0;
    auto job = [&] { ++ran; };
    auto put = [&] { return p.submit(job); };
    auto run = [&] { return p.run(job); };
    auto late = [&](bool result) -> task<> {
      co_await weir::shield(sleep_for(2ms));
      if (result) {
        co_await run();
      } else {
        co_await put();
      }
      ++ran;
    };
    auto one = s.spawn(late(false));
    auto two = s.spawn(late(true));
    co_await weir::sleep(1ms);
    one.cancel();
    two.cancel();
    EXPECT_TRUE((co_await weir::settle(one)).is_cancelled());
    EXPECT_TRUE((co_await weir::settle(two)).is_cancelled());
    for (weir::duration none : {weir::duration(0), weir::duration(-1ms)}) {
      auto limited = [&] { return p.submit_for(none, job); };
      EXPECT_TRUE(holds<weir::timeout_error>(co_await attempt(limited)));
    }
    co_await p.close();
    EXPECT_EQ(ran, 0);
  }));
}
