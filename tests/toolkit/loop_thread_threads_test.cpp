// SPDX-License-Identifier: MIT
// loop_thread, runtime and on with real threads.
#include <atomic>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

/// Of this process, as the system counts them; a sanitizer may have one of its own.
int thread_count() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("Threads:")) return std::atoi(line.c_str() + 8);
  return -1;
}

}  // namespace

TEST(loop_thread, many_concurrent_calls_in_both_directions_all_come_back) {
  constexpr int callers = 50;
  constexpr int calls = 40;
  long sum = 0;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s, {.name = "a"});
      weir::loop_thread b(s, {.name = "b"});
      const weir::loop_ref home = weir::this_loop();
      auto back = [home]() -> task<int> {
        EXPECT_EQ(weir::this_loop(), home);
        co_return 1;
      };
      auto forth = [&]() -> task<int> {
        if (weir::random() % 4 == 0) co_await weir::yield();
        co_return 1 + co_await weir::on(home, back);
      };
      auto caller = [&](weir::loop_ref there) -> task<> {
        for (int i = 0; i < calls; ++i) sum += co_await weir::on(there, forth);
      };
      std::vector<weir::child<void>> all;
      for (int i = 0; i < callers; ++i)
        all.push_back(s.spawn(caller(i % 2 == 0 ? weir::loop_ref(a) : weir::loop_ref(b))));
      for (auto& c : all) co_await c;
    });
  });
  EXPECT_EQ(sum, 2L * callers * calls);
}

TEST(loop_thread, cancellations_at_any_moment_are_confirmed_by_the_other_thread) {
  std::atomic<int> alive{0};
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread t(s, {.name = "t"});
      auto remote = [&]() -> task<int> {
        ++alive;
        struct leave {
          std::atomic<int>& n;
          ~leave() { --n; }
        } guard{alive};
        for (int i = 0; i < 3; ++i) co_await weir::yield();
        co_await weir::sleep(1ms);
        co_return 1;
      };
      for (int round = 0; round < 300; ++round) {
        auto caller = s.spawn(weir::on(t, remote));
        for (int i = 0; i < round % 7; ++i) co_await weir::yield();
        if (round % 10 == 0) co_await weir::sleep(1ms);
        caller.cancel();
        auto end = co_await weir::settle(caller);
        EXPECT_FALSE(end.is_error());
        EXPECT_EQ(alive, 0);
      }
    });
  });
}

TEST(loop_thread, ending_with_pending_calls_joins_them_and_tells_their_callers) {
  for (int round = 0; round < 30; ++round) {
    std::atomic<int> alive{0};
    std::atomic<int> gone{0};
    weir::run([&]() -> task<> {
      auto remote = [&]() -> task<> {
        ++alive;
        struct leave {
          std::atomic<int>& n;
          ~leave() { --n; }
        } guard{alive};
        co_await forever();
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        co_await weir::with_loop_thread([&](weir::loop_thread& t) -> task<> {
          auto caller = [&, there = weir::loop_ref(t)]() -> task<> {
            gone += code_of(co_await error_of(weir::on(there, remote))) == errc::loop_gone ? 1 : 0;
          };
          for (int i = 0; i < 20; ++i) s.spawn(caller);
          if (round % 3 != 0) co_await wait_until([&] { return alive > round % 20; });
          co_await weir::yield();
        });
        EXPECT_EQ(alive, 0);
        co_await s.join();
      });
    });
    EXPECT_EQ(gone, 20);
  }
}

TEST(loop_thread, outside_of_loops_the_destructor_cancels_and_joins) {
  const int before = thread_count();
  std::atomic<bool> begun{false};
  std::atomic<bool> unwound{false};
  std::atomic<bool> gone{false};
  auto t = std::make_unique<weir::loop_thread>(weir::loop_thread_options{.name = "outside"});
  const weir::loop_ref ref = *t;
  EXPECT_EQ(thread_count(), before + 1);
  std::thread caller([&] {
    weir::run([&]() -> task<> {
      auto remote = [&]() -> task<> {
        begun = true;
        struct leave {
          std::atomic<bool>& flag;
          ~leave() { flag = true; }
        } guard{unwound};
        co_await forever();
      };
      gone = code_of(co_await error_of(weir::on(ref, remote))) == errc::loop_gone;
    });
  });
  while (!begun) std::this_thread::yield();
  t.reset();
  EXPECT_TRUE(unwound);
  caller.join();
  EXPECT_TRUE(gone);
  EXPECT_FALSE(ref.alive());
  EXPECT_EQ(thread_count(), before);
}

TEST(loop_thread, post_is_in_order_per_thread_and_false_after_the_end) {
  auto t = std::make_unique<weir::loop_thread>();
  const weir::loop_ref ref = *t;
  std::promise<std::vector<int>> all;
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 5000; ++i) EXPECT_TRUE(ref.post([&, i] { seen.push_back(i); }));
    EXPECT_TRUE(ref.post([&] { all.set_value(seen); }));
  });
  const std::vector<int> got = all.get_future().get();
  poster.join();
  ASSERT_EQ(got.size(), 5000U);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  t.reset();
  auto token = std::make_shared<int>(1);
  EXPECT_FALSE(ref.post([token] { ADD_FAILURE(); }));
  EXPECT_EQ(token.use_count(), 1);
}

TEST(loop_thread, keep_alive_holds_an_idle_loop_until_a_plain_thread_has_posted) {
  weir::run([]() -> task<> {
    weir::counting_governor one(1);
    std::optional<weir::permit> held = one.try_acquire();
    const weir::loop_ref here = weir::this_loop();
    std::thread worker([&, guard = here.keep_alive()]() mutable {
      for (int i = 0; i < 2000; ++i) std::this_thread::yield();
      EXPECT_TRUE(here.post([&] { held.reset(); }));
    });
    auto second = co_await one.acquire();  // a deadlock, as far as this loop can see
    worker.join();
    EXPECT_TRUE(one.try_acquire() == std::nullopt);
  });
}

TEST(loop_thread, of_a_scope_whose_body_ends_at_once_the_thread_ends_too) {
  const int before = thread_count();
  weir::run([]() -> task<> {
    weir::loop_ref there;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const weir::loop_thread t(s);
      there = t;
      co_return;
    });
    EXPECT_FALSE(there.alive());
  });
  EXPECT_EQ(thread_count(), before);
}

TEST(loop_thread, a_real_and_a_simulated_loop_do_not_call_each_other) {
  weir::loop_thread real;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    EXPECT_EQ(code_of(co_await error_of(weir::on(real, ready(1)))), errc::wrong_loop);
  });
}

TEST(runtime, spreads_calls_over_its_threads_and_ends_with_all_of_them) {
  const int before = thread_count();
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.name = "rt", .threads = 4});
      std::vector<weir::child<void>> parked;
      for (int i = 0; i < 20; ++i) {
        parked.push_back(s.spawn_on(rt.any(), forever));
        co_await weir::yield();
      }
      for (std::size_t i = 0; i < rt.size(); ++i) EXPECT_TRUE(rt.at(i).alive());
      for (int i = 0; i < 200; ++i) {
        auto where = []() -> task<weir::loop_ref> { co_return weir::this_loop(); };
        const weir::loop_ref there = rt.any();
        EXPECT_EQ(co_await weir::on(there, where), there);
      }
      for (auto& p : parked) p.cancel();
      for (auto& p : parked) EXPECT_TRUE((co_await weir::settle(p)).is_cancelled());
    });
  });
  EXPECT_EQ(thread_count(), before);
  {
    const weir::runtime rt({.threads = 3});
    EXPECT_EQ(thread_count(), before + 3);
    std::promise<void> done;
    EXPECT_TRUE(rt.any().post([&] { done.set_value(); }));
    done.get_future().wait();
  }
  EXPECT_EQ(thread_count(), before);
}
