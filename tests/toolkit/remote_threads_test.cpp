// SPDX-License-Identifier: MIT
// What on, pool and loop_thread have in common, on real threads: wake-ups between loops, two
// clocks, two worlds, and on which thread objects are destroyed.
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <weir/test_clock.hpp>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

/// Lets other threads run for a while; no test needs it to pass.
void dawdle() {
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
}

/// A loop that waits for something of its own, which another thread makes it give back.
template <class Start>
void woken_only_by_a_post(Start start) {
  weir::run([&]() -> task<> {
    weir::counting_governor one(1);
    std::optional<weir::permit> held = one.try_acquire();
    std::atomic<bool> waits{false};
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto work = [&, home = weir::this_loop()] {
        while (!waits) std::this_thread::yield();
        dawdle();
        EXPECT_TRUE(home.post([&] { held.reset(); }));
      };
      const auto owned = start(s, work);
      waits = true;
      (void)co_await one.acquire();
    });
  });
}

/// An error that says on which thread it was destroyed.
struct marked_error {
  explicit marked_error(std::atomic<int>& elsewhere) : elsewhere_(&elsewhere) {}
  marked_error(const marked_error&) = default;
  marked_error& operator=(const marked_error&) = default;
  ~marked_error() {
    if (std::this_thread::get_id() != home_) ++*elsewhere_;
  }
  static inline std::thread::id home_;

 private:
  std::atomic<int>* elsewhere_;
};

}  // namespace

TEST(loop_thread, of_a_run_keeps_it_from_being_judged_deadlocked) {
  woken_only_by_a_post([](weir::scope& s, auto work) {
    auto t = std::make_unique<weir::loop_thread>(s);
    EXPECT_TRUE(t->post(work));
    return t;
  });
}

TEST(runtime, of_a_run_keeps_it_from_being_judged_deadlocked) {
  woken_only_by_a_post([](weir::scope& s, auto work) {
    auto rt = std::make_unique<weir::runtime>(s, weir::runtime_options{.threads = 2});
    EXPECT_TRUE(rt->at(1).post(work));
    return rt;
  });
}

TEST(pool_threads, an_otherwise_idle_loop_with_a_pool_is_not_deadlocked) {
  woken_only_by_a_post([](weir::scope& s, auto work) {
    auto p = std::make_unique<weir::pool>(s, weir::pool_options{.workers = 1});
    EXPECT_FALSE(p->try_submit(work));
    return p;
  });
}

TEST(loop_thread, a_run_whose_threads_have_ended_is_judged_again) {
  auto program = []() -> task<> {
    co_await weir::with_loop_thread([](weir::loop_thread&) -> task<> { co_return; });
    auto body = [](weir::pool& p) -> task<> { co_await p.close(); };
    co_await weir::with_pool({.workers = 2}, body);
    weir::counting_governor one(1);
    const auto held = one.try_acquire();
    (void)co_await one.acquire();
  };
  EXPECT_EQ(code_thrown_by([&] { weir::run(program()); }), errc::deadlock);
}

TEST(pool_threads, is_joined_although_the_grace_is_over) {
  std::latch begun(2);
  std::latch over(1);
  std::atomic<int> ended{0};
  std::optional<std::thread> after;
  weir::run([&]() -> task<> {
    auto job = [&] {
      begun.count_down();
      over.wait();
      ++ended;
    };
    auto body = [&](weir::scope& s) -> task<> {
      weir::pool p(s, {.name = "p", .workers = 2});
      EXPECT_FALSE(p.try_submit(job));
      EXPECT_FALSE(p.try_submit(job));
      begun.wait();
      co_return;
    };
    const auto watch = weir::on_event([&](const weir::event_info& e) {
      if (e.name == "cleanup_overdue")
        after.emplace([&] {
          dawdle();
          over.count_down();
        });
    });
    co_await weir::with_scope({.grace = 1ms}, body);
    EXPECT_EQ(ended, 2);
  });
  after->join();
}

TEST(loop_thread, a_loop_that_ends_with_the_answer_does_not_take_its_door_along) {
  weir::loop_thread t;
  auto op = []() -> task<int> { co_return 1; };
  int sum = 0;
  for (int i = 0; i < 500; ++i) sum += weir::run(weir::on(t, op));
  EXPECT_EQ(sum, 500);
}

TEST(loop_thread, a_limit_on_a_test_clock_is_not_one_on_the_clock_of_a_thread) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const weir::loop_thread t(s);
      weir::pool p(s, {.workers = 1});
      auto op = [](weir::context& c) -> task<bool> {
        co_await weir::sleep(1us);
        co_return c.deadline().has_value();
      };
      EXPECT_FALSE(co_await weir::with_timeout(1h, weir::on(t, op)));
      EXPECT_FALSE(co_await weir::with_timeout(1h, p.run(op)));
    });
  });
}

TEST(loop_thread, a_cancellation_on_a_test_clock_leaves_shields_on_a_thread_their_time) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const weir::loop_thread t(s);
      std::latch begun(1);
      std::atomic<bool> asked{false};
      std::atomic<bool> finished{false};
      auto inside = [&]() -> task<> {
        begun.count_down();
        while (!asked) co_await weir::sleep(1us);
        for (int i = 0; i < 10; ++i) co_await weir::sleep(1us);
        finished = true;
      };
      auto op = [&]() -> task<> { co_await weir::shield(1h, inside); };
      auto caller = s.spawn(weir::on(t, op));
      co_await weir::yield();
      begun.wait();
      caller.cancel();
      t.post([&] { asked = true; });  // after the cancellation
      (void)co_await weir::settle(caller);
      EXPECT_TRUE(finished);
    });
  });
}

TEST(pool_threads, a_real_pool_is_refused_in_a_simulation) {
  weir::pool real({.name = "real", .workers = 1});
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    EXPECT_EQ(code_of(co_await error_of(real.run([] {}))), errc::wrong_loop);
    EXPECT_EQ(code_of(co_await error_of(real.submit([] {}))), errc::wrong_loop);
    EXPECT_EQ(code_of(co_await error_of(real.close())), errc::wrong_loop);
    EXPECT_EQ(real.try_submit([] {}), errc::wrong_loop);
  });
  weir::run(real.close());
}

TEST(loop_thread, an_error_that_came_home_is_destroyed_at_home) {
  std::atomic<int> elsewhere{0};
  marked_error::home_ = std::this_thread::get_id();
  auto op = [&]() -> task<> {
    throw marked_error(elsewhere);
    co_return;
  };
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const weir::loop_thread t(s);
      for (int i = 0; i < 300; ++i) EXPECT_NE(co_await error_of(weir::on(t, op)), nullptr);
      for (int i = 0; i < 50; ++i) {
        auto body = [&](weir::pool& p) -> task<> {
          EXPECT_NE(co_await error_of(p.run(op)), nullptr);
          EXPECT_FALSE(p.try_submit(op));
          EXPECT_NE(co_await error_of(p.close()), nullptr);
        };
        co_await weir::with_pool({.workers = 1}, body);
      }
    });
  });
  EXPECT_EQ(elsewhere, 0);
}

// A loop that is late itself: what the other side would do by itself, it has done meanwhile.
TEST(loop_thread, the_deadline_of_a_busy_caller_is_no_error_that_the_caller_could_catch) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      const weir::loop_thread t(s);
      std::latch begun(1);
      bool caught = false;
      auto forever = [&]() -> task<> {
        begun.count_down();
        co_await weir::sleep(1000h);
      };
      auto call = [&]() -> task<> {
        try {
          co_await weir::on(t, forever);
        } catch (...) {
          caught = true;
        }
      };
      const auto limit = weir::now() + 5ms;
      auto limited = s.spawn(weir::settle(weir::with_deadline(limit, call)));
      co_await weir::yield();
      begun.wait();
      while (std::chrono::steady_clock::now() < limit) std::this_thread::yield();
      dawdle();
      const auto ended = co_await std::move(limited);
      EXPECT_TRUE(ended.is_error() && holds<weir::timeout_error>(ended.error()));
      EXPECT_FALSE(caught);
    });
  });
}

TEST(pool_threads, the_value_of_a_submitted_job_is_gone_when_close_returns) {
  std::atomic<bool> closed{false};
  std::atomic<bool> destroyed{false};
  auto slow_end = [&](int*) {
    for (int i = 0; i < 2000 && !closed; ++i) std::this_thread::yield();
    destroyed = true;
  };
  int dummy = 0;
  weir::run([&]() -> task<> {
    auto body = [&](weir::pool& p) -> task<> {
      EXPECT_FALSE(p.try_submit([&] { return std::shared_ptr<int>(&dummy, slow_end); }));
      co_await p.close();
      closed = true;
      EXPECT_TRUE(destroyed);
    };
    co_await weir::with_pool({.workers = 1}, body);
  });
}

TEST(pool_threads, jobs_that_another_thread_drops_are_gone_when_close_returns) {
  for (int round = 0; round < 20; ++round) {
    std::latch hold(1);
    std::atomic<bool> begun{false};
    std::atomic<bool> closed{false};
    std::atomic<bool> destroyed{false};
    auto slow_end = [&](int*) {
      for (int i = 0; i < 2000 && !closed; ++i) std::this_thread::yield();
      destroyed = true;
    };
    int dummy = 0;
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::pool p(s, {.name = "p", .workers = 1});
        EXPECT_FALSE(p.try_submit([&] {
          begun = true;
          hold.wait();
        }));
        while (!begun) std::this_thread::yield();
        EXPECT_FALSE(p.try_submit([kept = std::shared_ptr<int>(&dummy, slow_end)] {}));
        std::thread other([&] {
          hold.count_down();
          p.cancel();
        });
        co_await p.close();
        closed = true;
        EXPECT_TRUE(destroyed);
        other.join();
      });
    });
  }
}

TEST(loop_thread_death, destroying_one_of_the_outside_on_a_loop_aborts_with_its_name) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto t = std::make_unique<weir::loop_thread>(weir::loop_thread_options{.name = "outside"});
        weir::run([&]() -> task<> {
          t.reset();
          co_return;
        });
      },
      "loop_thread 'outside', made outside of loops, is destroyed on a loop");
}
