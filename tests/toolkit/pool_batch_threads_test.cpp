// SPDX-License-Identifier: MIT
// Pools large enough that callers get room in batches, on real threads.
#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

/// Its batches are of eight places.
weir::pool_options of_batches() { return {.name = "storm", .workers = 2, .queue_size = 62}; }

constexpr int storm_loops = 3;
constexpr int storm_rounds = 150;

}  // namespace

TEST(pool_batch, a_caller_that_waits_for_room_gets_the_first_place_although_a_batch_is_more) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::pool p(s, of_batches());
      std::latch first(1);
      std::latch rest(1);
      EXPECT_FALSE(p.try_submit([&] { first.wait(); }));
      for (int i = 1; i < 64; ++i) EXPECT_FALSE(p.try_submit([&] { rest.wait(); }));
      std::atomic<bool> ran{false};
      auto waiting = s.spawn(p.submit([&] { ran = true; }));
      co_await weir::sleep(5ms);
      EXPECT_FALSE(waiting.done());
      EXPECT_EQ(p.try_submit([] {}), errc::pool_full);
      first.count_down();
      co_await waiting;
      EXPECT_FALSE(ran);  // accepted, and behind all the others
      rest.count_down();
      co_await p.close();
      EXPECT_TRUE(ran);
    });
  });
}

// The loop makes no turn between the end of the first jobs and the attempts, so no caller becomes
// urgent meanwhile.
TEST(pool_batch, a_free_place_is_not_refused_although_a_caller_waits_for_a_batch) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::pool p(s, of_batches());
      std::latch first(1);
      std::latch rest(1);
      std::atomic<int> begun{0};
      std::atomic<bool> go{false};
      std::atomic<bool> submitted{false};
      std::exception_ptr refused;
      for (int i = 0; i < 3; ++i) EXPECT_FALSE(p.try_submit([&] { first.wait(); }));
      EXPECT_FALSE(p.try_submit([&]() -> task<> {
        ++begun;
        go.wait(false);
        refused = co_await error_of(p.submit([] {}));
        submitted = true;
        submitted.notify_one();
        rest.wait();
      }));
      auto blocks = [&] {
        ++begun;
        rest.wait();
      };
      for (int i = 4; i < 64; ++i) EXPECT_FALSE(p.try_submit(blocks));
      auto waiting = s.spawn(p.submit([] {}));
      co_await weir::yield();
      EXPECT_EQ(p.try_submit([] {}), errc::pool_full);
      first.count_down();
      while (begun < 2) std::this_thread::yield();  // the first three have ended: three are free
      go = true;
      go.notify_one();
      submitted.wait(false);  // the caller that waits got one, this one the next
      EXPECT_EQ(refused, nullptr);
      EXPECT_FALSE(p.try_submit([] {}));
      EXPECT_EQ(p.try_submit([] {}), errc::pool_full);
      rest.count_down();
      co_await waiting;
      co_await p.close();
    });
  });
}

TEST(pool_batch, every_accepted_job_runs_once_whoever_submits_it_and_however) {
  std::atomic<int> ran{0};
  std::atomic<int> accepted{0};
  weir::pool p(of_batches());
  std::vector<std::thread> threads;
  for (int t = 0; t < storm_loops; ++t) {
    threads.emplace_back([&] {
      weir::run([&]() -> task<> {
        auto submit = [&]() -> task<> {
          for (int i = 0; i < storm_rounds; ++i) {
            co_await p.submit([&] { ++ran; });
            ++accepted;
          }
        };
        auto call = [&]() -> task<> {
          for (int i = 0; i < storm_rounds; ++i) {
            const int value = co_await p.run([&, i] {
              ++ran;
              return i;
            });
            EXPECT_EQ(value, i);
            ++accepted;
          }
        };
        auto try_it = [&]() -> task<> {
          for (int i = 0; i < storm_rounds; ++i) {
            if (!p.try_submit([&] { ++ran; })) ++accepted;
            co_await weir::yield();
          }
        };
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          for (int i = 0; i < 4; ++i) s.spawn(submit);
          for (int i = 0; i < 4; ++i) s.spawn(call);
          s.spawn(try_it);
          co_await s.join();
        });
      });
    });
  }
  for (auto& t : threads) t.join();
  weir::run(p.close());
  EXPECT_EQ(ran, accepted);
  EXPECT_GE(accepted, storm_loops * 8 * storm_rounds);
}

TEST(pool_batch, what_is_cancelled_while_it_waits_is_queued_or_runs_leaves_no_place_taken) {
  std::atomic<int> ran{0};
  std::atomic<int> values{0};
  std::atomic<int> accepted{0};
  weir::pool p(of_batches());
  std::vector<std::thread> threads;
  for (int t = 0; t < storm_loops; ++t) {
    threads.emplace_back([&, t] {
      weir::run([&]() -> task<> {
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          auto job = [&]() -> task<int> {
            co_await weir::yield();
            ++ran;
            co_return 1;
          };
          for (int round = 0; round < storm_rounds; ++round) {
            std::vector<weir::child<int>> runs;
            std::vector<weir::child<void>> submits;
            for (int i = 0; i < 20; ++i) runs.push_back(s.spawn(p.run(job)));
            for (int i = 0; i < 20; ++i) submits.push_back(s.spawn(p.submit([&] { ++ran; })));
            for (int i = 0; i < (round + t) % 5; ++i) co_await weir::yield();
            for (auto& r : runs) r.cancel();
            for (auto& r : submits) r.cancel();
            for (auto& r : runs) values += (co_await weir::settle(std::move(r))).is_value() ? 1 : 0;
            for (auto& r : submits)
              accepted += (co_await weir::settle(std::move(r))).is_value() ? 1 : 0;
          }
        });
      });
    });
  }
  for (auto& t : threads) t.join();
  weir::run([&]() -> task<> {
    std::latch gate(1);
    for (int i = 0; i < 64; ++i) co_await p.submit([&] { gate.wait(); });  // all of its places
    EXPECT_EQ(p.try_submit([] {}), errc::pool_full);
    gate.count_down();
    co_await p.close();
  });
  EXPECT_GE(ran, values + accepted);
}

TEST(pool_batch, runs_of_plain_callables_race_with_the_cancel_of_their_pool) {
  for (int round = 0; round < 40; ++round) {
    std::atomic<int> answers{0};
    weir::pool p(of_batches());
    std::vector<std::thread> threads;
    for (int t = 0; t < storm_loops; ++t) {
      threads.emplace_back([&] {
        weir::run([&]() -> task<> {
          co_await weir::with_scope([&](weir::scope& s) -> task<> {
            auto call = [&]() -> task<> {
              (void)co_await weir::settle(p.run([] { return std::make_unique<int>(1); }));
              ++answers;
            };
            for (int i = 0; i < 60; ++i) s.spawn(call);
            co_await s.join();
          });
        });
      });
    }
    std::thread([&] { p.cancel(); }).join();
    for (auto& t : threads) t.join();
    EXPECT_EQ(answers, storm_loops * 60);
    weir::run(p.close());
  }
}
