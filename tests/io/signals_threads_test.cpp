// SPDX-License-Identifier: MIT
// io::signals across threads: a signal may arrive on any of them, and on several at once.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <weir/io.hpp>

#include "support/test_support.hpp"

using namespace test_support;
using weir::errc;
using weir::task;
namespace io = weir::io;

TEST(signals_threads, a_loop_that_waits_for_a_signal_sleeps_and_is_not_deadlocked) {
  std::thread sender;
  weir::run([&]() -> task<> {
    auto stream = io::signals(SIGUSR1);
    sender = std::thread([] { ::raise(SIGUSR1); });  // it arrives on that thread
    EXPECT_EQ(co_await stream.next(), SIGUSR1);
  });
  sender.join();
}

TEST(signals_threads, a_signal_that_arrives_on_the_sleeping_thread_wakes_it) {
  std::thread sender;
  const pthread_t loop = ::pthread_self();
  weir::run([&]() -> task<> {
    auto stream = io::signals(SIGUSR1);
    sender = std::thread([loop] { ::pthread_kill(loop, SIGUSR1); });
    EXPECT_EQ(co_await stream.next(), SIGUSR1);
  });
  sender.join();
}

TEST(signals_threads, a_loop_that_sleeps_in_its_reactor_is_woken_by_a_signal_on_any_thread) {
  std::thread sender;
  const pthread_t loop = ::pthread_self();
  weir::run([&]() -> task<> {
    auto l = co_await io::listen();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto accepting = s.spawn([&]() -> task<> { (void)co_await l.accept(); });
      co_await weir::sleep(1ms);  // it has a reactor now
      auto stream = io::signals(SIGUSR1, SIGUSR2);
      sender = std::thread([loop] {
        ::raise(SIGUSR1);
        ::pthread_kill(loop, SIGUSR2);
      });
      const int first = *co_await stream.next();
      EXPECT_EQ(first + *co_await stream.next(), SIGUSR1 + SIGUSR2);
      accepting.cancel();
    });
  });
  sender.join();
}

TEST(signals_threads, streams_of_several_loops_see_each_signal) {
  std::atomic<int> ready{0};
  std::atomic<int> seen{0};
  std::vector<std::thread> loops;
  for (int i = 0; i < 4; ++i)
    loops.emplace_back([&] {
      weir::run([&]() -> task<> {
        auto stream = io::signals(SIGUSR1);
        ++ready;
        EXPECT_EQ(co_await stream.next(), SIGUSR1);
        ++seen;
      });
    });
  while (ready < 4) std::this_thread::yield();
  ::kill(::getpid(), SIGUSR1);
  for (std::thread& t : loops) t.join();
  EXPECT_EQ(seen, 4);
}

TEST(signals_threads, a_storm_of_signals_while_streams_come_and_go_loses_none_that_counts) {
  std::atomic<bool> stop{false};
  const auto keeper = io::signals(SIGUSR1, SIGUSR2);  // the storm must not end the program
  std::vector<std::thread> senders;
  for (const int number : {SIGUSR1, SIGUSR2})
    senders.emplace_back([&stop, number] {
      while (!stop) ::raise(number);
    });
  std::vector<std::thread> loops;
  for (int i = 0; i < 2; ++i)
    loops.emplace_back([] {
      weir::run([]() -> task<> {
        for (int round = 0; round < 100; ++round) {
          auto stream = io::signals(SIGUSR1, SIGUSR2);
          for (int pull = 0; pull < round % 5; ++pull) {
            const auto number = co_await stream.next();
            EXPECT_TRUE(number == SIGUSR1 || number == SIGUSR2);
          }
          (void)co_await weir::race(stream.next(), weir::checkpoint());
        }
      });
    });
  for (std::thread& t : loops) t.join();
  stop = true;
  for (std::thread& t : senders) t.join();
}

TEST(signals_threads, a_stream_is_refused_on_another_loop_while_its_own_runs) {
  weir::run([]() -> task<> {
    auto stream = io::signals(SIGUSR1);
    std::exception_ptr error;
    std::thread other([&] {
      weir::run([&]() -> task<> { error = co_await attempt([&] { return stream.next(); }); });
    });
    other.join();
    EXPECT_EQ(code_of(error), errc::wrong_loop);
    co_return;
  });
}
