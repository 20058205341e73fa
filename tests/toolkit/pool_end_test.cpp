// SPDX-License-Identifier: MIT
// How a pool in a simulation ends: close, cancel, its scope, with_pool.
#include <functional>
#include <memory>
#include <optional>

#include "pool_support.hpp"

using namespace weir_test;

namespace {

auto job_failing_after(weir::duration d, int number) {
  return [=]() -> task<> { (void)co_await fails_after(d, number); };
}

/// Calls a function when it is destroyed, unless it was moved from.
class on_destruction {
 public:
  explicit on_destruction(std::function<void()> fn) : fn_(std::move(fn)) {}
  on_destruction(on_destruction&& other) noexcept : fn_(std::exchange(other.fn_, nullptr)) {}
  on_destruction& operator=(on_destruction&&) = delete;
  ~on_destruction() {
    if (fn_) fn_();
  }

 private:
  std::function<void()> fn_;
};

/// How many jobs the events of this loop say that a pool has dropped.
auto count_dropped(std::uint64_t& dropped) {
  return weir::on_event([&](const weir::event_info& e) {
    if (e.name == "job_dropped" && e.object == "p") dropped += e.number;
  });
}

}  // namespace

TEST(pool, close_waits_for_all_accepted_jobs_and_wait_is_the_same) {
  in_every_order(pooled(3, 9, [](weir::scope& s, weir::pool& p) -> task<> {
    int done = 0;
    const auto start = weir::now();
    for (int i = 0; i < 12; ++i)
      EXPECT_FALSE(p.try_submit([&]() -> task<> {
        co_await weir::sleep(10ms);
        ++done;
      }));
    EXPECT_FALSE(p.closed());
    co_await p.close();
    EXPECT_TRUE(p.closed());
    EXPECT_EQ(done, 12);
    EXPECT_EQ(ms_since(start), 40);
    weir::pool other(s, sized(1, 1));
    EXPECT_FALSE(other.try_submit([&] { ++done; }));
    co_await other.wait();
    EXPECT_EQ(done, 13);
    EXPECT_TRUE(other.closed());
    weir::pool unused(s, sized(2, 2));
    co_await unused.close();
  }));
}

TEST(pool, close_is_for_once_under_whichever_name_and_also_while_the_first_waits) {
  in_every_order(pooled(1, 1, [](weir::scope& s, weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit(weir::sleep(10ms)));
    int refused = 0;
    auto closing = [&]() -> task<> {
      auto error = co_await attempt([&] { return p.close(); });
      refused += code_of(error) == errc::already_waited ? 1 : 0;
      EXPECT_TRUE(error == nullptr || code_of(error) == errc::already_waited);
    };
    s.spawn(closing());
    s.spawn(closing());
    co_await s.idle();
    EXPECT_EQ(refused, 1);
    auto again = co_await attempt([&] { return p.wait(); });
    EXPECT_EQ(code_of(again), errc::already_waited);
    EXPECT_TRUE(contains(what_of(again), "'p'")) << what_of(again);
  }));
}

TEST(pool, close_rethrows_the_error_that_happened_first_and_nothing_is_dropped_or_cancelled) {
  in_every_order(pooled(3, 20, [](weir::scope&, weir::pool& p) -> task<> {
    int done = 0;
    EXPECT_FALSE(p.try_submit(job_failing_after(20ms, 1)));
    EXPECT_FALSE(p.try_submit(job_failing_after(10ms, 2)));
    EXPECT_FALSE(p.try_submit(job_failing_after(15ms, 3)));
    EXPECT_FALSE(p.try_submit([] { throw boom(4); }));
    for (int i = 0; i < 8; ++i)
      EXPECT_FALSE(p.try_submit([&]() -> task<> {
        co_await weir::sleep(30ms);
        ++done;
      }));
    EXPECT_EQ(boom_of(co_await attempt([&] { return p.close(); })), 2);
    EXPECT_EQ(done, 8);
    EXPECT_EQ(code_of(co_await attempt([&] { return p.close(); })), errc::already_waited);
  }));
}

TEST(pool, a_failed_job_does_not_close_the_pool) {
  in_every_order(pooled(1, 2, [](weir::scope&, weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([] { throw boom(1); }));
    co_await weir::sleep(1ms);
    EXPECT_FALSE(p.closed());
    EXPECT_EQ(co_await p.run([] { return 3; }), 3);
    EXPECT_EQ(boom_of(co_await attempt([&] { return p.close(); })), 1);
  }));
}

TEST(pool, close_refuses_all_eight_that_wait_and_none_of_their_jobs_runs) {
  in_every_order(pooled(2, 2, [](weir::scope& s, weir::pool& p) -> task<> {
    int ran = 0;
    int refused = 0;
    auto job = [&]() -> task<> {
      co_await weir::sleep(10ms);
      ++ran;
    };
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(p.try_submit(job));
    auto submitter = [&](int i) -> task<> {
      auto put = [&] { return p.submit(job); };
      auto limited = [&] { return p.submit_for(1h, job); };
      auto run = [&] { return p.run(job); };
      std::exception_ptr error;
      if (i % 3 == 0) error = co_await attempt(put);
      if (i % 3 == 1) error = co_await attempt(limited);
      if (i % 3 == 2) error = co_await attempt(run);
      EXPECT_EQ(code_of(error), errc::pool_closed);
      ++refused;
    };
    for (int i = 0; i < 8; ++i) s.spawn(submitter(i));
    co_await settled();
    co_await p.close();
    co_await s.idle();
    EXPECT_EQ(refused, 8);
    EXPECT_EQ(ran, 4);
  }));
}

TEST(pool, eight_submitters_are_released_through_a_small_pool) {
  in_every_order(pooled(2, 2, [](weir::scope& s, weir::pool& p) -> task<> {
    std::vector<int> runs(100);
    for (int f = 0; f < 8; ++f)
      s.spawn([&, f]() -> task<> {
        for (int i = f; i < 100; i += 8)
          co_await p.submit([&runs, i] { ++runs[static_cast<std::size_t>(i)]; });
      });
    co_await s.idle();
    co_await p.close();
    EXPECT_EQ(runs, std::vector<int>(100, 1));
  }));
}

FIBER_TEST_IN_EVERY_ORDER(pool, a_cancelled_close_stops_waiting_and_the_jobs_end_with_the_scope) {
  text_log log;
  co_await pooled(1, 1, [&](weir::scope& s, weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit(slow_to_stop(log, "job")));
    auto closing = s.spawn([&] { return p.close(); });
    co_await settled();
    closing.cancel();
    EXPECT_TRUE((co_await weir::settle(closing)).is_cancelled());
    EXPECT_TRUE(p.closed());
    EXPECT_TRUE(log.empty());
  })();
  EXPECT_EQ(joined(log), "job stopped");
}

TEST(pool, cancel_ends_running_jobs_with_its_reason_drops_queued_ones_and_refuses_waiting_ones) {
  in_every_order(pooled(1, 2, [](weir::scope& s, weir::pool& p) -> task<> {
    text_log log;
    std::uint64_t dropped = 0;
    auto watch = count_dropped(dropped);
    std::string why;
    auto running = [&]() -> task<> {
      struct guard {
        std::string& to;
        ~guard() {
          if (const auto* reason = weir::unwinding()) to = reason->chain().front().message;
        }
      } told{why};
      co_await weir::sleep(1h);
      log.push_back("WENT ON");
    };
    auto token = std::make_shared<int>(0);
    auto never = [&log, token] { log.push_back("NEVER"); };
    EXPECT_FALSE(p.try_submit(running));
    co_await settled();
    EXPECT_FALSE(p.try_submit(never));
    auto queued = s.spawn(attempt([&] { return p.run(never); }));
    co_await settled();
    auto waiting = s.spawn(attempt([&] { return p.submit(never); }));
    auto waits_to_run = s.spawn(attempt([&] { return p.run(never); }));
    co_await settled();
    p.cancel(weir::cancel_reason(cancel_kind::user, "tea time"));
    EXPECT_TRUE(p.closed());
    p.cancel();  // the second changes nothing
    EXPECT_EQ(p.try_submit(never), errc::pool_closed);
    EXPECT_EQ(code_of(co_await waiting), errc::pool_closed);
    EXPECT_EQ(code_of(co_await waits_to_run), errc::pool_closed);
    auto error = co_await queued;
    EXPECT_TRUE(holds<weir::cancelled_error>(error)) << what_of(error);
    EXPECT_TRUE(contains(what_of(error), "tea time")) << what_of(error);
    co_await p.close();
    EXPECT_EQ(why, "tea time");
    EXPECT_EQ(dropped, 2U);
    EXPECT_EQ(token.use_count(), 2);
    EXPECT_TRUE(log.empty()) << joined(log);
  }));
}

TEST(pool, after_cancel_close_rethrows_only_what_a_job_had_failed_with) {
  in_every_order(pooled(2, 2, [](weir::scope&, weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([] { throw boom(5); }));
    EXPECT_FALSE(p.try_submit(weir::sleep(1h)));
    co_await weir::sleep(1ms);
    p.cancel();
    EXPECT_EQ(boom_of(co_await attempt([&] { return p.close(); })), 5);
  }));
}

TEST(pool, a_job_may_cancel_its_own_pool) {
  in_every_order(pooled(1, 2, [](weir::scope&, weir::pool& p) -> task<> {
    bool went_on = false;
    EXPECT_FALSE(p.try_submit([&]() -> task<> {
      p.cancel();
      co_await weir::sleep(1ms);
      went_on = true;
    }));
    EXPECT_FALSE(p.try_submit([&] { went_on = true; }));
    co_await p.close();
    EXPECT_FALSE(went_on);
  }));
}

TEST(pool, a_job_that_does_not_listen_finishes_after_cancel_and_close_succeeds) {
  in_every_order(pooled(1, 2, [](weir::scope&, weir::pool& p) -> task<> {
    bool finished = false;
    EXPECT_FALSE(p.try_submit([&]() -> task<> {
      co_await weir::shield(sleep_for(10ms));
      finished = true;
    }));
    co_await weir::sleep(1ms);
    p.cancel();
    co_await p.close();
    EXPECT_TRUE(finished);
  }));
}

FIBER_TEST_IN_EVERY_ORDER(pool, the_destructor_cancels_without_waiting_and_the_scope_joins) {
  text_log log;
  std::uint64_t dropped = 0;
  auto watch = count_dropped(dropped);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    const auto start = weir::now();
    {
      weir::pool p(s, sized(1, 3));
      EXPECT_FALSE(p.try_submit(slow_to_stop(log, "job")));
      co_await settled();
      for (int i = 0; i < 3; ++i) EXPECT_FALSE(p.try_submit([&] { log.push_back("NEVER"); }));
    }
    EXPECT_EQ(ms_since(start), 0);
    EXPECT_EQ(dropped, 3U);
    co_await s.join();
    log.push_back("body");
  });
  EXPECT_EQ(counted(log, "job stopped"), 1);
  EXPECT_EQ(counted(log, "NEVER"), 0);
  EXPECT_EQ(weir::live().loops, 1U);
}

FIBER_TEST_IN_EVERY_ORDER(pool, a_cancelled_scope_cancels_the_jobs_of_its_pool) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& outer) -> task<> {
    auto child = outer.spawn(pooled(1, 1, [&](weir::scope&, weir::pool& p) -> task<> {
      EXPECT_FALSE(p.try_submit(slow_to_stop(log, "job")));
      co_await weir::sleep(1h);
    }));
    co_await weir::sleep(1ms);
    child.cancel();
    EXPECT_TRUE((co_await weir::settle(child)).is_cancelled());
    EXPECT_EQ(joined(log), "job stopped");
  });
}

FIBER_TEST_IN_EVERY_ORDER(pool,
                          a_job_error_that_no_close_rethrew_is_raised_at_the_end_of_the_scope) {
  bool body_ended = false;
  auto fails = pooled(1, 2, [&](weir::scope&, weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([] { throw boom(6); }));
    EXPECT_FALSE(p.try_submit([] { throw boom(7); }));
    co_await weir::sleep(1ms);
    body_ended = true;
  });
  EXPECT_EQ(boom_of(co_await attempt(fails)), 6);
  EXPECT_TRUE(body_ended);
  auto heard = pooled(1, 2, [&](weir::scope&, weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([] { throw boom(8); }));
    EXPECT_EQ(boom_of(co_await attempt([&] { return p.close(); })), 8);
  });
  EXPECT_FALSE(co_await attempt(heard));
  auto body_throws = pooled(1, 2, [&](weir::scope&, weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([] { throw boom(9); }));
    co_await weir::sleep(1ms);
    throw bang(1);
  });
  EXPECT_TRUE(holds<bang>(co_await attempt(body_throws)));
}

FIBER_TEST(pool, the_handle_may_outlive_its_scope) {
  std::optional<weir::pool> kept;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    kept.emplace(s, sized(1, 1));
    EXPECT_FALSE(kept->try_submit(weir::sleep(1h)));
    co_await settled();
  });
  EXPECT_TRUE(kept->closed());
  EXPECT_EQ(kept->try_submit([] {}), errc::pool_closed);
  EXPECT_EQ(code_of(co_await attempt([&] { return kept->run([] {}); })), errc::pool_closed);
}

TEST(pool, user_code_never_runs_while_the_pool_is_locked) {
  in_every_order(pooled(1, 2, [](weir::scope& s, weir::pool& p) -> task<> {
    int asked = 0;
    auto asking = [&] {
      return [g = on_destruction([&] {
                asked += p.try_submit([] {}) == errc::empty_job ? 0 : 1;
              })]() -> task<> { co_await weir::sleep(5ms); };
    };
    EXPECT_FALSE(p.try_submit(asking()));
    co_await settled();
    EXPECT_FALSE(p.try_submit(asking()));
    EXPECT_FALSE(p.try_submit(asking()));
    EXPECT_EQ(p.try_submit(asking()), errc::pool_full);
    auto waiting = s.spawn([&]() -> task<> {
      auto job = asking();
      co_await p.submit(std::move(job));
    });
    co_await settled();
    waiting.cancel();
    (void)co_await weir::settle(waiting);
    p.cancel();
    co_await p.close();
    EXPECT_EQ(asked, 5);
  }));
}

TEST(pool, the_destructor_of_a_dropped_job_may_cancel_another_queued_run) {
  in_order(pooled(1, 4, [](weir::scope& s, weir::pool& p) -> task<> {
    std::optional<weir::child<void>> other;
    bool ran = false;
    EXPECT_FALSE(p.try_submit(weir::sleep(1h)));
    co_await settled();
    EXPECT_FALSE(p.try_submit([g = on_destruction([&] { other->cancel(); })] {}));
    other.emplace(
        s.spawn([&]() -> task<> { (void)co_await weir::settle(p.run([&] { ran = true; })); }));
    co_await settled();
    p.cancel();
    (void)co_await weir::settle(*other);
    co_await p.close();
    EXPECT_FALSE(ran);
  }));
}

FIBER_TEST_IN_EVERY_ORDER(with_pool, a_body_that_returns_drains_and_gives_its_value) {
  int done = 0;
  auto submit_four = [&](weir::pool& p) -> task<> {
    for (int i = 0; i < 4; ++i)
      co_await p.submit([&]() -> task<> {
        co_await weir::sleep(10ms);
        ++done;
      });
  };
  auto body = [&](weir::pool& p) -> task<std::unique_ptr<int>> {
    co_await submit_four(p);
    co_return std::make_unique<int>(3);
  };
  auto got = co_await weir::with_pool(sized(1, 8), body);
  EXPECT_EQ(*got, 3);
  EXPECT_EQ(done, 4);
  co_await weir::with_pool(submit_four);
  EXPECT_EQ(done, 8);
  auto closes = [&](weir::pool& p) -> task<> {
    co_await submit_four(p);
    co_await p.close();
    EXPECT_EQ(done, 12);
  };
  co_await weir::with_pool(sized(2, 2), closes);
}

FIBER_TEST_IN_EVERY_ORDER(with_pool, the_first_job_error_comes_out_of_a_body_that_returns) {
  auto body = [](weir::pool& p) -> task<int> {
    EXPECT_FALSE(p.try_submit(job_failing_after(20ms, 1)));
    EXPECT_FALSE(p.try_submit(job_failing_after(10ms, 2)));
    co_return 1;
  };
  auto run = [&] { return weir::with_pool(sized(2, 2), body); };
  EXPECT_EQ(boom_of(co_await attempt(run)), 2);
}

FIBER_TEST_IN_EVERY_ORDER(
    with_pool, a_body_that_throws_or_is_cancelled_cancels_the_jobs_and_drops_the_queued_ones) {
  text_log log;
  std::uint64_t dropped = 0;
  auto watch = count_dropped(dropped);
  auto fill = [&](weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit(slow_to_stop(log, "job")));
    co_await settled();
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(p.try_submit([&] { log.push_back("NEVER"); }));
  };
  auto throws = [&](weir::pool& p) -> task<> {
    co_await fill(p);
    throw boom(3);
  };
  auto run = [&] { return weir::with_pool(sized(1, 4), throws); };
  EXPECT_EQ(boom_of(co_await attempt(run)), 3);
  EXPECT_EQ(joined(log), "job stopped");
  EXPECT_EQ(dropped, 2U);
  auto sleeps = [&](weir::pool& p) -> task<> {
    co_await fill(p);
    co_await weir::sleep(1h);
  };
  auto limited = [&] { return weir::with_timeout(5ms, weir::with_pool(sized(1, 4), sleeps)); };
  EXPECT_TRUE(holds<weir::timeout_error>(co_await attempt(limited)));
  EXPECT_EQ(joined(log), "job stopped,job stopped");
  EXPECT_EQ(dropped, 4U);
}

FIBER_TEST_IN_EVERY_ORDER(with_pool, a_body_cancelled_while_it_drains_cancels_the_jobs) {
  text_log log;
  auto body = [&](weir::pool& p) -> task<> { co_await p.submit(slow_to_stop(log, "job")); };
  auto limited = [&] { return weir::with_timeout(5ms, weir::with_pool(sized(1, 4), body)); };
  EXPECT_TRUE(holds<weir::timeout_error>(co_await attempt(limited)));
  EXPECT_EQ(joined(log), "job stopped");
}
