// SPDX-License-Identifier: MIT
// Who owns a pool or a loop_thread, in a simulation: the end of its grace, crashes, lost handles.
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "pool_support.hpp"

using namespace weir_test;

namespace {

/// Something that only its end ends: no cancellation, no force.
class stubborn {
 public:
  task<> run() {
    co_await park_uncancellable(slot_);
    ended_ = true;
  }
  task<> end_at(weir::time_point when) {
    co_await weir::sleep_until(when);
    slot_->complete();
  }
  bool ended() const noexcept { return ended_; }

 private:
  std::optional<weir::resumer<void>> slot_;
  bool ended_ = false;
};

}  // namespace

// ------------------------------------------------------------------ grace

FIBER_TEST_IN_EVERY_ORDER(pool, is_joined_by_its_scope_although_the_grace_is_over) {
  co_await weir::with_scope([](weir::scope& outer) -> task<> {
    const auto start = weir::now();
    stubborn one;
    stubborn two;
    outer.spawn(one.end_at(start + 200ms));
    outer.spawn(two.end_at(start + 400ms));
    auto body = [&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(2, 2));
      EXPECT_FALSE(p.try_submit([&] { return one.run(); }));
      EXPECT_FALSE(p.try_submit([&] { return two.run(); }));
      co_await weir::sleep(20ms);
    };
    co_await weir::with_scope({.grace = 50ms}, body);
    EXPECT_TRUE(one.ended());
    EXPECT_TRUE(two.ended());
    EXPECT_EQ(ms_since(start), 400);
  });
}

FIBER_TEST_IN_EVERY_ORDER(loop_thread,
                          is_joined_although_an_earlier_part_of_the_cleanup_has_used_up_the_grace) {
  co_await weir::with_scope([](weir::scope& outer) -> task<> {
    const auto start = weir::now();
    stubborn in_pool;
    stubborn on_loop;
    outer.spawn(in_pool.end_at(start + 200ms));
    outer.spawn(on_loop.end_at(start + 400ms));
    weir::loop_ref there;
    auto body = [&](weir::scope& s) -> task<> {
      const weir::loop_thread t(s, {.name = "t"});
      there = t;
      outer.spawn_on(there, weir::settle([&] { return on_loop.run(); }));
      weir::pool p(s, sized(1, 1));
      EXPECT_FALSE(p.try_submit([&] { return in_pool.run(); }));
      co_await weir::sleep(20ms);
    };
    co_await weir::with_scope({.grace = 50ms}, body);
    EXPECT_TRUE(on_loop.ended());
    EXPECT_FALSE(there.alive());
    EXPECT_EQ(ms_since(start), 400);
  });
}

FIBER_TEST_IN_EVERY_ORDER(pool, what_its_jobs_shield_ends_with_the_grace_of_its_scope) {
  const auto start = weir::now();
  auto job = []() -> task<> { co_await weir::shield(weir::sleep(1h)); };
  auto body = [&](weir::scope& s) -> task<> {
    weir::pool p(s, sized(2, 2));
    EXPECT_FALSE(p.try_submit(job));
    EXPECT_FALSE(p.try_submit(job));
    co_await weir::sleep(20ms);
  };
  co_await weir::with_scope({.grace = 50ms}, body);
  EXPECT_EQ(ms_since(start), 70);
  auto idle = [&](weir::scope& s) -> task<> {
    const weir::loop_thread t(s);
    t.post([] {});
    s.background([&, there = weir::loop_ref(t)]() -> task<> { co_await weir::on(there, job); });
    co_await weir::sleep(20ms);
  };
  co_await weir::with_scope({.grace = 50ms}, idle);
  EXPECT_EQ(ms_since(start), 140);
}

// ------------------------------------------------------------------ crashes

TEST(pool, outlives_a_crash_of_its_owner_until_its_jobs_have_ended) {
  weir::sim::world w;
  const weir::loop_ref node = w.loop("node");
  int ended = 0;
  auto job = [&]() -> task<> {
    const auto guard = weir::scope_exit([&] { ++ended; });
    co_await weir::shield(weir::sleep(10s));
  };
  w.run([&]() -> task<> {
    auto owner = [&]() -> task<> {
      auto body = [&](weir::pool& p) -> task<> {
        EXPECT_FALSE(p.try_submit(job));
        co_await p.run(job);
      };
      co_await weir::with_pool(sized(2, 2), body);
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto called = s.spawn([&]() -> task<> {
        EXPECT_EQ(code_of(co_await error_of(weir::on(node, owner))), errc::loop_gone);
      });
      co_await weir::sleep(1s);
      w.crash("node");
      co_await called;
      co_await weir::sleep(1min);
      EXPECT_EQ(ended, 2);
    });
  });
}

TEST(pool, hears_nothing_from_the_destructors_of_a_loop_that_crashes) {
  weir::sim::world w;
  const weir::loop_ref node = w.loop("node");
  w.run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(1, 1));
      int ran = 0;
      std::error_code refused;
      auto user = [&]() -> task<> {
        const auto last_words = weir::scope_exit([&] {
          refused = p.try_submit([&] { ++ran; });
          p.cancel();
        });
        co_await weir::sleep(1h);
      };
      auto called = s.spawn(weir::settle(weir::on(node, user)));
      co_await weir::sleep(1s);
      w.crash("node");
      co_await called;
      EXPECT_EQ(refused, errc::pool_closed);
      EXPECT_FALSE(p.closed());
      co_await p.close();
      EXPECT_EQ(ran, 0);
    });
  });
}

TEST(pool, whose_only_worker_crashes_while_it_is_idle_refuses_with_loop_gone) {
  weir::sim::world w;
  w.run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(1, 1));
      co_await p.run([] {});
      co_await weir::sleep(1s);
      w.crash("p-0");
      const auto start = weir::now();
      EXPECT_EQ(code_of(co_await error_of(p.run([] {}))), errc::loop_gone);
      EXPECT_EQ(code_of(co_await error_of(p.submit([] {}))), errc::loop_gone);
      EXPECT_EQ(p.try_submit([] {}), errc::loop_gone);
      EXPECT_EQ(ms_since(start), 0);
    });
  });
}

TEST(pool, whose_only_worker_crashes_tells_all_whose_jobs_it_had_accepted) {
  weir::sim::world w;
  w.run([&]() -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(1, 1));
      auto job = []() -> task<> { co_await weir::sleep(1h); };
      int gone = 0;
      auto caller = [&]() -> task<> {
        gone += code_of(co_await error_of(p.run(job))) == errc::loop_gone ? 1 : 0;
      };
      for (int i = 0; i < 3; ++i) s.spawn(caller);  // running, queued, waiting
      co_await weir::sleep(1s);
      w.crash("p-0");
      co_await s.join();
      EXPECT_EQ(gone, 3);
    };
    co_await weir::with_scope(body);
    auto unseen = [&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(1, 1));
      EXPECT_FALSE(p.try_submit([]() -> task<> { co_await weir::sleep(1h); }));
      EXPECT_FALSE(p.try_submit([] {}));
      co_await weir::sleep(1s);
      w.crash("p-0");
      EXPECT_EQ(code_of(co_await error_of(p.close())), errc::loop_gone);
    };
    co_await weir::with_scope(unseen);
  });
}

TEST(pool, a_run_whose_worker_crashes_at_any_moment_has_its_value_or_loop_gone) {
  int values = 0;
  int gone = 0;
  for (int moment = 0; moment < 200; ++moment) {
    weir::sim::world w({.seed = static_cast<std::uint64_t>(moment)});
    w.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::pool p(s, sized(1, 1));
        auto caller = s.spawn([&]() -> task<> {
          const auto end = co_await weir::settle(p.run([] { return 1; }));
          values += end.is_value() ? 1 : 0;
          gone += end.is_error() && code_of(end.error()) == errc::loop_gone ? 1 : 0;
        });
        for (int i = 0; i < moment % 10; ++i) co_await weir::yield();
        w.crash("p-0");
        co_await caller;
      });
    });
  }
  EXPECT_EQ(values + gone, 200);
  EXPECT_GT(values, 0);
  EXPECT_GT(gone, 0);
}

TEST(pool, a_job_for_which_a_worker_was_woken_that_crashes_is_taken_by_another) {
  for (const char* const victim : {"p-0", "p-1"}) {  // one of them is the one that was woken
    weir::sim::world w;
    w.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::pool p(s, sized(2, 2));
        co_await weir::sleep(1s);  // both are idle
        int ran = 0;
        EXPECT_FALSE(p.try_submit([&] { ++ran; }));  // wakes one of them
        w.crash(victim);
        co_await weir::sleep(1s);
        EXPECT_EQ(ran, 1);
        EXPECT_FALSE(p.try_submit([&] { ++ran; }));
        co_await p.close();
        EXPECT_EQ(ran, 2);
      });
    });
  }
}

// ------------------------------------------------------------------ handles

SCOPE_TEST_IN_EVERY_ORDER(pool, close_needs_the_handle_only_until_it_returns_its_task) {
  auto p = std::make_unique<weir::pool>(s, sized(1, 1));
  auto closing = p->close();
  p.reset();
  co_await std::move(closing);
}

FIBER_TEST_IN_EVERY_ORDER(with_pool,
                          jobs_may_use_the_pool_that_the_body_was_given_until_they_have_ended) {
  std::error_code answer;
  auto body = [&](weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([&]() -> task<> {
      co_await weir::shield(weir::sleep(10ms));
      answer = p.try_submit([] {});
    }));
    co_await weir::sleep(1ms);
    throw boom(1);
  };
  EXPECT_EQ(boom_of(co_await error_of(weir::with_pool(sized(1, 1), body))), 1);
  EXPECT_EQ(answer, errc::pool_closed);
}

FIBER_TEST_IN_EVERY_ORDER(with_loop_thread, what_runs_there_may_use_the_handle_until_it_has_ended) {
  bool same = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto body = [&](weir::loop_thread& t) -> task<> {
      auto remote = [&]() -> task<> {
        co_await weir::shield(weir::sleep(10ms));
        same = t.ref() == weir::this_loop();
      };
      s.spawn_on(t, weir::settle(remote));
      co_await weir::sleep(1ms);
    };
    co_await weir::with_loop_thread(body);
  });
  EXPECT_TRUE(same);
}

FIBER_TEST_IN_EVERY_ORDER(with_pool, a_body_whose_close_timed_out_has_waited_long_enough) {
  int done = 0;
  const auto start = weir::now();
  auto body = [&](weir::pool& p) -> task<> {
    for (int i = 0; i < 3; ++i)
      EXPECT_FALSE(p.try_submit([&]() -> task<> {
        co_await weir::sleep(30ms);
        ++done;
      }));
    EXPECT_NE(co_await error_of(weir::with_timeout(40ms, p.close())), nullptr);
  };
  co_await weir::with_pool(sized(1, 4), body);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(ms_since(start), 40);
}

FIBER_TEST(with_pool, an_empty_body_is_an_empty_job) {
  const std::function<task<>(weir::pool&)> none;
  EXPECT_EQ(code_thrown_by([&] { (void)weir::with_pool(none); }), errc::empty_job);
  const std::function<task<>(weir::loop_thread&)> nothing;
  EXPECT_EQ(code_thrown_by([&] { (void)weir::with_loop_thread(nothing); }), errc::empty_job);
  co_return;
}

FIBER_TEST(with_pool, its_scope_has_the_name_of_the_pool) {
  std::string name;
  auto body = [&](weir::pool&) -> task<> {
    name = weir::this_scope().name();
    co_return;
  };
  co_await weir::with_pool(sized(1, 1), body);
  EXPECT_EQ(name, "p");
  auto other = [&](weir::loop_thread&) -> task<> {
    name = weir::this_scope().name();
    co_return;
  };
  co_await weir::with_loop_thread({.name = "io"}, other);
  EXPECT_EQ(name, "io");
}

// What a moved-from handle would refer to does not exist.
static_assert(!std::is_move_constructible_v<weir::loop_thread>);

// ------------------------------------------------------------------ what jobs leave

FIBER_TEST_IN_EVERY_ORDER(pool, the_value_of_a_submitted_job_is_gone_when_close_returns) {
  auto token = std::make_shared<int>(1);
  auto body = [&](weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([token] { return token; }));
    EXPECT_FALSE(p.try_submit([token]() -> task<std::shared_ptr<int>> { co_return token; }));
    co_await p.close();
    EXPECT_EQ(token.use_count(), 1);
  };
  co_await weir::with_pool(sized(1, 4), body);
}

FIBER_TEST_IN_EVERY_ORDER(pool, submit_for_looks_at_the_job_and_the_pool_before_the_time) {
  auto body = [](weir::pool& p) -> task<> {
    const std::function<void()> none;
    EXPECT_EQ(code_of(co_await error_of(p.submit_for(0ms, none))), errc::empty_job);
    EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(p.submit_for(0ms, [] {}))));
    co_await p.close();
    EXPECT_EQ(code_of(co_await error_of(p.submit_for(0ms, none))), errc::empty_job);
    EXPECT_EQ(code_of(co_await error_of(p.submit_for(0ms, [] {}))), errc::pool_closed);
  };
  co_await weir::with_pool(sized(1, 1), body);
}
