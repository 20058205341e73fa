// SPDX-License-Identifier: MIT
// channel with real threads: what was accepted arrives exactly once and in order per sender, and no
// wake-up is lost, if either side is cancelled, closed or destroyed meanwhile.
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "flow_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;
using number = std::int64_t;
using int_sender = weir::sender<number>;
using int_receiver = weir::receiver<number>;

namespace {

constexpr int values_per_sender = test_support::sanitized ? 2'000 : 20'000;
constexpr number sender_block =
    1'000'000'000;  // a value is its sender times this, and a rising number

/// Sends from a plain thread, which can only try again.
void send_stubbornly(int_sender tx, int who, int count) {
  for (int i = 0; i < count; ++i)
    while (tx.try_send(who * sender_block + i).full()) std::this_thread::yield();
}

task<> send_block(int_sender tx, int who, int count) {
  for (int i = 0; i < count; ++i) co_await tx.send(who * sender_block + i);
}

/// Takes values until the end and counts them; checks that each sender's are in order.
task<> take_to_the_end(int_receiver& from, long& count) {
  std::map<number, number> next;
  for (;;) {
    auto v = co_await from.next();
    if (!v) co_return;
    ++count;
    EXPECT_GE(*v % sender_block, next[*v / sender_block]) << "out of order, or twice";
    next[*v / sender_block] = *v % sender_block + 1;
  }
}

}  // namespace

TEST(channel_threads, what_plain_threads_send_arrives_once_and_in_order_per_thread) {
  for (std::int64_t capacity : {1, 3, 64}) {
    const int count = capacity == 1 ? values_per_sender / 10 : values_per_sender;
    long got = 0;
    std::vector<std::thread> threads;
    weir::run([&]() -> task<> {
      auto [tx, rx] = weir::channel<number>(capacity);
      for (int who = 0; who < 4; ++who) threads.emplace_back(send_stubbornly, tx, who, count);
      tx = int_sender();
      co_await take_to_the_end(rx, got);
    });
    for (auto& t : threads) t.join();
    EXPECT_EQ(got, 4L * count);
  }
}

TEST(channel_threads, what_loops_send_arrives_once_and_in_order_per_sender) {
  for (std::int64_t capacity : {1, 7}) {
    long got = 0;
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::loop_thread a(s), b(s);
        auto [tx, rx] = weir::channel<number>(capacity);
        for (int who = 0; who < 6; ++who) {
          const weir::loop_ref where = who % 3 == 0 ? a.ref() : b.ref();
          s.spawn_on(who % 3 == 2 ? weir::this_loop() : where,
                     send_block(tx, who, values_per_sender / 6));
        }
        tx = int_sender();
        co_await take_to_the_end(rx, got);
      });
    });
    EXPECT_EQ(got, 6L * (values_per_sender / 6));
  }
}

namespace {

/// The far side of a ping-pong: makes its channel on its own loop.
struct far_side {
  std::atomic<bool> ready{false};
  int_sender tx;

  task<> echo(int_sender back) {
    auto [to, from] = weir::channel<number>(1);
    tx = std::move(to);
    ready = true;
    for (;;) {
      auto v = co_await from.next();
      if (!v) co_return;
      co_await back.send(*v + 1);
    }
  }
};

}  // namespace

TEST(channel_threads, a_ping_pong_between_two_threads_loses_no_wake_up) {
  weir::run([]() -> task<> {
    far_side far;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread t(s);
      auto [back, rx] = weir::channel<number>(1);
      auto other = s.spawn_on(t, far.echo(std::move(back)));
      while (!far.ready) co_await weir::sleep(1ms);
      int_sender tx = std::move(far.tx);
      for (int i = 0; i < values_per_sender / 2; ++i) {
        co_await tx.send(i);
        auto answer = co_await rx.next();
        EXPECT_EQ(answer, i + 1);
      }
      tx = int_sender();
      co_await other;
    });
  });
}

TEST(channel_threads, random_cancellation_of_sends_loses_and_doubles_nothing) {
  std::atomic<long> accepted{0};
  long got = 0;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s), b(s);
      auto [tx, rx] = weir::channel<number>(2);
      auto sends = [&, mine = tx](int who) mutable -> task<> {
        auto copy = mine;
        for (int i = 0; i < 200; ++i) {
          co_await copy.send(who * sender_block + i);
          ++accepted;
        }
      };
      auto consumer = s.spawn(take_to_the_end(rx, got));
      for (int round = 0; round < (test_support::sanitized ? 60 : 300); ++round) {
        std::vector<weir::child<void>> senders;
        auto start = [&](int i) { return sends(round * 4 + i); };
        for (int i = 0; i < 4; ++i) senders.push_back(s.spawn_on(i % 2 == 0 ? a : b, start(i)));
        for (auto i = weir::random() % 20; i > 0; --i) co_await weir::yield();
        if (round % 10 == 0) co_await weir::sleep(1ms);
        for (auto& one : senders) one.cancel();
        for (auto& one : senders) co_await weir::settle(one);
      }
      tx.close();
      co_await consumer;
    });
  });
  EXPECT_EQ(got, accepted);
}

TEST(channel_threads, random_cancellation_of_consumers_loses_and_doubles_nothing) {
  long got = 0;
  constexpr int count = values_per_sender / 8;
  std::vector<std::thread> threads;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto [tx, rx] = weir::channel<number>(4);
      for (int who = 0; who < 3; ++who) threads.emplace_back(send_stubbornly, tx, who, count);
      tx = int_sender();
      while (got < count) {
        auto one = s.spawn(take_to_the_end(rx, got));
        auto other = s.spawn(take_to_the_end(rx, got));
        for (auto i = weir::random() % 20; i > 0; --i) co_await weir::yield();
        one.cancel();
        co_await weir::yield();
        other.cancel();
        co_await weir::settle(one);
        co_await weir::settle(other);
      }
      co_await take_to_the_end(rx, got);
    });
  });
  for (auto& t : threads) t.join();
  EXPECT_EQ(got, 3L * count);
}

TEST(channel_threads, a_receiver_that_goes_away_refuses_all_who_wait_and_all_who_come) {
  for (int round = 0; round < (test_support::sanitized ? 40 : 200); ++round) {
    std::atomic<int> refused{0};
    std::atomic<int> alive{0};
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::loop_thread a(s), b(s);
        auto [tx, rx] = weir::channel<std::shared_ptr<int>>(2);
        auto kept = std::make_shared<int>(1);
        auto sends = [&, mine = tx]() -> task<> {
          auto copy = mine;
          ++alive;
          for (;;) {
            auto make = [&] { return copy.send(kept); };
            const std::exception_ptr error = co_await attempt(make);
            if (error == nullptr) continue;
            EXPECT_EQ(code_of(error), errc::queue_closed);
            ++refused;
            co_return;
          }
        };
        for (int i = 0; i < 8; ++i) s.spawn_on(i % 2 == 0 ? a : b, sends);
        std::thread plain([&, copy = tx]() mutable {
          while (copy.try_send(kept) != errc::queue_closed) std::this_thread::yield();
          ++refused;
        });
        tx = weir::sender<std::shared_ptr<int>>();
        while (alive < round % 9) co_await weir::sleep(1ms);
        for (int i = 0; i < round % 7; ++i) (void)co_await rx.next();
        rx = weir::receiver<std::shared_ptr<int>>();
        co_await s.join();
        plain.join();
        EXPECT_EQ(kept.use_count(), 1);
      });
    });
    EXPECT_EQ(refused, 9);
  }
}

TEST(channel_threads, the_last_sender_may_go_away_on_any_thread) {
  for (int round = 0; round < (test_support::sanitized ? 100 : 500); ++round) {
    std::vector<std::thread> threads;
    weir::run([&]() -> task<> {
      auto [tx, rx] = weir::channel<number>(8);
      for (int who = 0; who < 3; ++who) {
        threads.emplace_back([copy = tx, who, round]() mutable {
          if (round % 2 == 0) std::this_thread::yield();
          EXPECT_EQ(copy.try_send(who * sender_block), std::error_code());
          auto moved = std::move(copy);
        });
      }
      tx = int_sender();
      long got = 0;
      co_await take_to_the_end(rx, got);
      EXPECT_EQ(got, 3);
    });
    for (auto& t : threads) t.join();
  }
}

TEST(channel_threads, close_on_another_thread_ends_everybody_once) {
  for (int round = 0; round < (test_support::sanitized ? 50 : 300); ++round) {
    std::atomic<long> accepted{0};
    long got = 0;
    std::thread closer;
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::loop_thread a(s);
        auto [tx, rx] = weir::channel<number>(2);
        auto sends = [&](int_sender to, int who) -> task<> {
          for (int i = 0;; ++i) {
            auto make = [&] { return to.send(who * sender_block + i); };
            const std::exception_ptr error = co_await attempt(make);
            if (error != nullptr) co_return;
            ++accepted;
          }
        };
        for (int who = 0; who < 4; ++who)
          s.spawn_on(who % 2 == 0 ? a.ref() : weir::this_loop(), sends(tx, who));
        closer = std::thread([&, copy = tx, round]() mutable {
          while (accepted < 3 * round) std::this_thread::yield();
          copy.close();
        });
        co_await take_to_the_end(rx, got);
        co_await s.join();
      });
    });
    closer.join();
    EXPECT_EQ(got, accepted);
  }
}

TEST(channel_threads, a_receiver_that_goes_from_loop_to_loop_loses_no_wake_up) {
  constexpr int count = values_per_sender / 4;
  auto made = weir::channel<number>(2);
  std::thread other(send_stubbornly, std::move(made.first), 0, count);
  int_receiver rx = std::move(made.second);
  number expected = 0;
  bool ended = false;
  auto take = [&](number v) { EXPECT_EQ(v, expected++); };
  // Each loop takes some values and ends while it has asked to be called for the next one.
  auto some = [&]() -> task<> {
    for (int i = 0; i < 3 && !ended; ++i) {
      auto v = co_await rx.next();
      ended = !v.has_value();
      if (v) take(*v);
    }
    auto last = co_await weir::race(weir::yield(), rx.next());
    if (last.index() == 0) co_return;
    const std::optional<number> v = std::get<1>(last);
    ended = ended || !v.has_value();
    if (v) take(*v);
  };
  while (!ended) weir::run(some);
  other.join();
  EXPECT_EQ(expected, count);
}

TEST(channel_threads, loops_that_end_under_waiting_sends_lose_nothing_that_was_accepted) {
  std::atomic<long> accepted{0};
  long got = 0;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto [tx, rx] = weir::channel<number>(2);
      auto consumer = s.spawn(take_to_the_end(rx, got));
      auto sends = [&](int_sender to, int who) -> task<> {
        for (int i = 0;; ++i) {
          co_await to.send(who * sender_block + i);
          ++accepted;
        }
      };
      for (int round = 0; round < (test_support::sanitized ? 20 : 100); ++round) {
        const long before = accepted;
        co_await weir::with_loop_thread([&, &to = tx](weir::loop_thread& t) -> task<> {
          for (int i = 0; i < 3; ++i) {
            auto parks = [&sends, &to, who = round * 3 + i] { return sends(to, who); };
            s.spawn(weir::settle(weir::on(t, parks)));
          }
          while (accepted < before + round % 50) co_await weir::yield();
        });
      }
      tx = int_sender();
      co_await consumer;
      co_await s.idle();
    });
  });
  EXPECT_EQ(got, accepted);
}

// ------------------------------------------------------------------ threads that wait

// "send_blocking(v[, timeout]) on a thread without a loop" waits for room like `send`.
TEST(channel_threads, threads_that_wait_for_room_are_served_once_and_in_order) {
  for (std::int64_t capacity : {1, 3}) {
    constexpr int count = values_per_sender / 10;
    long got = 0;
    std::vector<std::thread> threads;
    weir::run([&]() -> task<> {
      auto [tx, rx] = weir::channel<number>(capacity);
      for (int who = 0; who < 3; ++who)
        threads.emplace_back([mine = tx, who] {
          for (int i = 0; i < count; ++i) mine.send_blocking(who * sender_block + i);
        });
      threads.emplace_back(
          [mine = tx]() mutable { weir::run(send_block(std::move(mine), 3, count)); });
      tx = int_sender();
      co_await take_to_the_end(rx, got);
    });
    for (auto& t : threads) t.join();
    EXPECT_EQ(got, 4L * count);
  }
}

// A bounded wait ends in time, sends nothing then, and leaves its place to those behind it.
TEST(channel_threads, a_thread_that_waits_too_long_sends_nothing) {
  auto [tx, rx] = weir::channel<number>(1);
  tx.send_blocking(1);
  EXPECT_THROW(tx.send_blocking(2, 1ms), weir::timeout_error);
  EXPECT_THROW(tx.send_blocking(3, 0ms), weir::timeout_error);
  EXPECT_EQ(tx.try_send(4), weir::errc::queue_full);
  weir::run([&, &from = rx, &to = tx]() -> task<> {
    auto first = co_await from.next();
    EXPECT_EQ(first, 1);
    EXPECT_TRUE(to.try_send(5).accepted());
    auto second = co_await from.next();
    EXPECT_EQ(second, 5);
  });
}

// Whether it is let in or its time is over is decided once, whoever is first.
TEST(channel_threads, a_limit_that_races_with_room_sends_once_or_not_at_all) {
  long sent = 0;
  long got = 0;
  weir::run([&]() -> task<> {
    auto [tx, rx] = weir::channel<number>(1);
    std::jthread producer([&sent, mine = std::move(tx)] {
      for (int i = 0; i < values_per_sender / 10; ++i) {
        try {
          mine.send_blocking(i, std::chrono::microseconds(i % 50));
          ++sent;
        } catch (const weir::timeout_error&) {
        }
      }
    });
    co_await take_to_the_end(rx, got);
  });
  EXPECT_EQ(got, sent);
}

TEST(channel_threads, a_thread_that_waits_hears_of_the_end) {
  for (const bool dropped : {false, true}) {
    std::error_code code;
    std::thread producer;
    weir::run([&]() -> task<> {
      auto [tx, rx0] = weir::channel<number>(1);
      std::optional<int_receiver> rx(std::move(rx0));
      std::atomic<int> begun = 0;
      producer = std::thread([&code, &begun, mine = std::move(tx)] {
        code = code_of(thrown_by([&] {
          for (int i = 0;; ++i) {
            begun = i;
            mine.send_blocking(i);
          }
          return 0;
        }));
      });
      while (begun < 1) co_await weir::sleep(1ms);
      dropped ? rx.reset() : rx->close();
    });
    producer.join();
    EXPECT_EQ(code, weir::errc::queue_closed);
  }
}

TEST(channel_threads, a_thread_of_a_loop_does_not_block) {
  weir::run([]() -> task<> {
    auto [tx, rx] = weir::channel<number>(1);
    const std::exception_ptr error = thrown_by([&to = tx] { return to.send_blocking(1), 0; });
    EXPECT_EQ(code_of(error), weir::errc::would_deadlock);
    EXPECT_NE(weir::describe(error).find("co_await send(v)"), std::string::npos);
    EXPECT_EQ(rx.try_next(), std::nullopt);
    co_return;
  });
}

// The producer of the page ends when the receiver has closed: closed is not full.
TEST(channel_threads, a_thread_that_tries_again_while_it_is_full_ends_with_the_channel) {
  std::thread producer;
  std::error_code last;
  weir::run([&]() -> task<> {
    auto [tx, rx] = weir::channel<number>(1);
    producer = std::thread([&last, mine = std::move(tx)] {
      const int_sender& out = mine;  // try_send is const
      for (int i = 0; !last; ++i) {
        while (out.try_send(i).full()) std::this_thread::yield();
        last = out.closed() ? out.try_send(i).code() : std::error_code();
      }
    });
    for (int i = 0; i < 3; ++i) (void)co_await rx.next();
    rx.close();
  });
  producer.join();
  EXPECT_EQ(last, weir::errc::queue_closed);
}
