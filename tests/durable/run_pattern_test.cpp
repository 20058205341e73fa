// SPDX-License-Identifier: MIT
// Common patterns of workflows: sagas, polling, queues between fibers, shared signals.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

/// Three steps, each with a compensation; step `bad` (counted from 1) fails.
task<std::string> saga(int bad) {
  auto part = [&](int n, const std::string& name) -> task<int> {
    if (n == bad) co_return co_await failing_step(name);
    co_return co_await give(name, n);
  };
  co_return co_await weir::with_scope([&](weir::scope& s) -> task<std::string> {
    auto undo = [&](std::string name) {
      s.defer([name](const weir::outcome_view& o) -> task<> {
        if (!o.is_value()) (void)co_await give(name, 0);
      });
    };
    (void)co_await part(1, "reserve");
    undo("release");
    (void)co_await part(2, "charge");
    undo("refund");
    (void)co_await part(3, "ship");
    co_return "shipped";
  });
}

void saga_with(int bad, const std::string& want, const lines& effects) {
  auto handler = [bad](int) -> task<std::string> { co_return co_await saga(bad); };
  {
    const stage on;
    EXPECT_EQ(ending(on, handler), want);
    EXPECT_EQ(ledger(), effects);
  }
  survives(handler, want);
}

/// Polls a job every hour until it is done or told to stop.
task<int> poll(weir::oneshot<int>& stop, int done_after) {
  for (int i = 1;; ++i) {
    const int state = co_await give("poll " + std::to_string(i), i >= done_after ? 1 : 0);
    if (state == 1) co_return i;
    const auto woken = co_await weir::race(weir::sleep(1h), stop.receive());
    if (woken.index() == 1) co_return -i;
  }
}

}  // namespace

TEST(durable_pattern, a_loop_of_attempts_succeeds_at_the_third) {
  survives(
      [](int) -> task<std::string> {
        for (int i = 1; i <= 5; ++i) {
          try {
            const std::string attempt = "try " + std::to_string(i);
            if (i < 3) (void)co_await failing_step(attempt);
            const int v = co_await give(attempt, i);
            co_return std::to_string(v);
          } catch (const weir::terminal_error&) {
          }
          co_await weir::sleep(1h * i);
        }
        co_return "gave up";
      },
      "3");
}

TEST(durable_pattern, a_timeout_has_a_fallback) {
  survives(
      [](int) -> task<std::string> {
        auto with_fallback = [](weir::duration d) -> task<int> {
          auto op = weir::op([d] { return nap(d, 1); }) | weir::timeout(2h) |
                    weir::fallback([]() -> task<int> { co_return co_await give("fallback", 2); });
          co_return co_await op();
        };
        const int quick = co_await with_fallback(1h);
        const int slow = co_await with_fallback(3h);
        co_return row(quick, slow);
      },
      "1,2");
}

TEST(durable_saga, that_succeeds_compensates_nothing) {
  saga_with(0, "shipped", {"reserve", "charge", "ship"});
}

TEST(durable_saga, that_fails_first_has_nothing_to_compensate) {
  saga_with(1, "failed: reserve failed", {"reserve"});
}

TEST(durable_saga, that_fails_second_compensates_the_first) {
  saga_with(2, "failed: charge failed", {"reserve", "charge", "release"});
}

TEST(durable_saga, that_fails_last_compensates_in_reverse_order) {
  saga_with(3, "failed: ship failed", {"reserve", "charge", "ship", "refund", "release"});
}

TEST(durable_pattern, work_is_dispatched_to_workers_through_a_queue) {
  survives(
      [](int) -> task<std::string> {
        weir::queue<int> jobs(2);
        weir::queue<int> results(weir::unbounded);
        auto worker = [&]() -> task<> {
          while (auto job = co_await jobs.next()) {
            co_await weir::sleep(1min * *job);
            co_await results.push(co_await give("job " + std::to_string(*job), *job * *job));
          }
        };
        auto dispatch = [&]() -> task<> {
          for (int i = 1; i <= 6; ++i) co_await jobs.push(i);
          jobs.close();
        };
        co_await weir::all(worker(), dispatch(), worker());
        int sum = 0;
        while (auto r = results.try_next()) sum += *r;
        co_return std::to_string(sum);
      },
      "91");
}

TEST(durable_polling, ends_when_the_job_is_done) {
  survives(
      [](int) -> task<std::string> {
        weir::oneshot<int> stop;
        co_return std::to_string(co_await poll(stop, 3));
      },
      "3");
}

TEST(durable_polling, is_stopped_when_the_budget_is_used_up) {
  survives(
      [](int) -> task<std::string> {
        weir::oneshot<int> stop;
        auto budget = [&]() -> task<> {
          co_await weir::sleep(150min);
          stop.send(1);
        };
        auto [found, none] = co_await weir::all(poll(stop, 100), budget());
        (void)none;
        co_return std::to_string(found);
      },
      "-3", at_once);
}

TEST(durable_pattern, sequence_and_fan_out_differ_in_the_order_of_side_effects) {
  const auto work = [](int kind) -> task<std::string> {
    if (kind == 1) {
      (void)co_await give_after(2h, "slow", 0);
      (void)co_await give_after(1h, "quick", 0);
    } else {
      co_await weir::all(give_after(2h, "slow", 0), give_after(1h, "quick", 0));
    }
    co_return "done";
  };
  {
    const stage on;
    EXPECT_EQ(ending(on, work), "done");
    EXPECT_EQ(ledger(), (lines{"slow", "quick"}));
  }
  const stage on;
  EXPECT_EQ(ending(on, [work](int) { return work(2); }), "done");
  EXPECT_EQ(ledger(), (lines{"quick", "slow"}));
}

// -----------------------------------------------------------------------------------------
// channels

TEST(durable_channel, send_then_receive_and_receive_then_send) {
  survives(
      [](int) -> task<std::string> {
        weir::oneshot<int> early;
        weir::oneshot<int> late;
        early.send(1);
        auto sends = [&]() -> task<> {
          co_await weir::sleep(1h);
          late.send(co_await give("sent", 2));
        };
        auto receives = [&]() -> task<int> { co_return co_await late.receive(); };
        const int a = co_await early.receive();
        auto [b, none] = co_await weir::all(receives(), sends());
        (void)none;
        co_return row(a, b, late.send(9), co_await late.receive());
      },
      "1,2,0,2");
}

TEST(durable_channel, stop_wins_or_work_wins_and_the_worker_decides) {
  survives(
      [](int) -> task<std::string> {
        std::string seen;
        for (const int minutes : {30, 90}) {
          weir::oneshot<int> stop;
          auto stops = [&]() -> task<> {
            co_await weir::sleep(1min * minutes);
            stop.send(minutes);
          };
          auto works = [&]() -> task<> {
            const auto first = co_await weir::race(weir::sleep(1h), stop.receive());
            seen += first.index() == 0 ? "work " : "stop ";
            (void)co_await give("at " + std::to_string(minutes), 0);
          };
          co_await weir::all(works(), stops());
        }
        co_return seen;
      },
      "stop work ", at_once);
}

TEST(durable_channel, many_readers_see_the_one_value_in_order) {
  survives(
      [](int) -> task<std::string> {
        weir::oneshot<std::string> news;
        std::string order;
        auto reads = [&](char c) -> task<> {
          order += (co_await news.receive()) + c;
          (void)co_await give(std::string("read ") + c, 0);
        };
        auto sends = [&]() -> task<> {
          co_await weir::sleep(1h);
          news.send("x");
        };
        co_await weir::all(reads('1'), reads('2'), sends(), reads('3'));
        co_return order;
      },
      "x1x2x3", at_once_and_late, steps::concurrent);
}

TEST(durable_channel, a_rendezvous_queue_an_event_a_mutex_and_a_latch_are_local) {
  survives(
      [](int) -> task<std::string> {
        weir::queue<int> q(0);
        weir::event ev;
        weir::mutex m;
        weir::latch both(2);
        std::string order;
        auto one = [&]() -> task<> {
          auto guard = co_await m.lock();
          order += "1";
          (void)co_await give_after(1h, "one", 0);
          co_await q.push(1);
          both.count_down();
        };
        auto two = [&]() -> task<> {
          auto got = co_await q.next();
          order += "q" + std::to_string(*got);
          auto guard = co_await m.lock();
          order += "2";
          ev.set();
          both.count_down();
        };
        auto three = [&]() -> task<> {
          co_await ev.wait();
          co_await both.wait();
          order += "3";
          (void)co_await give("three", 0);
        };
        co_await weir::all(three(), two(), one());
        co_return order;
      },
      "1q123");
}

TEST(durable_channel, streams_are_pulled_in_a_run) {
  survives(
      [](int) -> task<std::string> {
        auto source = []() -> weir::stream<int> {
          for (int i = 1; i <= 5; ++i) {
            const int v = co_await give_after(1h, "item " + std::to_string(i), i);
            co_yield v;
          }
        };
        auto odd = source() | weir::filter([](int i) { return i % 2 == 1; });
        std::vector<int> seen;
        while (auto i = co_await odd.next()) seen.push_back(*i);
        co_return text(seen);
      },
      "1,3,5");
}

TEST(durable_channel, governors_and_groups_made_in_the_run_are_its_own) {
  survives(
      [](int) -> task<std::string> {
        weir::counting_governor g(2);
        int most = 0;
        int now = 0;
        co_await weir::with_group([&](weir::group& jobs) -> task<> {
          for (int i = 0; i < 5; ++i) {
            auto job = [&, i]() -> task<> {
              auto held = co_await g.acquire();
              most = std::max(most, ++now);
              (void)co_await give_after(1h, "job " + std::to_string(i), i);
              --now;
            };
            jobs.go(job);
          }
          co_await jobs.wait();
        });
        co_return std::to_string(most);
      },
      "2", at_once, steps::concurrent);
}

// ----------------------------------------------------------------------------- e2e/signal-sharing

TEST(durable_sharing, two_races_over_one_promise_settle_with_its_value) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(1h, "p1", 1));
          s.spawn(resolve_after(2h, "p2", 2));
          s.spawn(resolve_after(3h, "p3", 3));
          auto [a, b] = co_await weir::all_settled(weir::race(promised("p1"), promised("p2")),
                                                   weir::race(promised("p1"), promised("p3")));
          co_await give("after", 0);
          co_return row(a.value(), b.value());
        });
      },
      "1,1");
}

TEST(durable_sharing, the_races_may_have_different_winners) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(3h, "p1", 1));
          s.spawn(resolve_after(1h, "p2", 2));
          s.spawn(resolve_after(2h, "p3", 3));
          auto [a, b] = co_await weir::all(weir::race(promised("p1"), promised("p2")),
                                           weir::race(promised("p1"), promised("p3")));
          co_await give("after", 0);
          co_return row(a, b);
        });
      },
      "2,3");
}

TEST(durable_sharing, a_child_that_turns_the_value_into_an_error_fails_the_all) {
  survives(
      [](int) -> task<std::string> {
        auto turned = [](task<int> t) -> task<int> {
          const int v = co_await std::move(t);
          if (v == 1) throw weir::terminal_error("turned");
          co_return v;
        };
        auto resolves = resolve_after(1h, "p1", 1);
        auto waits = []() -> task<int> { co_return co_await promised("p1"); };
        std::string heard;
        try {
          (void)co_await weir::all(turned(waits()), waits(), std::move(resolves));
        } catch (const weir::terminal_error& e) {
          heard = said(e, "turned");
        }
        co_await give("after", 0);
        co_return heard;
      },
      "turned");
}
