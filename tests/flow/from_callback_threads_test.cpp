// SPDX-License-Identifier: MIT
// from_callback with real threads: what was kept arrives exactly once and in order per thread, and
// no wake-up is lost, if either side is cancelled, closed or destroyed meanwhile.
#include <atomic>
#include <map>
#include <optional>
#include <thread>

#include "flow_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;
using number = std::int64_t;
using weir::overflow;
using emitter = weir::emitter<number>;

namespace {

constexpr int values_per_thread = test_support::sanitized ? 2'000 : 20'000;
constexpr number thread_block =
    1'000'000'000;  // a value is its thread times this, and a rising number

/// Threads that emit; the last one that is done closes. The stop function joins them.
class crowd {
 public:
  crowd(int threads, int count) : size_(threads), count_(count), left_(threads) {}
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;
  ~crowd() { stop(); }

  auto starter(bool stubborn) {
    return [this, stubborn](const emitter& out) {
      for (int who = 0; who < size_; ++who)
        threads_.emplace_back([this, out, who, stubborn] { emit_all(out, who, stubborn); });
      return [this] { stop(); };
    };
  }
  void stop() {
    stopped_ = true;
    for (auto& t : threads_) t.join();
    threads_.clear();
  }
  long kept() const { return kept_; }

 private:
  void emit_all(const emitter& out, int who, bool stubborn) {
    for (int i = 0; i < count_ && !stopped_; ++i) {
      bool kept = out.emit(who * thread_block + i);
      while (!kept && stubborn && !stopped_) {
        std::this_thread::yield();
        kept = out.emit(who * thread_block + i);
      }
      if (kept) ++kept_;
    }
    if (--left_ == 0) out.close();
  }

  int size_;
  int count_;
  std::atomic<int> left_;
  std::atomic<long> kept_{0};
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

/// Counts what comes; checks that each thread's values are in order.
class checker {
 public:
  void see(number v) {
    ++count;
    EXPECT_GE(v % thread_block, next_[v / thread_block]) << "out of order, or twice";
    next_[v / thread_block] = v % thread_block + 1;
  }
  long count = 0;

 private:
  std::map<number, number> next_;
};

template <class S>
task<> check_to_the_end(S& from, checker& into) {
  for (;;) {
    auto v = co_await from.next();
    if (!v) co_return;
    into.see(*v);
  }
}

}  // namespace

TEST(from_callback_threads, what_is_kept_arrives_once_and_in_order_per_thread) {
  for (std::int64_t capacity : {1, 3, 64}) {
    const int count = capacity == 1 ? values_per_thread / 10 : values_per_thread;
    crowd all(4, count);
    checker got;
    weir::run([&]() -> task<> {
      auto s = weir::from_callback<number>(capacity, overflow::reject, all.starter(true));
      co_await check_to_the_end(s, got);
    });
    EXPECT_EQ(got.count, 4L * count);
  }
}

TEST(from_callback_threads, what_is_dropped_is_counted_and_the_rest_is_in_order) {
  for (overflow policy : {overflow::drop_oldest, overflow::drop_newest, overflow::conflate}) {
    crowd all(3, values_per_thread);
    checker got;
    std::atomic<long> dropped{0};
    weir::run([&]() -> task<> {
      auto watch = weir::on_event([&](const weir::event_info& e) {
        if (e.name == "dropped") dropped += static_cast<long>(e.number);
      });
      auto s = weir::from_callback<number>(4, policy, all.starter(false));
      co_await check_to_the_end(s, got);
    });
    EXPECT_EQ(got.count + dropped, 3L * values_per_thread);
  }
}

TEST(from_callback_threads, pulls_that_are_given_up_lose_no_item_and_no_wake_up) {
  crowd all(2, values_per_thread / 4);
  checker got;
  weir::run([&]() -> task<> {
    auto s = weir::from_callback<number>(2, overflow::reject, all.starter(true));
    for (;;) {
      auto won = co_await weir::race(s.next(), weir::sleep(5us));
      if (won.index() == 1) continue;
      if (!std::get<0>(won)) break;
      got.see(*std::get<0>(won));
    }
  });
  EXPECT_EQ(got.count, 2L * (values_per_thread / 4));
}

TEST(from_callback_threads, streams_that_end_while_threads_emit_stop_them) {
  for (int round = 0; round < values_per_thread / 40; ++round) {
    crowd all(2, 1'000'000);
    weir::run([&]() -> task<> {
      auto s = weir::from_callback<number>(2, overflow::drop_oldest, all.starter(false));
      for (int i = 0; i < round % 4; ++i) {
        auto v = co_await s.next();
        EXPECT_TRUE(v.has_value());
      }
      if (round % 2 == 0) co_await s.close();
    });
  }
}

TEST(from_callback_threads, emitters_may_outlive_the_stream_and_its_loop) {
  for (int round = 0; round < values_per_thread / 40; ++round) {
    std::optional<std::thread> other;
    std::atomic<bool> ended{false};
    weir::run([&]() -> task<> {
      auto s = weir::from_callback<number>(1, overflow::reject, [&](const emitter& out) {
        other.emplace([out, &ended] {
          number i = 0;
          while (!ended) (void)out.emit(i++);
          EXPECT_FALSE(out.emit(i));
          out.close();
        });
      });
      auto v = co_await s.next();
      EXPECT_TRUE(v.has_value());
    });
    ended = true;
    other->join();
  }
}

TEST(from_callback_threads, an_end_and_an_error_from_another_thread_wake_the_consumer) {
  for (int round = 0; round < values_per_thread / 20; ++round) {
    std::optional<std::thread> other;
    weir::run([&]() -> task<> {
      auto s = weir::from_callback<number>(1, overflow::reject, [&](const emitter& out) {
        other.emplace([out, round] {
          if (round % 2 == 0) {
            out.close();
          } else {
            out.fail(std::make_exception_ptr(boom(round)));
          }
        });
        return [&] { other->join(); };
      });
      const std::exception_ptr error = co_await error_of(s.next());
      EXPECT_EQ(boom_of(error), round % 2 == 0 ? -1 : round);
    });
  }
}

// Waiting for a callback is no deadlock, although nothing of the loop can end it.
TEST(from_callback_threads, fibers_of_another_loop_may_emit) {
  checker got;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread other(s);
      auto far = [](emitter out, int count) -> task<> {
        for (int i = 0; i < count; ++i) {
          while (!out.emit(i)) co_await weir::sleep(20us);
        }
        co_await weir::sleep(5ms);
        out.close();
      };
      auto stream = weir::from_callback<number>(4, overflow::reject, [&](const emitter& out) {
        s.spawn_on(other, far(out, values_per_thread / 4));
      });
      co_await check_to_the_end(stream, got);
    });
  });
  EXPECT_EQ(got.count, values_per_thread / 4);
}
