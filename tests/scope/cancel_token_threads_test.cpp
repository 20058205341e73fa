// SPDX-License-Identifier: MIT
// Cancellation that comes from other threads: sources and tokens, the bridges to std::stop_token,
// and a dump that another thread asks for.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <latch>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <thread>

#include "scope_support.hpp"

using namespace weir_test;

namespace {

/// Waits, without sleeping for a time, until another thread has set the flag.
void wait_for(const std::atomic<bool>& flag) { flag.wait(false); }

void set(std::atomic<bool>& flag) {
  flag.store(true);
  flag.notify_all();
}

/// An op that says when it is about to park and on which thread its frame was destroyed.
weir::task<> park_and_tell(std::atomic<bool>& parked, std::thread::id& destroyed_on) {
  auto guard = weir::scope_exit([&] { destroyed_on = std::this_thread::get_id(); });
  set(parked);
  co_await weir::sleep(1000h);
}

/// Two children that wait for each other: nothing in this loop can ever wake them.
weir::task<> wait_for_each_other() {
  std::optional<weir::future<void>> first;
  std::optional<weir::future<void>> second;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    first = s.spawn([&]() -> weir::task<> {
      co_await weir::yield();
      co_await *second;
    });
    second = s.spawn([&]() -> weir::task<> { co_await *first; });
    co_await s.join();
  });
}

}  // namespace
TEST(cancel_token, a_cancel_from_another_thread_unwinds_on_the_threads_own_loop) {
  weir::cancel_source source;
  std::atomic<bool> parked{false};
  std::thread::id destroyed_on;
  std::thread other([&] {
    wait_for(parked);
    source.cancel(weir::cancel_reason(cancel_kind::remote, "from afar"));
    source.cancel("too late");
  });
  bool went_on = false;
  weir::run([&]() -> weir::task<> {
    const auto token = source.token();
    auto op = [&] { return park_and_tell(parked, destroyed_on); };
    auto ended = co_await weir::settle(weir::with_token(token, op));
    EXPECT_TRUE(ended.is_cancelled());
    EXPECT_EQ(ended.reason().kind, cancel_kind::remote);
    EXPECT_EQ(message_of(ended.reason()), "from afar");
    co_await weir::checkpoint();
    went_on = true;
  });
  other.join();
  EXPECT_TRUE(went_on);
  EXPECT_EQ(destroyed_on, std::this_thread::get_id());
}

TEST(cancel_token, with_token_throws_cancelled_error_with_the_tokens_reason_when_it_fires) {
  weir::cancel_source source;
  std::atomic<bool> parked{false};
  std::thread::id destroyed_on;
  std::thread other([&] {
    wait_for(parked);
    source.cancel("stop");
  });
  std::string message;
  weir::run([&]() -> weir::task<> {
    const auto token = source.token();
    auto op = [&] { return park_and_tell(parked, destroyed_on); };
    try {
      co_await weir::with_token(token, op);
    } catch (const weir::cancelled_error& e) {
      message = message_of(e.reason());
    }
  });
  other.join();
  EXPECT_EQ(message, "stop");
}

TEST(cancel_token, a_token_that_has_fired_never_starts_the_op) {
  weir::cancel_source source;
  std::thread([&] { source.cancel("early"); }).join();
  bool ran = false;
  weir::run([&]() -> weir::task<> {
    const auto token = source.token();
    auto op = [&]() -> weir::task<int> {
      ran = true;
      co_return 1;
    };
    auto ended = co_await weir::settle(weir::with_token(token, op));
    EXPECT_TRUE(ended.is_cancelled());
    EXPECT_EQ(message_of(ended.reason()), "early");
  });
  EXPECT_FALSE(ran);
}

TEST(cancel_token, a_finished_op_keeps_its_value_and_the_token_may_fire_later) {
  weir::cancel_source source;
  const int value = weir::run([&]() -> weir::task<int> {
    const auto token = source.token();
    const int result = co_await weir::with_token(token, ready(4));
    source.cancel("later");
    co_await weir::checkpoint();
    co_return result;
  });
  EXPECT_EQ(value, 4);
}

TEST(cancel_token, a_source_may_be_cancelled_and_destroyed_after_the_loop_has_ended) {
  std::optional<weir::cancel_source> source;
  source.emplace();
  std::optional<weir::cancel_token> kept;
  weir::run([&]() -> weir::task<> {
    kept = source->token();
    const int value = co_await weir::with_token(*kept, ready(1));
    EXPECT_EQ(value, 1);
  });
  std::thread([&] { source->cancel("nobody is there"); }).join();
  source.reset();
  bool ran = false;
  weir::run([&]() -> weir::task<> {
    auto op = [&]() -> weir::task<> {
      ran = true;
      co_return;
    };
    auto ended = co_await weir::settle(weir::with_token(*kept, op));
    EXPECT_TRUE(ended.is_cancelled());
  });
  EXPECT_FALSE(ran);
}

TEST(cancel_token, of_many_threads_that_cancel_at_once_one_reason_wins_everywhere) {
  constexpr int threads = 8;
  weir::cancel_source source;
  std::latch go(threads + 1);
  std::vector<std::thread> others;
  for (int i = 0; i < threads; ++i) {
    others.emplace_back([&, i] {
      go.arrive_and_wait();
      source.cancel(weir::cancel_reason(cancel_kind::custom, "thread " + std::to_string(i)));
    });
  }
  std::vector<std::string> seen;
  weir::run([&]() -> weir::task<> {
    const auto token = source.token();
    go.arrive_and_wait();
    for (int i = 0; i < 3; ++i) {
      auto ended = co_await weir::settle(weir::with_token(token, sleep_for(1000h)));
      EXPECT_TRUE(ended.is_cancelled());
      seen.push_back(message_of(ended.reason()));
    }
  });
  for (std::thread& other : others) other.join();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].substr(0, 7), "thread ");
  EXPECT_EQ(seen[1], seen[0]);
  EXPECT_EQ(seen[2], seen[0]);
}

TEST(cancel_token, one_source_stops_loops_on_several_threads) {
  constexpr int threads = 4;
  weir::cancel_source source;
  std::latch parked(threads);
  std::atomic<int> cancelled{0};
  std::vector<std::thread> loops;
  for (int i = 0; i < threads; ++i) {
    loops.emplace_back([&] {
      weir::run([&]() -> weir::task<> {
        const auto token = source.token();
        auto op = [&]() -> weir::task<> {
          parked.count_down();
          co_await weir::sleep(1000h);
        };
        auto ended = co_await weir::settle(weir::with_token(token, op));
        if (ended.is_cancelled() && message_of(ended.reason()) == "all") ++cancelled;
      });
    });
  }
  parked.wait();
  source.cancel("all");
  for (std::thread& loop : loops) loop.join();
  EXPECT_EQ(cancelled.load(), threads);
}

TEST(cancel_token, any_of_two_tokens_fires_with_the_first_and_keeps_its_reason) {
  for (bool first : {true, false}) {
    weir::cancel_source a;
    weir::cancel_source b;
    std::atomic<bool> parked{false};
    std::thread::id destroyed_on;
    std::thread other([&] {
      wait_for(parked);
      (first ? a : b).cancel(first ? "a" : "b");
    });
    weir::run([&]() -> weir::task<> {
      const auto both = weir::cancel_token::any(a.token(), b.token());
      auto op = [&] { return park_and_tell(parked, destroyed_on); };
      auto ended = co_await weir::settle(weir::with_token(both, op));
      EXPECT_TRUE(ended.is_cancelled());
      EXPECT_EQ(message_of(ended.reason()), first ? "a" : "b");
    });
    other.join();
  }
}

TEST(cancel_token, a_token_whose_source_is_gone_never_fires) {
  std::optional<weir::cancel_token> orphan;
  {
    weir::cancel_source source;
    orphan = source.token();
  }
  const int value = weir::run(
      [&]() -> weir::task<int> { co_return co_await weir::with_token(*orphan, after(1ms, 3)); });
  EXPECT_EQ(value, 3);
}

// A loop that nobody can wake is a deadlock; a living source is somebody who can.
TEST(cancel_token, a_living_source_keeps_a_stuck_loop_waiting_and_a_dead_one_does_not) {
  std::optional<weir::cancel_source> source;
  source.emplace();
  std::optional<weir::cancel_token> token = source->token();
  std::atomic<bool> waiting{false};
  std::thread other([&] {
    wait_for(waiting);
    source->cancel("enough");
  });
  weir::run([&]() -> weir::task<> {
    set(waiting);
    auto ended = co_await weir::settle(weir::with_token(*token, wait_for_each_other()));
    EXPECT_TRUE(ended.is_cancelled());
  });
  other.join();
  source.emplace();
  token = source->token();
  source.reset();
  auto code = code_thrown_by([&] {
    weir::run([&]() -> weir::task<> { co_await weir::with_token(*token, wait_for_each_other()); });
  });
  EXPECT_EQ(code, weir::errc::deadlock);
}

// Ops that have ended leave no registration behind which a later cancel could touch.
TEST(cancel_token, a_cancel_that_races_with_the_end_of_an_op_gives_a_value_or_a_cancellation) {
  constexpr int rounds = 500;
  int values = 0;
  int cancellations = 0;
  weir::run([&]() -> weir::task<> {
    for (int i = 0; i < rounds; ++i) {
      weir::cancel_source source;
      const auto token = source.token();
      std::latch both(2);
      std::thread other([&] {
        both.arrive_and_wait();
        source.cancel("now");
      });
      auto op = [&]() -> weir::task<int> {
        both.arrive_and_wait();
        co_await weir::yield();
        co_return 1;
      };
      auto ended = co_await weir::settle(weir::with_token(token, op));
      values += ended.is_value() && ended.value() == 1;
      cancellations += ended.is_cancelled() && message_of(ended.reason()) == "now";
      other.join();
    }
  });
  EXPECT_EQ(values + cancellations, rounds);
}

TEST(link, a_requested_stop_of_another_thread_cancels_the_op) {
  std::stop_source stop;
  std::atomic<bool> parked{false};
  std::thread::id destroyed_on;
  std::thread other([&] {
    wait_for(parked);
    stop.request_stop();
  });
  bool ran_again = false;
  weir::run([&]() -> weir::task<> {
    const auto token = weir::link(stop.get_token());
    auto op = [&] { return park_and_tell(parked, destroyed_on); };
    auto ended = co_await weir::settle(weir::with_token(token, op));
    EXPECT_TRUE(ended.is_cancelled());
    const auto late = weir::link(stop.get_token());
    auto again = [&]() -> weir::task<> {
      ran_again = true;
      co_return;
    };
    auto refused = co_await weir::settle(weir::with_token(late, again));
    EXPECT_TRUE(refused.is_cancelled());
  });
  other.join();
  EXPECT_EQ(destroyed_on, std::this_thread::get_id());
  EXPECT_FALSE(ran_again);
}

TEST(link, a_stop_that_nobody_can_request_never_fires) {
  const int value = weir::run([]() -> weir::task<int> {
    const auto never = weir::link(std::stop_token{});
    std::optional<std::stop_source> gone;
    gone.emplace();
    const auto orphan = weir::link(gone->get_token());
    gone.reset();
    const int first = co_await weir::with_token(never, ready(1));
    co_return first + co_await weir::with_token(orphan, after(1ms, 2));
  });
  EXPECT_EQ(value, 3);
}

TEST(link, a_stop_after_the_loop_has_ended_touches_nothing) {
  std::stop_source stop;
  std::optional<weir::cancel_token> token;
  weir::run([&]() -> weir::task<> {
    token = weir::link(stop.get_token());
    const int value = co_await weir::with_token(*token, ready(1));
    EXPECT_EQ(value, 1);
  });
  std::thread([&] { stop.request_stop(); }).join();
  token.reset();
  EXPECT_TRUE(stop.stop_requested());
}

TEST(stop_token, a_thread_that_waits_with_the_stop_token_of_a_context_is_stopped_with_it) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::atomic<bool> stopped{false};
  std::thread worker;
  weir::run([&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      auto child = s.spawn([&](weir::context& context) -> weir::task<> {
        const std::stop_token token = context.stop_token();
        EXPECT_FALSE(token.stop_requested());
        worker = std::thread([&, token] {
          std::unique_lock lock(mutex);
          stopped = !changed.wait(lock, token, [] { return false; });
        });
        co_await weir::sleep(1000h);
      });
      co_await weir::sleep(1ms);
      child.cancel("stop");
      co_await s.idle();
    });
  });
  worker.join();
  EXPECT_TRUE(stopped.load());
}

// The request_stop follows in the loop's next turn, also while the fiber itself is shielded.
TEST(stop_token, a_stop_callback_ends_a_shielded_wait_of_the_cancelled_fiber) {
  bool delivered = false;
  weir::run([&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      auto child = s.spawn([&](weir::context& context) -> weir::task<> {
        const std::stop_token token = context.stop_token();
        std::optional<std::stop_callback<std::function<void()>>> callback;
        co_await weir::shield([&]() -> weir::task<> {
          co_await weir::suspend<void>([&](weir::resumer<void> r) {
            callback.emplace(token, [r]() mutable { r.complete(); });
            return [] { return weir::cancel_result::no; };
          });
        });
        delivered = true;
        co_await weir::checkpoint();
        delivered = false;
      });
      co_await weir::sleep(1ms);
      child.cancel("stop");
      co_await s.idle();
      EXPECT_TRUE(child.peek()->is_cancelled());
    });
  });
  EXPECT_TRUE(delivered);
}

// Nothing else is ready when the deadline expires, so the loop must not park before the request.
TEST(stop_token, a_stop_callback_ends_a_shielded_wait_whose_deadline_expires) {
  bool delivered = false;
  weir::run([&]() -> weir::task<> {
    auto op = [&](weir::context& context) -> weir::task<> {
      const std::stop_token token = context.stop_token();
      std::optional<std::stop_callback<std::function<void()>>> callback;
      co_await weir::shield([&]() -> weir::task<> {
        co_await weir::suspend<void>([&](weir::resumer<void> r) {
          callback.emplace(token, [r]() mutable { r.complete(); });
          return [] { return weir::cancel_result::no; };
        });
      });
      delivered = true;
      co_await weir::checkpoint();
      delivered = false;
    };
    EXPECT_THROW(co_await weir::with_timeout(1ms, op), weir::timeout_error);
  });
  EXPECT_TRUE(delivered);
}

TEST(stop_token, the_stop_token_of_an_op_that_ended_with_a_value_was_never_stopped) {
  std::optional<std::stop_token> token;
  weir::run([&]() -> weir::task<> {
    auto op = [&](weir::context& context) -> weir::task<> {
      token = context.stop_token();
      co_await weir::yield();
    };
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      s.spawn(op);
      co_await s.join();
      EXPECT_FALSE(token->stop_requested());
    });
  });
  EXPECT_FALSE(token->stop_requested());
}

// The loop makes its part of the dump itself, asked through its inbox.
TEST(dump, another_thread_gets_the_tree_of_a_running_loop) {
  std::optional<weir::resumer<void>> slot;
  std::atomic<bool> parked{false};
  std::string text;
  std::thread other([&] {
    wait_for(parked);
    std::ostringstream out;
    weir::dump(out);
    text = out.str();
    slot->complete();
  });
  weir::run({.name = "harbour"}, [&]() -> weir::task<> {
    co_await weir::with_scope({.name = "quay"}, [&](weir::scope& s) -> weir::task<> {
      auto crane = s.spawn(sleep_for(1000h), {.name = "crane"});
      co_await weir::yield();
      co_await weir::suspend<void>([&](weir::resumer<void> r) {
        slot.emplace(std::move(r));
        set(parked);
        return [] { return weir::cancel_result::no; };
      });
      crane.cancel();
    });
  });
  other.join();
  for (const char* part : {"quay", "crane", "sleep"}) {
    EXPECT_TRUE(contains(text, part)) << "no '" << part << "' in\n" << text;
  }
}
