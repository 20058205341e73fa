// SPDX-License-Identifier: MIT
// Pools on real threads: who may call what from where, outside of loops, and under load.
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "pool_support.hpp"

using namespace weir_test;

namespace {

void await_that(const std::atomic<int>& value, int wanted) {
  for (int seen = value; seen != wanted; seen = value) value.wait(seen);
}

void count(std::atomic<int>& value) {
  ++value;
  value.notify_all();
}

template <class F>
void on_thread(F f) {
  std::thread(f).join();
}

/// Calls a function when it is destroyed, unless it was moved from.
template <class F>
class on_destruction {
 public:
  explicit on_destruction(F fn) : fn_(fn) {}
  on_destruction(on_destruction&& other) noexcept
      : fn_(other.fn_), live_(std::exchange(other.live_, false)) {}
  on_destruction& operator=(on_destruction&&) = delete;
  ~on_destruction() {
    if (live_) fn_();
  }

 private:
  F fn_;
  bool live_ = true;
};

/// The watched counts are told to the process by other threads, a moment later.
bool counted_soon(std::string_view object, std::string_view what, std::uint64_t wanted) {
  for (int i = 0; i < 100'000; ++i) {
    if (weir::stats().counter(object, what) >= wanted) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST(pool_threads, each_worker_is_a_thread_with_its_own_loop) {
  std::latch both(2);
  std::set<std::thread::id> threads{std::this_thread::get_id()};
  weir::run([&]() -> task<> {
    const auto home = weir::this_loop();
    auto body = [&](weir::pool& p) -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto meet = [&] {
          EXPECT_NE(weir::this_loop(), home);
          both.arrive_and_wait();  // which needs two threads
          return std::this_thread::get_id();
        };
        auto one = s.spawn([&] { return p.run(meet); });
        auto two = s.spawn([&] { return p.run(meet); });
        threads.insert(co_await one);
        threads.insert(co_await two);
      });
      auto suspends = []() -> task<int> {
        co_await weir::sleep(1ms);
        co_return 4;
      };
      EXPECT_EQ(co_await p.run(suspends), 4);
      EXPECT_EQ(weir::this_loop(), home);
    };
    co_await weir::with_pool(sized(2, 2), body);
  });
  EXPECT_EQ(threads.size(), 3U);
}

TEST(pool_threads, at_most_workers_run_and_a_full_pool_refuses) {
  std::latch gate(1);
  std::atomic<int> inside{0}, most{0}, done{0}, begun{0};
  auto job = [&] {
    raise_to(most, ++inside);
    count(begun);
    gate.wait();
    --inside;
    ++done;
  };
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(2, 2));
      for (int i = 0; i < 4; ++i) EXPECT_FALSE(p.try_submit(job));
      EXPECT_EQ(p.try_submit(job), errc::pool_full);
      await_that(begun, 2);
      EXPECT_EQ(p.try_submit(job), errc::pool_full);
      EXPECT_TRUE(
          holds<weir::timeout_error>(co_await attempt([&] { return p.submit_for(2ms, job); })));
      EXPECT_EQ(begun, 2);
      gate.count_down();
      co_await p.submit(job);
      co_await p.close();
      EXPECT_EQ(done, 5);
    });
  });
  EXPECT_EQ(most, 2);
}

TEST(pool_threads, queued_jobs_start_in_the_order_of_acceptance) {
  std::latch gate(1);
  std::vector<int> started;
  weir::pool p(sized(1, 200));
  EXPECT_FALSE(p.try_submit([&] { gate.wait(); }));
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(p.try_submit([&, i] { started.push_back(i); }));
  EXPECT_EQ(p.try_submit([] {}), errc::pool_full);
  gate.count_down();
  weir::run([&] { return p.close(); });
  EXPECT_EQ(started.size(), 200U);
  EXPECT_TRUE(std::is_sorted(started.begin(), started.end()));
}

TEST(pool_threads, a_pool_outside_of_loops_serves_many_runs_and_closes_in_one) {
  weir::pool p(sized(2, 8));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(weir::run([&] { return p.run([=] { return std::make_unique<int>(i); }); }) == nullptr,
              false);
  std::atomic<int> done{0};
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(p.try_submit([&] { ++done; }));
  EXPECT_FALSE(p.closed());
  weir::run([&] { return p.close(); });
  EXPECT_EQ(done, 8);
  EXPECT_TRUE(p.closed());
  auto again = thrown_by([&] { weir::run([&] { return p.wait(); }); });
  EXPECT_EQ(code_of(again), errc::already_waited);
}

TEST(pool_threads, the_destructor_outside_of_loops_cancels_and_joins) {
  std::atomic<int> begun{0}, finished{0};
  std::atomic<bool> unwound{false}, went_on{false};
  std::latch gate(1);
  std::thread opener;
  auto token = std::make_shared<int>(0);
  {
    weir::pool p(sized(2, 8, "outside"));
    EXPECT_FALSE(p.try_submit([&]() -> task<> {
      on_destruction ended([&] { unwound = true; });
      count(begun);
      co_await weir::sleep(1000h);
      went_on = true;
    }));
    EXPECT_FALSE(p.try_submit([&] {  // a plain callable finishes
      count(begun);
      gate.wait();
      ++finished;
    }));
    await_that(begun, 2);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(p.try_submit([&went_on, token] { went_on = true; }));
    opener = std::thread([&] {
      while (!unwound) std::this_thread::yield();  // only cancellation ends the sleep
      gate.count_down();
    });
  }
  EXPECT_EQ(finished, 1);
  EXPECT_TRUE(unwound);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(weir::live().loops, 0U);
  opener.join();
}

TEST(pool_threads, jobs_dropped_outside_of_loops_are_counted) {
  std::latch gate(1);
  std::atomic<int> begun{0};
  {
    weir::pool p(sized(1, 8, "drops-outside"));
    EXPECT_FALSE(p.try_submit([&] {
      count(begun);
      gate.wait();
    }));
    await_that(begun, 1);
    EXPECT_FALSE(p.try_submit([] {}));
    p.cancel();
    gate.count_down();
  }
  EXPECT_TRUE(counted_soon("drops-outside", "job_dropped", 1));
}

TEST(pool_threads, an_error_that_nobody_heard_of_outside_of_loops_is_a_suppressed_event) {
  {
    std::atomic<int> after_it{0};
    weir::pool p(sized(1, 8, "fails-outside"));
    EXPECT_FALSE(p.try_submit([] { throw boom(1); }));
    EXPECT_FALSE(p.try_submit([&] { count(after_it); }));
    await_that(after_it, 1);
  }
  EXPECT_TRUE(counted_soon("fails-outside", "suppressed", 1));
}

TEST(pool_threads, a_pool_without_a_scope_is_refused_on_a_loop) {
  weir::run([]() -> task<> {
    auto error = thrown_by([] { weir::pool p(sized(1, 1, "homeless")); });
    EXPECT_EQ(code_of(error), errc::would_deadlock);
    EXPECT_TRUE(contains(what_of(error), "'homeless'")) << what_of(error);
    co_return;
  });
  auto invalid = thrown_by([] { weir::pool p(sized(0, 1, "no-workers")); });
  EXPECT_EQ(code_of(invalid), errc::invalid_argument);
}

TEST(pool_threads_death, destroying_a_pool_of_the_outside_on_a_loop_aborts_with_its_name) {
  EXPECT_DEATH(
      {
        std::optional<weir::pool> p;
        p.emplace(sized(1, 1, "from-main"));
        weir::run([&]() -> task<> {
          p.reset();
          co_return;
        });
      },
      "from-main");
}

TEST(pool_threads, submit_run_and_cancel_work_from_any_thread) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(2, 2));
      std::atomic<int> done{0};
      on_thread([&] {
        EXPECT_FALSE(p.try_submit([&] { count(done); }));
        weir::run([&]() -> task<> {
          co_await p.submit([&] { count(done); });
          EXPECT_EQ(co_await p.run([] { return 5; }), 5);
          EXPECT_EQ(boom_of(co_await error_of(p.run([]() -> int { throw boom(2); }))), 2);
        });
      });
      await_that(done, 2);  // what has not begun would be dropped
      EXPECT_FALSE(p.try_submit(weir::sleep(1000h)));
      on_thread([&] { p.cancel(weir::cancel_reason(cancel_kind::user, "from outside")); });
      EXPECT_TRUE(p.closed());
      on_thread([&] { EXPECT_EQ(p.try_submit([] {}), errc::pool_closed); });
      co_await p.close();
      EXPECT_EQ(done, 2);
    });
  });
}

TEST(pool_threads, concurrent_errors_give_one_of_them_and_every_job_runs) {
  std::atomic<int> ran{0};
  auto body = [&](weir::pool& p) -> task<> {
    for (int i = 0; i < 12; ++i)
      EXPECT_FALSE(p.try_submit([&, i] {
        ++ran;
        if (i % 3 == 0) throw boom(i);
      }));
    const int first = boom_of(co_await attempt([&] { return p.close(); }));
    EXPECT_TRUE(first >= 0 && first % 3 == 0) << first;
  };
  weir::run([&]() -> task<> { co_await weir::with_pool(sized(4, 8), body); });
  EXPECT_EQ(ran, 12);
}

TEST(pool_threads, the_first_error_is_the_first_that_happened) {
  std::latch second_failed(1);
  auto body = [&](weir::pool& p) -> task<> {
    EXPECT_FALSE(p.try_submit([&] {
      second_failed.wait();
      throw boom(1);
    }));
    // The worker of boom(2) runs the next job only when it has told of the error.
    EXPECT_FALSE(p.try_submit([] { throw boom(2); }));
    EXPECT_FALSE(p.try_submit([&] { second_failed.count_down(); }));
    EXPECT_EQ(boom_of(co_await attempt([&] { return p.close(); })), 2);
  };
  weir::run([&]() -> task<> { co_await weir::with_pool(sized(2, 2), body); });
}

TEST(pool_threads, four_threads_and_four_fibers_submit_and_each_job_runs_exactly_once) {
  constexpr int each = 500;
  std::vector<std::atomic<int>> runs(8 * each);
  std::atomic<int> inside{0}, most{0};
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::pool p(s, sized(3, 5));
      auto job = [&](int n) {
        return [&, n] {
          raise_to(most, ++inside);
          ++runs[static_cast<std::size_t>(n)];
          --inside;
        };
      };
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
          for (int i = 0; i < each; ++i)
            while (p.try_submit(job(t * each + i))) std::this_thread::yield();
        });
      for (int f = 4; f < 8; ++f)
        s.spawn([&, f]() -> task<> {
          for (int i = 0; i < each; ++i) {
            const int n = f * each + i;
            if (i % 3 == 0) {
              co_await p.run(job(n));
            } else {
              co_await p.submit(job(n));
            }
          }
        });
      co_await s.idle();
      co_await weir::blocking([&] {
        for (std::thread& t : threads) t.join();
      });
      co_await p.close();
    });
  });
  for (const auto& n : runs) EXPECT_EQ(n, 1);
  EXPECT_LE(most, 3);
}

TEST(pool_threads, eight_waiting_submitters_on_four_loops_are_refused_by_close) {
  std::latch gate(1);
  std::latch waiting(4);
  std::atomic<int> refused{0}, ran{0};
  std::vector<std::thread> threads;
  weir::pool p(sized(2, 2));
  auto blocks = [&] { gate.wait(); };
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(p.try_submit(blocks));
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      weir::run([&]() -> task<> {
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          auto job = [&] { ++ran; };
          auto submitter = [&]() -> task<> {
            auto error = co_await attempt([&] { return p.submit(job); });
            refused += code_of(error) == errc::pool_closed ? 1 : 0;
          };
          s.spawn(submitter());
          s.spawn(submitter());
          for (int i = 0; i < 4; ++i) co_await weir::yield();  // both wait now
          waiting.count_down();
          co_await s.join();
        });
      });
    });
  waiting.wait();
  std::thread opener([&] {
    await_that(refused, 8);  // before any place became free
    gate.count_down();
  });
  threads.emplace_back([&] { weir::run([&] { return p.close(); }); });
  while (refused != 8) std::this_thread::yield();
  refused.notify_all();
  for (std::thread& t : threads) t.join();
  opener.join();
  EXPECT_EQ(ran, 0);
}

TEST(pool_threads, what_close_races_with_is_accepted_and_run_or_refused_and_not_run) {
  for (int round = 0; round < 30; ++round) {
    std::atomic<int> accepted{0}, ran{0}, refused{0};
    weir::pool p(sized(2, 2));
    std::latch begin(4);
    std::vector<std::thread> threads;
    auto job = [&] { ++ran; };
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        begin.arrive_and_wait();
        weir::run([&]() -> task<> {
          for (;;) {
            std::error_code code;
            if (t == 0) code = p.try_submit(job);
            if (t == 1) code = code_of(co_await attempt([&] { return p.submit(job); }));
            if (t == 2) code = code_of(co_await attempt([&] { return p.run(job); }));
            accepted += code ? 0 : 1;
            if (code == errc::pool_closed) {
              ++refused;
              co_return;
            }
            co_await weir::yield();
          }
        });
      });
    begin.arrive_and_wait();
    weir::run([&] { return p.close(); });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(accepted, ran);
    EXPECT_EQ(refused, 3);
  }
}

TEST(pool_threads, runs_that_are_cancelled_at_any_moment_never_outlive_their_caller) {
  std::atomic<int> late{0}, ran{0};
  auto program = [&](weir::pool& p) -> task<> {
    for (int i = 0; i < 300; ++i) {
      auto alive = std::make_shared<std::atomic<bool>>(true);
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto job = [&late, &ran, alive]() -> task<> {
          ++ran;
          for (int n = 0; n < 3; ++n) {
            if (!*alive) ++late;
            co_await weir::yield();
          }
        };
        auto child = s.spawn([&] { return p.run(job); });
        for (int n = 0; n < i % 7; ++n) co_await weir::yield();
        child.cancel();
        (void)co_await weir::settle(child);
        *alive = false;
      });
    }
  };
  weir::pool p(sized(2, 1));
  std::vector<std::thread> loops;
  for (int t = 0; t < 4; ++t) loops.emplace_back([&] { weir::run([&] { return program(p); }); });
  for (std::thread& t : loops) t.join();
  weir::run([&] { return p.close(); });
  EXPECT_EQ(late, 0);
}

TEST(pool_threads, cancel_of_the_pool_races_with_cancel_of_its_runs) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> begun{0};
    std::latch both(2);
    weir::pool p(sized(1, 64));
    EXPECT_FALSE(p.try_submit([&]() -> task<> {
      count(begun);
      co_await weir::sleep(1000h);
    }));
    await_that(begun, 1);
    std::thread other([&] {
      both.arrive_and_wait();
      p.cancel();
    });
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto quiet = [&]() -> task<> {
          (void)co_await attempt([&] { return p.run([&] { count(begun); }); });
        };
        std::vector<weir::child<void>> runs;
        for (int i = 0; i < 40; ++i) runs.push_back(s.spawn(quiet()));
        co_await weir::yield();
        both.arrive_and_wait();
        for (auto& r : runs) r.cancel();
        co_await s.join();
      });
    });
    other.join();
    EXPECT_EQ(begun, 1);
  }
}

TEST(pool_threads, a_run_may_be_cancelled_while_another_thread_destroys_dropped_jobs) {
  std::latch in_destructor(1), go_on(1);
  std::atomic<int> begun{0};
  weir::pool p(sized(1, 8));
  EXPECT_FALSE(p.try_submit([&]() -> task<> {
    count(begun);
    co_await weir::sleep(1000h);
  }));
  await_that(begun, 1);
  auto stop = [&] {
    in_destructor.count_down();
    go_on.wait();
  };
  EXPECT_FALSE(p.try_submit([g = on_destruction(stop)] {}));
  std::thread canceller;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto quiet = [&]() -> task<> {  // a dropped run is a cancelled_error
        (void)co_await attempt([&] { return p.run([&] { count(begun); }); });
      };
      auto one = s.spawn(quiet());
      auto two = s.spawn(quiet());
      for (int i = 0; i < 4; ++i) co_await weir::yield();
      canceller = std::thread([&] { p.cancel(); });
      in_destructor.wait();
      one.cancel();  // which the pool has dropped, but not told
      two.cancel();
      co_await weir::yield();
      go_on.count_down();
      (void)co_await weir::settle(one);
      (void)co_await weir::settle(two);
    });
    co_await p.close();
  });
  canceller.join();
  EXPECT_EQ(begun, 1);
}
