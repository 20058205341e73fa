// SPDX-License-Identifier: MIT
// suspend and resumer on one thread: completing, failing, abandoning, and the three answers that a
// canceller can give.
#include <functional>
#include <memory>
#include <optional>

#include "support/test_support.hpp"

using namespace test_support;
using weir::cancel_result;
using weir::task;

namespace {

/// A foreign interface: it remembers one callback and is asked to stop at most once per wait.
struct foreign {
  std::optional<weir::resumer<int>> pending;
  cancel_result answer = cancel_result::done;
  int started = 0, stops = 0;

  auto start() {
    return [this](weir::resumer<int> r) {
      ++started;
      pending.emplace(std::move(r));
      return [this] {
        ++stops;
        return answer;
      };
    };
  }
};

/// Waits for the foreign interface and then at a checkpoint, writing down how far it came.
task<> waiter(foreign& f, text_log& log) {
  end_note gone(log, "gone");
  try {
    int value = co_await weir::suspend<int>(f.start());
    log.push_back("got " + std::to_string(value));
  } catch (const boom& e) {
    log.push_back("failed " + std::to_string(e.n));
  }
  co_await weir::checkpoint();
  log.push_back("went on");
}

/// Runs a waiter, cancels it after 5 ms, and calls `later` after another 5 ms.
template <class Later>
task<> cancelled_waiter(foreign& f, text_log& log, Later later) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(waiter(f, log));
    co_await weir::sleep(5ms);
    child.cancel("stop");
    co_await weir::sleep(5ms);
    log.push_back("10 ms");
    later();
    co_await s.join();
  });
}

}  // namespace

FIBER_TEST(suspend, it_can_be_completed_before_the_start_function_returns) {
  int value = co_await weir::suspend<int>([](weir::resumer<int> r) {
    r.complete(3);
    return [] { return cancel_result::done; };
  });
  EXPECT_EQ(value, 3);
}

TEST(suspend, it_parks_until_somebody_completes_it) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      foreign f;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(waiter(f, log));
        co_await weir::sleep(5ms);
        EXPECT_EQ(f.started, 1);
        EXPECT_TRUE(log.empty());
        f.pending->complete(8);
        co_await weir::sleep(1ms);
        EXPECT_EQ(joined(log), "got 8,went on,gone");
        EXPECT_EQ(f.stops, 0);
      });
    });
  });
}

FIBER_TEST_IN_EVERY_ORDER(suspend,
                          completing_only_wakes_and_never_runs_the_waiter_inside_the_call) {
  foreign f;
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(waiter(f, log));
    co_await weir::sleep(1ms);
    f.pending->complete(1);
    EXPECT_TRUE(log.empty());
  });
  EXPECT_FALSE(log.empty());
}

FIBER_TEST(suspend, it_can_fail) {
  auto error = co_await error_of(weir::suspend<int>([](weir::resumer<int> r) {
    r.fail(std::make_exception_ptr(boom(6)));
    return [] { return cancel_result::done; };
  }));
  EXPECT_EQ(boom_of(error), 6);
}

TEST(suspend, only_the_first_answer_counts) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      foreign f;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(waiter(f, log));
        co_await weir::sleep(1ms);
        auto copy = *f.pending;
        copy.complete(1);
        f.pending->complete(2);
        f.pending->fail(std::make_exception_ptr(boom(3)));
      });
      f.pending->complete(4);
    });
    EXPECT_EQ(joined(log), "got 1,went on,gone");
  });
}

FIBER_TEST(suspend, void_and_move_only_results_are_delivered) {
  bool passed = false;
  co_await weir::suspend<void>([&](weir::resumer<void> r) {
    r.complete();
    passed = true;
    return [] { return cancel_result::done; };
  });
  EXPECT_TRUE(passed);
  std::unique_ptr<int> box =
      co_await weir::suspend<std::unique_ptr<int>>([](weir::resumer<std::unique_ptr<int>> r) {
        r.complete(std::make_unique<int>(5));
        return [] { return cancel_result::done; };
      });
  EXPECT_TRUE(box && *box == 5);
}

FIBER_TEST(suspend, an_error_of_the_start_function_is_thrown_at_the_await) {
  auto error = co_await error_of(weir::suspend<int>([](weir::resumer<int>) {
    if (weir::unwinding() == nullptr) throw boom(2);
    return [] { return cancel_result::done; };
  }));
  EXPECT_EQ(boom_of(error), 2);
}
TEST(suspend, a_canceller_that_answers_done_lets_the_fiber_go_at_once) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    foreign f;
    f.answer = cancel_result::done;
    w.run([&]() -> task<> { co_await cancelled_waiter(f, log, [&] { f.pending->complete(1); }); });
    EXPECT_EQ(joined(log), "gone,10 ms");
    EXPECT_EQ(f.stops, 1);
  });
}
TEST(suspend, after_the_answer_no_the_result_is_delivered_and_the_next_await_unwinds) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    foreign f;
    f.answer = cancel_result::no;
    w.run([&]() -> task<> { co_await cancelled_waiter(f, log, [&] { f.pending->complete(7); }); });
    EXPECT_EQ(joined(log), "10 ms,got 7,gone");
    EXPECT_EQ(f.stops, 1);
  });
}

TEST(suspend, after_the_answer_no_an_error_is_delivered_too) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    foreign f;
    f.answer = cancel_result::no;
    w.run([&]() -> task<> {
      co_await cancelled_waiter(f, log, [&] { f.pending->fail(std::make_exception_ptr(boom(4))); });
    });
    EXPECT_EQ(joined(log), "10 ms,failed 4,gone");
  });
}

TEST(suspend, after_the_answer_later_the_next_completion_only_confirms) {
  for_each_order([](weir::sim::world& w) {
    text_log log, events;
    foreign f;
    f.answer = cancel_result::later;
    w.run([&]() -> task<> {
      auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
      co_await cancelled_waiter(f, log, [&] { f.pending->complete(7); });
    });
    EXPECT_EQ(joined(log), "10 ms,gone");
    EXPECT_EQ(f.stops, 1);
    EXPECT_EQ(counted(events, "value_discarded"), 1);
  });
}

TEST(suspend, after_the_answer_later_a_failure_confirms_as_well) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    foreign f;
    f.answer = cancel_result::later;
    w.run([&]() -> task<> {
      co_await cancelled_waiter(f, log, [&] { f.pending->fail(std::make_exception_ptr(boom(4))); });
    });
    EXPECT_EQ(joined(log), "10 ms,gone");
  });
}
TEST(suspend, a_value_that_came_before_the_cancellation_is_delivered) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      foreign f;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto child = s.spawn(waiter(f, log));
        co_await weir::sleep(1ms);
        f.pending->complete(7);
        child.cancel("stop");
      });
      EXPECT_EQ(f.stops, 0);
    });
    EXPECT_EQ(joined(log), "got 7,gone");
  });
}

FIBER_TEST_IN_EVERY_ORDER(suspend, when_the_last_resumer_is_gone_unanswered_it_ends_as_abandoned) {
  foreign f;
  std::exception_ptr error;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> { error = co_await error_of(weir::suspend<int>(f.start())); });
    co_await weir::sleep(1ms);
    auto copy = f.pending;
    f.pending.reset();
    co_await weir::sleep(1ms);
    EXPECT_FALSE(error);  // one copy is left
    copy.reset();
  });
  EXPECT_EQ(code_of(error), weir::errc::abandoned);
  auto at_once = co_await error_of(
      weir::suspend<int>([](weir::resumer<int>) { return [] { return cancel_result::done; }; }));
  EXPECT_EQ(code_of(at_once), weir::errc::abandoned);
}

FIBER_TEST_IN_EVERY_ORDER(suspend, it_is_a_wait_that_a_timeout_or_a_race_withdraws) {
  foreign f;
  auto t0 = weir::now();
  auto error = co_await error_of(weir::with_timeout(5ms, weir::suspend<int>(f.start())));
  EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  EXPECT_EQ(f.stops, 1);
  auto winner = co_await weir::race(weir::suspend<int>(f.start()), weir::sleep(5ms));
  EXPECT_EQ(winner.index(), 1u);
  EXPECT_EQ(f.stops, 2);
  EXPECT_EQ(weir::now() - t0, 10ms);
}
FIBER_TEST_IN_EVERY_ORDER(suspend, one_that_cannot_stop_holds_back_the_result_of_a_race) {
  foreign f;
  f.answer = cancel_result::no;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(20ms);
      f.pending->complete(1);
    });
    auto t0 = weir::now();
    auto winner = co_await weir::race(weir::suspend<int>(f.start()), weir::sleep(5ms));
    EXPECT_EQ(winner.index(), 1u);
    EXPECT_EQ(weir::now() - t0, 20ms);
    EXPECT_EQ(f.stops, 1);
  });
}

TEST(suspend, the_dump_says_where_it_waits) {
  auto error = thrown_by([] {
    weir::sim::run({.seed = 1}, []() -> task<> {
      foreign f;
      text_log log;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(waiter(f, log), {.name = "listener"});
        co_return;
      });
    });
  });
  // Pending suspends do not prevent a deadlock verdict in simulation.
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "listener")) << what_of(error);
  EXPECT_TRUE(contains(what_of(error), "suspend")) << what_of(error);
}

namespace {

/// Counts how often it is made; a resumer makes its value only if the answer counts.
struct letter {
  explicit letter(int& made) { ++made; }
};

}  // namespace

TEST(suspend, an_answer_of_another_loop_that_counts_is_delivered_although_a_cancellation_meets_it) {
  int answers = 0;
  int cancellations = 0;
  for_each_order([&](weir::sim::world& w) {
    int accepted = 0;
    int delivered = 0;
    w.run([&]() -> task<> {
      auto peer = w.loop("peer");
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto child = s.spawn([&]() -> task<> {
          (void)co_await weir::suspend<letter>([&](weir::resumer<letter> r) {
            peer.post([r, &accepted]() mutable { r.complete(accepted); });
            return [] { return cancel_result::done; };
          });
          ++delivered;
        });
        for (int i = 0; i < 5; ++i) co_await weir::yield();
        child.cancel("stop");
      });
    });
    EXPECT_EQ(delivered, accepted);
    ++(accepted == 1 ? answers : cancellations);
  });
  EXPECT_GT(answers, 0);
  EXPECT_GT(cancellations, 0);
}

TEST(suspend, a_confirmation_by_another_loop_unwinds_the_fiber) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto peer = w.loop("peer");
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto child = s.spawn([&]() -> task<> {
          end_note gone(log, "gone");
          (void)co_await weir::suspend<int>([&](weir::resumer<int> r) {
            return [&, r] {
              log.push_back("asked");
              peer.post([r]() mutable { r.complete(1); });
              return cancel_result::later;
            };
          });
          log.push_back("WENT ON");
        });
        co_await weir::sleep(1ms);
        child.cancel("stop");
        co_await s.idle();
        log.push_back("joined");
      });
    });
    EXPECT_EQ(joined(log), "asked,gone,joined");
  });
}
