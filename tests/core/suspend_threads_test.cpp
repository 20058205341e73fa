// SPDX-License-Identifier: MIT
// resumer used from other threads: every answer arrives once on the loop's own thread, also when
// it meets a cancellation or comes after the loop has ended.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "support/test_support.hpp"

using namespace test_support;
using weir::cancel_result;
using weir::task;

namespace {

/// Waits for a number that a new thread of its own delivers.
task<int> from_thread(int value, std::thread& worker) {
  co_return co_await weir::suspend<int>([&](weir::resumer<int> r) {
    worker = std::thread([r, value]() mutable { r.complete(value); });
    return [] { return cancel_result::no; };
  });
}

}  // namespace

TEST(suspend, a_thread_completes_it_and_the_fiber_goes_on_at_home) {
  long sum = 0;
  auto home = std::this_thread::get_id();
  weir::run([&]() -> task<> {
    for (int i = 0; i < 200; ++i) {
      std::thread worker;
      int value = co_await from_thread(i, worker);
      sum += value;
      EXPECT_EQ(std::this_thread::get_id(), home);
      worker.join();
    }
  });
  EXPECT_EQ(sum, 199 * 200 / 2);
}

TEST(suspend, a_thread_fails_it) {
  weir::run([]() -> task<> {
    std::thread worker;
    auto error = co_await error_of(weir::suspend<int>([&](weir::resumer<int> r) {
      worker = std::thread([r]() mutable { r.fail(std::make_exception_ptr(boom(5))); });
      return [] { return cancel_result::no; };
    }));
    worker.join();
    EXPECT_EQ(boom_of(error), 5);
  });
}

TEST(suspend, of_many_threads_exactly_one_answer_is_delivered) {
  weir::run([]() -> task<> {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::thread> workers;
      int value = co_await weir::suspend<int>([&](weir::resumer<int> r) {
        for (int i = 1; i <= 8; ++i) workers.emplace_back([r, i]() mutable { r.complete(i); });
        return [] { return cancel_result::no; };
      });
      for (auto& worker : workers) worker.join();
      EXPECT_GE(value, 1);
      EXPECT_LE(value, 8);
    }
  });
}

TEST(suspend, many_fibers_are_completed_by_many_threads) {
  std::atomic<int> next{0};
  constexpr int count = 1000;
  weir::run([&]() -> task<> {
    std::vector<std::optional<weir::resumer<int>>> pending(count);
    std::vector<std::thread> workers;
    std::vector<int> got(count, -1);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto wait = [&](std::size_t i) -> task<> {
        int value = co_await weir::suspend<int>([&](weir::resumer<int> r) {
          pending[i].emplace(std::move(r));
          return [] { return cancel_result::no; };
        });
        got[i] = value;
      };
      for (std::size_t i = 0; i < count; ++i) s.spawn(wait(i));
      while (!pending.back()) co_await weir::yield();
      for (int w = 0; w < 4; ++w) {
        workers.emplace_back([&] {
          for (int i = next++; i < count; i = next++) {
            pending[static_cast<std::size_t>(i)]->complete(i);
          }
        });
      }
      co_await s.join();
    });
    for (auto& worker : workers) worker.join();
    for (int i = 0; i < count; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
  });
}

TEST(suspend, an_answer_of_a_thread_that_meets_a_cancellation_is_delivered_or_withdrawn) {
  weir::run([]() -> task<> {
    for (int round = 0; round < 100; ++round) {
      std::thread worker;
      auto value = std::make_shared<int>(round);
      int delivered = 0;
      std::optional<weir::future<void>> ended;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto child = s.spawn([&]() -> task<> {
          auto got = co_await weir::suspend<std::shared_ptr<int>>(
              [&](weir::resumer<std::shared_ptr<int>> r) {
                worker = std::thread([r, &value]() mutable { r.complete(value); });
                return [] { return cancel_result::done; };
              });
          delivered += *got == round;
        });
        ended = child;
        while (!worker.joinable()) co_await weir::yield();
        child.cancel("stop");
      });
      worker.join();
      const auto* outcome = ended->peek();
      EXPECT_TRUE(outcome != nullptr);
      EXPECT_EQ(delivered, outcome != nullptr && outcome->is_value() ? 1 : 0);
    }
  });
}

TEST(suspend, a_confirmation_by_a_thread_after_later_unwinds_the_fiber) {
  weir::run([]() -> task<> {
    std::optional<weir::resumer<int>> pending;
    std::thread worker;
    bool went_on = false;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto child = s.spawn([&]() -> task<> {
        (void)co_await weir::suspend<int>([&](weir::resumer<int> r) {
          pending.emplace(std::move(r));
          return [&] {
            worker = std::thread([&] { pending->complete(1); });
            return cancel_result::later;
          };
        });
        went_on = true;
      });
      while (!pending) co_await weir::yield();
      child.cancel("stop");
    });
    worker.join();
    EXPECT_FALSE(went_on);
  });
}

TEST(suspend, the_last_copy_dropped_by_a_thread_ends_it_as_abandoned) {
  weir::run([]() -> task<> {
    std::thread worker;
    auto error = co_await error_of(weir::suspend<int>([&](weir::resumer<int> r) {
      worker = std::thread([kept = std::move(r)] { (void)kept; });
      return [] { return cancel_result::no; };
    }));
    worker.join();
    EXPECT_EQ(code_of(error), weir::errc::abandoned);
  });
}

TEST(suspend, an_answer_after_the_loop_has_ended_does_nothing) {
  std::optional<weir::resumer<int>> kept;
  weir::run([&]() -> task<> {
    int value = co_await weir::suspend<int>([&](weir::resumer<int> r) {
      kept.emplace(r);
      r.complete(1);
      return [] { return cancel_result::done; };
    });
    EXPECT_EQ(value, 1);
  });
  kept->complete(2);
  std::thread([&] { kept->fail(std::make_exception_ptr(boom(3))); }).join();
  std::thread([gone = std::move(kept)] { (void)gone; }).join();
}
