// SPDX-License-Identifier: MIT
// Where a cancellation becomes visible or is held back: settle, shield, finally, unwinding() and
// the three guards.
#include "scope_support.hpp"

using namespace weir_test;

namespace {

enum class how { value, error, cancelled };

/// Ends in the given way, 1 ms after its start; a cancelled one must be cancelled by somebody.
weir::task<int> end_in(how way) {
  co_await weir::sleep(1ms);
  if (way == how::error) throw boom(1);
  if (way == how::cancelled) co_await weir::sleep(1000h);
  co_return 5;
}

/// Runs `op` in a child and cancels it after 10 ms.
template <class Op>
weir::task<> cancel_after_10ms(Op op) {
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto child = s.spawn(std::move(op));
    co_await weir::sleep(10ms);
    child.cancel("stop");
    co_await s.idle();
    EXPECT_TRUE(child.peek()->is_cancelled());
  });
}

/// Three guards and one bare look at unwinding(), in a frame that ends in the given way.
weir::task<> guarded(text_log& log, how way) {
  struct look {
    text_log& log;
    ~look() { log.push_back(weir::unwinding() == nullptr ? "-" : "unwinding"); }
  } last{log};
  auto always = weir::scope_exit([&] { log.push_back("exit"); });
  auto good = weir::scope_success([&] { log.push_back("success"); });
  auto bad = weir::scope_failure([&] { log.push_back("failure"); });
  co_await end_in(way);
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(settle, an_outcome_is_a_value_an_error_or_a_cancellation) {
  auto on_value = [](int v) { return v; };
  auto on_error = [](const std::exception_ptr& e) { return -boom_of(e); };
  auto on_cancelled = [](const weir::cancel_reason& reason) {
    return message_of(reason) == "x" ? 99 : 0;
  };
  auto value = co_await weir::settle(end_in(how::value));
  EXPECT_TRUE(value.is_value() && !value.is_error() && !value.is_cancelled());
  EXPECT_EQ(value.match(on_value, on_error, on_cancelled), 5);
  auto error = co_await weir::settle(end_in(how::error));
  EXPECT_TRUE(!error.is_value() && error.is_error() && !error.is_cancelled());
  EXPECT_EQ(error.match(on_value, on_error, on_cancelled), -1);
  EXPECT_EQ(boom_of(thrown_by([&] { (void)error.value(); })), 1);
  auto stopped = co_await weir::settle(weir::with_scope([](weir::scope& s) -> weir::task<int> {
    s.cancel("x");
    co_return co_await end_in(how::cancelled);
  }));
  EXPECT_TRUE(!stopped.is_value() && !stopped.is_error() && stopped.is_cancelled());
  EXPECT_EQ(stopped.match(on_value, on_error, on_cancelled), 99);
  EXPECT_EQ(code_thrown_by([&] { (void)stopped.value(); }), weir::errc::cancelled);
}

FIBER_TEST(settle, an_outcome_of_void_calls_on_value_with_nothing) {
  auto ended = co_await weir::settle(weir::sleep(1ms));
  const int which = ended.match([] { return 1; }, [](const std::exception_ptr&) { return 2; },
                                [](const weir::cancel_reason&) { return 3; });
  EXPECT_EQ(which, 1);
}

// The cancellation of the caller is not turned into an outcome.
TEST(settle, a_cancelled_caller_unwinds_after_the_op_is_joined_and_gets_no_outcome) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      co_await cancel_after_10ms([&]() -> weir::task<> {
        end_note caller(log, "caller");
        auto ended = co_await weir::settle(slow_to_stop(log, "op"));
        log.push_back(ended.is_cancelled() ? "CANCELLED" : "WENT ON");
      });
      EXPECT_EQ(weir::now() - start, 40ms);
    });
    EXPECT_EQ(joined(log), "op stopped,caller");
  });
}

TEST(settle, an_op_that_finishes_in_the_instant_of_the_cancellation_does_not_stop_it) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      co_await cancel_after_10ms([&]() -> weir::task<> {
        auto ended = co_await weir::settle(after(10ms, 1));
        log.push_back(ended.is_value() ? "value" : "WRONG");
        co_await weir::sleep(1ms);
        log.push_back("WENT ON");
      });
    });
    EXPECT_TRUE(joined(log).empty() || joined(log) == "value") << joined(log);
  });
}

FIBER_TEST(shield, without_a_cancellation_it_gives_what_its_op_gives) {
  const int value = co_await weir::shield(end_in(how::value));
  EXPECT_EQ(value, 5);
  const int limited = co_await weir::shield(1ms, after(1h, 6));
  EXPECT_EQ(limited, 6);
  auto error = co_await weir::settle(weir::shield(end_in(how::error)));
  EXPECT_EQ(error.is_error() ? boom_of(error.error()) : 0, 1);
}

TEST(shield, its_op_does_not_see_the_cancellation_which_takes_the_caller_at_the_next_await) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      co_await cancel_after_10ms([&]() -> weir::task<> {
        end_note caller(log, "caller");
        const int value = co_await weir::shield([&](weir::context& context) -> weir::task<int> {
          co_await weir::sleep(20ms);
          EXPECT_FALSE(context.cancel_requested());
          EXPECT_EQ(weir::unwinding(), nullptr);
          co_await weir::sleep(10ms);
          co_return 4;
        });
        log.push_back("got " + std::to_string(value));
        EXPECT_TRUE(weir::this_context().cancel_requested());
        co_await weir::checkpoint();
        log.push_back("WENT ON");
      });
      EXPECT_EQ(weir::now() - start, 30ms);
    });
    EXPECT_EQ(joined(log), "got 4,caller");
  });
}

TEST(shield, an_error_inside_is_delivered_to_the_cancelled_caller) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      co_await cancel_after_10ms([&]() -> weir::task<> {
        try {
          co_await weir::shield(fails_after(20ms, 3));
        } catch (const boom& e) {
          log.push_back("caught " + std::to_string(e.n));
        }
        co_await weir::checkpoint();
        log.push_back("WENT ON");
      });
    });
    EXPECT_EQ(joined(log), "caught 3");
  });
}

FIBER_TEST_IN_EVERY_ORDER(shield, it_works_also_when_the_cancellation_had_been_requested_before) {
  int value = 0;
  auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.cancel();
    value = co_await weir::shield(after(5ms, 8));
    co_await weir::checkpoint();
    value = 0;
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(value, 8);
}

TEST(shield, a_limit_starts_when_the_outer_cancellation_is_requested) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      co_await cancel_after_10ms([&]() -> weir::task<> {
        end_note caller(log, "caller");
        co_await weir::shield(25ms, park(log, "op"));
        log.push_back("WENT ON");
      });
      EXPECT_EQ(weir::now() - start, 35ms);
    });
    EXPECT_EQ(joined(log), "op,caller");
  });
}

TEST(shield, an_op_that_ends_within_the_limit_delivers_its_result) {
  for_each_order([](weir::sim::world& w) {
    int value = 0;
    w.run([&]() -> weir::task<> {
      co_await cancel_after_10ms([&]() -> weir::task<> {
        value = co_await weir::shield(25ms, after(30ms, 6));
        co_await weir::checkpoint();
        value = 0;
      });
    });
    EXPECT_EQ(value, 6);
  });
}

TEST(shield, shields_under_one_cancellation_share_the_limit) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      co_await cancel_after_10ms([&]() -> weir::task<> {
        co_await weir::shield(30ms, after(25ms, 1));
        log.push_back("first");
        co_await weir::shield(30ms, after(10ms, 2));
        log.push_back("second");
        co_await weir::shield(30ms, after(1h, 3));
        log.push_back("WENT ON");
      });
      EXPECT_EQ(weir::now() - start, 40ms);
    });
    EXPECT_EQ(joined(log), "first,second");
  });
}

FIBER_TEST_IN_EVERY_ORDER(shield, the_own_cancel_of_a_scope_inside_is_not_held_back) {
  const auto start = weir::now();
  auto ended = co_await weir::settle(weir::shield([]() -> weir::task<> {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      s.spawn([&]() -> weir::task<> {
        co_await weir::sleep(5ms);
        s.cancel("inside");
      });
      co_await weir::sleep(1h);
    });
  }));
  EXPECT_FALSE(ended.is_value());
  EXPECT_EQ(weir::now() - start, 5ms);
}

TEST(finally, its_function_runs_after_value_error_and_cancellation_alike) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto cleanup = [&] { log.push_back("cleanup"); };
      auto good = end_in(how::value) | weir::finally(cleanup);
      const int value = co_await std::move(good);
      log.push_back(std::to_string(value));
      auto bad = end_in(how::error) | weir::finally(cleanup);
      auto error = co_await weir::settle(std::move(bad));
      log.push_back(error.is_error() ? "error" : "WRONG");
      co_await cancel_after_10ms([&]() -> weir::task<> {
        end_note caller(log, "caller");
        auto stopped = end_in(how::cancelled) | weir::finally(cleanup);
        co_await std::move(stopped);
        log.push_back("WENT ON");
      });
    });
    EXPECT_EQ(joined(log), "cleanup,5,cleanup,error,cleanup,caller");
  });
}

TEST(finally, its_task_is_shielded_and_awaited_before_the_unwinding_goes_on) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      auto cleanup = [&]() -> weir::task<> {
        co_await weir::sleep(30ms);
        EXPECT_EQ(weir::unwinding(), nullptr);
        log.push_back("cleanup");
      };
      co_await cancel_after_10ms([&]() -> weir::task<> {
        end_note caller(log, "caller");
        auto op = park(log, "op") | weir::finally(cleanup);
        co_await std::move(op);
        log.push_back("WENT ON");
      });
      EXPECT_EQ(weir::now() - start, 40ms);
    });
    EXPECT_EQ(joined(log), "op,cleanup,caller");
  });
}

TEST(finally, its_task_must_end_within_the_grace_of_the_scope) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      auto cleanup = [&]() -> weir::task<> {
        end_note ended(log, "cleanup ended");
        co_await weir::sleep(1000h);
        log.push_back("WENT ON");
      };
      auto ended = co_await weir::settle(
          weir::with_scope({.grace = 5s}, [&](weir::scope& s) -> weir::task<> {
            s.spawn([&]() -> weir::task<> {
              auto op = park(log, "op") | weir::finally(cleanup);
              co_await std::move(op);
            });
            co_await weir::sleep(1s);
            s.cancel();
            co_await weir::checkpoint();
          }));
      EXPECT_FALSE(ended.is_value());
      EXPECT_EQ(weir::now() - start, 6s);
    });
    EXPECT_EQ(joined(log), "op,cleanup ended");
  });
}

FIBER_TEST(finally, a_callable_may_be_piped_into_it_and_runs_each_time) {
  int cleaned = 0;
  auto op = [] { return end_in(how::value); };
  auto cleanup = [&] { ++cleaned; };
  for (int i = 1; i <= 3; ++i) {
    auto piped = op | weir::finally(cleanup);
    auto ended = co_await weir::settle(std::move(piped));
    EXPECT_TRUE(ended.is_value());
    EXPECT_EQ(cleaned, i);
  }
}

TEST(unwinding, it_is_null_after_a_value_and_an_error_and_the_reason_in_a_cancellation) {
  for_each_order([](weir::sim::world& w) {
    EXPECT_EQ(weir::unwinding(), nullptr);
    text_log log;
    w.run([&]() -> weir::task<> {
      auto value = co_await weir::settle(guarded(log, how::value));
      EXPECT_EQ(joined(log), "success,exit,-");
      log.clear();
      auto error = co_await weir::settle(guarded(log, how::error));
      EXPECT_EQ(joined(log), "failure,exit,-");
      log.clear();
      EXPECT_TRUE(value.is_value() && error.is_error());
      co_await cancel_after_10ms([&]() -> weir::task<> { co_await guarded(log, how::cancelled); });
      EXPECT_EQ(joined(log), "failure,exit,unwinding");
      EXPECT_EQ(weir::unwinding(), nullptr);
    });
    EXPECT_EQ(weir::unwinding(), nullptr);
  });
}

TEST(unwinding, it_tells_the_reason_in_every_frame_and_is_null_inside_shielded_cleanup) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto look = [&] {
        const auto* reason = weir::unwinding();
        log.push_back(reason == nullptr ? "-" : message_of(*reason));
      };
      auto inner = [&]() -> weir::task<> {
        auto guard = weir::scope_exit(look);
        co_await weir::sleep(1000h);
      };
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.defer([&]() -> weir::task<> {
          auto guard = weir::scope_exit(look);
          co_await weir::sleep(1ms);
        });
        auto guard = weir::scope_exit(look);
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(1ms);
          s.cancel("tidy up");
        });
        co_await inner();
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_EQ(joined(log), "tidy up,tidy up,-");
  });
}

TEST(unwinding, a_spawn_in_a_destructor_gives_a_cancelled_future_and_runs_nothing) {
  for_each_order([](weir::sim::world& w) {
    bool ran = false;
    bool cancelled = false;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.spawn([&]() -> weir::task<> {
          auto guard = weir::scope_exit([&] {
            auto late = s.spawn([&]() -> weir::task<> {
              ran = true;
              co_return;
            });
            cancelled = late.done() && late.peek()->is_cancelled();
            (void)weir::now();
          });
          co_await weir::sleep(1h);
        });
        co_await weir::sleep(1ms);
        s.cancel();
        co_await weir::checkpoint();
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_TRUE(cancelled);
    EXPECT_FALSE(ran);
  });
}

TEST(guards, in_plain_code_they_tell_a_normal_exit_from_an_exception) {
  text_log log;
  auto run = [&](bool fail) {
    auto always = weir::scope_exit([&] { log.push_back("exit"); });
    auto good = weir::scope_success([&] { log.push_back("success"); });
    auto bad = weir::scope_failure([&] { log.push_back("failure"); });
    if (fail) throw boom(1);
  };
  run(false);
  EXPECT_EQ(boom_of(thrown_by([&] { run(true); })), 1);
  EXPECT_EQ(joined(log), "success,exit,failure,exit");
}

TEST(guards, a_normal_exit_inside_a_destructor_that_runs_for_an_exception_is_a_success) {
  text_log log;
  struct cleans_up {
    text_log& log;
    ~cleans_up() {
      auto good = weir::scope_success([&] { log.push_back("success"); });
      auto bad = weir::scope_failure([&] { log.push_back("failure"); });
    }
  };
  auto error = thrown_by([&] {
    cleans_up c{log};
    throw boom(1);
  });
  EXPECT_EQ(boom_of(error), 1);
  EXPECT_EQ(joined(log), "success");
}

TEST(finally, its_function_may_be_move_only) {
  text_log log;
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    auto word = std::make_unique<std::string>("cleaned");
    auto tell = [&log, word = std::move(word)] { log.push_back(*word); };
    auto op = weir::sleep(1ms) | weir::finally(std::move(tell));
    co_await std::move(op);
  });
  EXPECT_EQ(joined(log), "cleaned");
}
