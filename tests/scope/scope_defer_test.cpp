// SPDX-License-Identifier: MIT
// Deferred cleanup of scopes and contexts: its order, its shield, its argument, its errors, and
// what the grace does to a cleanup that takes too long.
#include <memory>
#include <optional>

#include "scope_support.hpp"

using namespace weir_test;
using weir::task;

namespace {

/// Ends the body of a scope in one of the three ways.
task<> end_by(body_ending how, weir::scope& s) {
  co_await weir::sleep(1ms);
  if (how == body_ending::error) throw boom(1);
  if (how == body_ending::cancelled) {
    s.cancel("stop");
    co_await weir::sleep(1h);
  }
}

std::string story_of(const weir::outcome_view& o) {
  if (o.is_value()) return "value";
  if (o.is_error()) return "error " + std::to_string(boom_of(o.error()));
  return "cancelled " + std::string(o.reason().message);
}

}  // namespace
TEST(defer, they_run_last_in_first_out_on_value_error_and_cancellation) {
  for (body_ending how : {body_ending::value, body_ending::error, body_ending::cancelled}) {
    for_each_order([&](weir::sim::world& w) {
      text_log log;
      w.run([&]() -> task<> {
        auto o = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
          s.defer([&] { log.push_back("a"); });
          s.defer([&] { log.push_back("b"); });
          s.defer([&] { log.push_back("c"); });
          co_await end_by(how, s);
          log.push_back("body");
        }));
        EXPECT_EQ(o.is_value(), how == body_ending::value);
        EXPECT_EQ(o.is_error(), how == body_ending::error);
        EXPECT_EQ(o.is_cancelled(), how == body_ending::cancelled);
        log.push_back("after");
      });
      EXPECT_EQ(joined(log), how == body_ending::value ? "body,c,b,a,after" : "c,b,a,after");
    });
  }
}
TEST(defer, an_asynchronous_one_is_awaited_before_the_next_starts) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto slow = [&]() -> task<> {
          log.push_back("begin");
          co_await weir::sleep(20ms);
          log.push_back("end");
        };
        s.defer(slow);
        s.defer([&] { log.push_back("plain"); });
        s.defer(slow);
        co_return;
      });
      EXPECT_EQ(weir::now() - t0, 40ms);
    });
    EXPECT_EQ(joined(log), "begin,end,plain,begin,end");
  });
}
TEST(defer, it_is_shielded_from_the_cancellation_that_caused_it_and_from_later_ones) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      auto o = co_await weir::settle(weir::with_scope([&](weir::scope& outer) -> task<> {
        outer.spawn([&]() -> task<> {
          co_await weir::with_scope([&](weir::scope& inner) -> task<> {
            inner.defer([&]() -> task<> {
              co_await weir::sleep(50ms);
              log.push_back("cleaned");
            });
            co_await weir::sleep(10ms);
          });
          log.push_back("WENT ON");
        });
        co_await weir::sleep(30ms);  // the defer is running now
        outer.cancel("stop");
        co_await weir::checkpoint();
      }));
      EXPECT_TRUE(o.is_cancelled());
      EXPECT_EQ(weir::now() - t0, 60ms);
    });
    EXPECT_EQ(joined(log), "cleaned");
  });
}
FIBER_TEST_IN_EVERY_ORDER(defer, one_that_throws_does_not_stop_the_others_nor_replace_the_error) {
  text_log log, events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  auto o = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.defer([&] { log.push_back("a"); });
    s.defer([]() -> task<> {
      co_await weir::sleep(1ms);
      throw boom(12);
    });
    s.defer([&] { log.push_back("b"); });
    s.defer([] { throw boom(11); });
    co_await weir::sleep(1ms);
    throw boom(1);
  }));
  EXPECT_EQ(joined(log), "b,a");
  EXPECT_TRUE(o.is_error());
  EXPECT_EQ(boom_of(o.error()), 1);
  EXPECT_EQ(o.cleanup().size(), 2u);
  if (o.cleanup().size() == 2) {
    EXPECT_EQ(boom_of(o.cleanup()[0]), 11);
    EXPECT_EQ(boom_of(o.cleanup()[1]), 12);
  }
  EXPECT_EQ(counted(events, "cleanup_failed"), 2);
}
FIBER_TEST_IN_EVERY_ORDER(defer, its_error_does_not_replace_a_cancellation) {
  auto o = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.defer([] { throw boom(2); });
    s.cancel("stop");
    co_await weir::checkpoint();
  }));
  EXPECT_TRUE(o.is_cancelled());
  EXPECT_EQ(o.cleanup().size(), 1u);
}

// On the page the error of a defer becomes the scope's error if there was none
FIBER_TEST_IN_EVERY_ORDER(defer, its_error_becomes_the_error_of_a_scope_that_ended_with_a_value) {
  bool other_ran = false;
  auto error = co_await error_of(weir::with_scope([&](weir::scope& s) -> task<int> {
    s.defer([&] { other_ran = true; });
    s.defer([] { throw boom(3); });
    co_return 5;
  }));
  EXPECT_EQ(boom_of(error), 3);
  EXPECT_TRUE(other_ran);
}

// On the page the event is cleanup_overdue and the error a timeout_error
TEST(defer, one_beyond_the_grace_is_cancelled_and_told_as_overdue) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      text_log events;
      auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
      auto t0 = weir::now();
      auto o =
          co_await weir::settle(weir::with_scope({.grace = 100ms}, [&](weir::scope& s) -> task<> {
            s.defer([&] { log.push_back("plain"); });
            s.defer([&]() -> task<> {
              end_note ended(log, "unwound");
              co_await weir::sleep(1h);
              log.push_back("NEVER");
            });
            co_await weir::sleep(1ms);
            throw boom(1);
          }));
      EXPECT_EQ(weir::now() - t0, 101ms);
      EXPECT_EQ(boom_of(o.error()), 1);
      EXPECT_EQ(o.cleanup().size(), 1u);
      EXPECT_TRUE(!o.cleanup().empty() && holds<weir::timeout_error>(o.cleanup()[0]));
      EXPECT_EQ(counted(events, "cleanup_overdue"), 1);
    });
    EXPECT_EQ(joined(log), "unwound,plain");
  });
}
FIBER_TEST_IN_EVERY_ORDER(defer, an_overdue_one_fails_a_scope_that_ended_with_a_value) {
  auto error = co_await error_of(weir::with_scope({.grace = 5ms}, [](weir::scope& s) -> task<int> {
    s.defer([]() -> task<> { co_await weir::sleep(1h); });
    co_return 1;
  }));
  EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
}

FIBER_TEST_IN_EVERY_ORDER(defer, without_options_the_grace_is_30_seconds) {
  auto t0 = weir::now();
  auto error = co_await error_of(weir::with_scope([](weir::scope& s) -> task<> {
    s.defer([]() -> task<> { co_await weir::sleep(1h); });
    co_return;
  }));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(weir::now() - t0, 30s);
}

FIBER_TEST_IN_EVERY_ORDER(defer, the_grace_starts_with_the_first_one_and_is_shared) {
  text_log log;
  auto t0 = weir::now();
  auto o = co_await weir::settle(weir::with_scope({.grace = 100ms}, [&](weir::scope& s) -> task<> {
    for (int i = 0; i < 3; ++i) {
      s.defer([&]() -> task<> {
        co_await weir::sleep(40ms);
        log.push_back("done");
      });
    }
    s.spawn(after(1h, 1));  // the time that children take does not count
    co_return;
  }));
  EXPECT_EQ(joined(log), "done,done");
  EXPECT_EQ(weir::now() - t0, 1h + 100ms);
  EXPECT_TRUE(o.is_error());
}

FIBER_TEST_IN_EVERY_ORDER(defer, after_the_grace_the_remaining_ones_start_but_may_not_park) {
  text_log log;
  auto t0 = weir::now();
  auto o = co_await weir::settle(weir::with_scope({.grace = 100ms}, [&](weir::scope& s) -> task<> {
    s.defer([&]() -> task<> {
      log.push_back("first started");
      (void)co_await ready(1);
      log.push_back("first done");
    });
    s.defer([&]() -> task<> {
      end_note ended(log, "second unwound");
      log.push_back("second started");
      co_await weir::sleep(1ms);
      log.push_back("NEVER");
    });
    s.defer([&] { log.push_back("plain"); });
    s.defer([]() -> task<> { co_await weir::sleep(1h); });
    co_return;
  }));
  EXPECT_EQ(weir::now() - t0, 100ms);
  EXPECT_EQ(joined(log), "plain,second started,second unwound,first started,first done");
  EXPECT_GE(o.cleanup().size(), 1u);
  for (const auto& error : o.cleanup()) EXPECT_TRUE(holds<weir::timeout_error>(error));
}
FIBER_TEST_IN_EVERY_ORDER(defer, a_timeout_inside_one_works_although_the_scope_is_cancelled) {
  auto t0 = weir::now();
  bool timed_out = false, in_time = false;
  auto o = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.defer([&]() -> task<> {
      auto late = co_await error_of(weir::with_timeout(10ms, after(1h, 1)));
      timed_out = holds<weir::timeout_error>(late);
      int value = co_await weir::with_timeout(10ms, after(5ms, 3));
      in_time = value == 3;
    });
    s.cancel("stop");
    co_await weir::checkpoint();
  }));
  EXPECT_TRUE(o.is_cancelled());
  EXPECT_TRUE(timed_out);
  EXPECT_TRUE(in_time);
  EXPECT_EQ(weir::now() - t0, 15ms);
}
TEST(defer, one_registered_inside_another_runs_next_and_each_runs_once) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    auto token = std::make_shared<int>(1);
    w.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto keeps_token = [&log, token] { log.push_back("a"); };
        s.defer(std::move(keeps_token));
        s.defer([&]() -> task<> {
          log.push_back("b");
          s.defer([&] {
            log.push_back("b1");
            s.defer([&] { log.push_back("b2"); });
          });
          co_await weir::sleep(1ms);
          log.push_back("b ends");
        });
        s.defer([&] { log.push_back("c"); });
        co_return;
      });
      EXPECT_EQ(token.use_count(), 1);
    });
    EXPECT_EQ(joined(log), "c,b,b ends,b1,b2,a");
  });
}
TEST(defer, a_shielded_acquisition_that_is_cancelled_meanwhile_is_given_back) {
  for_each_order([](weir::sim::world& w) {
    int held = 0, acquired = 0;
    w.run([&]() -> task<> {
      auto acquire = [&]() -> task<> {
        co_await weir::sleep(10ms);
        ++held;
        ++acquired;
      };
      auto o = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&](weir::context& c) -> task<> {
          co_await weir::shield(acquire());
          c.defer([&] { --held; });
          co_await weir::sleep(1h);
        });
        co_await weir::sleep(5ms);
        s.cancel("stop");
        co_await weir::checkpoint();
      }));
      EXPECT_TRUE(o.is_cancelled());
    });
    EXPECT_EQ(acquired, 1);
    EXPECT_EQ(held, 0);
  });
}
TEST(defer, they_run_after_every_child_is_joined_and_before_the_scope_returns) {
  for (body_ending how : {body_ending::value, body_ending::error, body_ending::cancelled}) {
    for_each_order([&](weir::sim::world& w) {
      text_log log;
      w.run([&]() -> task<> {
        (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
          s.defer([&] {
            EXPECT_EQ(static_cast<long>(s.size()), 0);
            log.push_back("cleanup");
          });
          s.spawn([&]() -> task<> {
            end_note ended(log, "child");
            co_await weir::sleep(20ms);
          });
          co_await end_by(how, s);
        }));
        log.push_back("returned");
      });
      EXPECT_EQ(joined(log), "child,cleanup,returned");
    });
  }
}
TEST(defer, it_is_told_how_the_scope_ended) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      const std::vector<body_ending> endings{body_ending::value, body_ending::error,
                                             body_ending::cancelled};
      for (body_ending how : endings) {
        (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
          s.defer([&](const weir::outcome_view& o) { log.push_back(story_of(o)); });
          co_await end_by(how, s);
        }));
      }
    });
    EXPECT_EQ(joined(log), "value,error 1,cancelled stop");
  });
}
TEST(defer, the_one_of_a_context_is_told_how_its_operation_ended) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto op = [&](weir::context& c) -> task<int> {
        c.defer([&](const weir::outcome_view& o) { log.push_back(story_of(o)); });
        co_await weir::sleep(1ms);
        co_return 1;
      };
      auto failing = [&](weir::context& c) -> task<int> {
        c.defer([&](const weir::outcome_view& o) { log.push_back(story_of(o)); });
        co_return co_await fails_after(1ms, 4);
      };
      (void)co_await weir::settle(op);
      (void)co_await weir::settle(failing);
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto child = s.spawn([&](weir::context& c) -> task<> {
          c.defer([&](const weir::outcome_view& o) { log.push_back(story_of(o)); });
          co_await weir::sleep(1h);
        });
        co_await weir::sleep(1ms);
        child.cancel("enough");
      });
    });
    EXPECT_EQ(joined(log), "value,error 4,cancelled enough");
  });
}

TEST(defer, the_one_of_a_context_runs_before_the_future_of_its_operation_is_done) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.defer([&] { log.push_back("scope"); });
        auto child = s.spawn([&](weir::context& c) -> task<int> {
          c.defer([&]() -> task<> {
            co_await weir::sleep(10ms);
            log.push_back("context");
          });
          co_return 1;
        });
        int value = co_await child;
        EXPECT_EQ(value, 1);
        log.push_back("awaited");
      });
    });
    EXPECT_EQ(joined(log), "context,awaited,scope");
  });
}

TEST(defer, the_locals_of_the_frame_are_destroyed_before_it_runs) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
        end_note body(log, "body");
        s.defer([&log] { log.push_back("defer"); });
        s.cancel("stop");
        co_await weir::checkpoint();
      }));
    });
    EXPECT_EQ(joined(log), "body,defer");
  });
}

TEST(defer, the_captures_of_one_are_destroyed_once_it_has_run) {
  for_each_order([](weir::sim::world& w) {
    auto token = std::make_shared<int>(1);
    w.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.defer([&] { EXPECT_EQ(token.use_count(), 1); });
        auto holder = [token]() -> task<> { co_await weir::sleep(1ms); };
        s.defer(std::move(holder));
        co_return;
      });
    });
    EXPECT_EQ(token.use_count(), 1);
  });
}
