// SPDX-License-Identifier: MIT
// What a cancellation says about itself, and how it meets errors: reasons and their chains, errors
// before and after it, the watchdog, signals, and cancellers that break their promise.
#include <csignal>
#include <sstream>

#include "scope_support.hpp"

using namespace weir_test;

namespace {

/// Throws boom(number), `d` after it starts, whatever is cancelled meanwhile.
weir::task<> fails_shielded(weir::duration d, int number) {
  co_await weir::shield([&]() -> weir::task<> {
    co_await weir::sleep(d);
    throw boom(number);
  });
}

void cancel_with_a_throwing_canceller() {
  weir::sim::run({.seed = 1}, []() -> weir::task<> {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      auto child = s.spawn(
          []() -> weir::task<> {
            std::optional<weir::resumer<void>> slot;
            co_await weir::suspend<void>([&](weir::resumer<void> r) {
              slot.emplace(std::move(r));
              return []() -> weir::cancel_result { throw boom(1); };
            });
          },
          {.name = "breaks-its-promise"});
      co_await weir::sleep(1ms);
      child.cancel();
    });
  });
}

/// Asks the whole process to stop, three times: at once, in the cleanup, and in a shield.
void ignore_two_signals_and_send_a_third() {
  weir::run({.handle_signals = true}, []() -> weir::task<> {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      std::optional<weir::resumer<void>> slot;
      s.defer([&]() -> weir::task<> {
        std::raise(SIGTERM);
        std::raise(SIGTERM);
        co_await park_uncancellable(slot);
      });
      std::raise(SIGTERM);
      co_await weir::sleep(1h);
    });
  });
}

}  // namespace

// The page says only that a canceller must not throw; a crash that names the fiber it is.
TEST(cancel_reason_DeathTest, a_canceller_that_throws_ends_the_program_and_names_the_fiber) {
  EXPECT_DEATH(cancel_with_a_throwing_canceller(), "breaks-its-promise");
}

// Nothing but cancellations happened.
TEST(cancel_reason, an_outer_cancellation_without_any_error_unwinds_the_caller) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& outer) -> weir::task<> {
        outer.spawn([&]() -> weir::task<> {
          co_await weir::sleep(5ms);
          outer.cancel("stop");
        });
        try {
          co_await weir::with_scope({.errors = weir::errors::all},
                                    [&](weir::scope& inner) -> weir::task<> {
                                      inner.spawn(park(log, "child"));
                                      co_await weir::sleep(1h);
                                    });
        } catch (...) {
          log.push_back("CAUGHT");
        }
        log.push_back("WENT ON");
      }));
      EXPECT_TRUE(ended.is_cancelled());
    });
    EXPECT_EQ(joined(log), "child");
  });
}

// An error from before the cancellation is thrown, and the next await unwinds.
TEST(cancel_reason, an_error_from_before_the_outer_cancellation_is_thrown_and_then_it_unwinds) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      co_await weir::with_scope([&](weir::scope& outer) -> weir::task<> {
        auto caller = outer.spawn([&]() -> weir::task<> {
          try {
            co_await weir::with_scope([&](weir::scope& inner) -> weir::task<> {
              inner.spawn(fails_after(5ms, 1));
              inner.spawn(slow_to_stop(log, "child"));
              co_await weir::sleep(1h);
            });
          } catch (const boom& e) {
            log.push_back("caught " + std::to_string(e.n));
          }
          co_await weir::checkpoint();
          log.push_back("WENT ON");
        });
        co_await weir::sleep(10ms);
        caller.cancel("stop");
        co_await outer.idle();
        EXPECT_TRUE(caller.peek()->is_cancelled());
        EXPECT_EQ(weir::now() - start, 35ms);
      });
    });
    EXPECT_EQ(joined(log), "child stopped,caught 1");
  });
}

// An error from after the cancellation is suppressed and the caller unwinds.
TEST(cancel_reason, an_error_from_after_the_outer_cancellation_is_suppressed) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    text_log events;
    w.run([&]() -> weir::task<> {
      auto observer =
          weir::on_event([&](const weir::event_info& event) { events.emplace_back(event.name); });
      co_await weir::with_scope([&](weir::scope& outer) -> weir::task<> {
        auto caller = outer.spawn([&]() -> weir::task<> {
          try {
            co_await weir::with_scope([&](weir::scope& inner) -> weir::task<> {
              inner.spawn(fails_shielded(15ms, 1));
              co_await weir::sleep(1h);
            });
          } catch (...) {
            log.push_back("CAUGHT");
          }
          log.push_back("WENT ON");
        });
        co_await weir::sleep(5ms);
        caller.cancel("stop");
        co_await outer.idle();
        EXPECT_TRUE(caller.peek()->is_cancelled());
      });
    });
    EXPECT_EQ(joined(log), "");
    EXPECT_EQ(counted(events, "suppressed"), 1);
  });
}
FIBER_TEST_IN_EVERY_ORDER(cancel_reason, the_message_reaches_who_awaits_the_cancelled_child) {
  std::string message;
  std::error_code code;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto child = s.spawn(sleep_for(1h));
    s.spawn([&]() -> weir::task<> {
      co_await weir::sleep(1ms);
      child.cancel("the tap is closed");
    });
    try {
      co_await child;
    } catch (const weir::cancelled_error& e) {
      message = message_of(e.reason());
      code = e.code();
    }
    co_await s.join();
  });
  EXPECT_EQ(message, "the tap is closed");
  EXPECT_EQ(code, weir::errc::cancelled);
}

// The page names the event only; that it comes one grace after the cancellation and names the
// fiber is the line's. The await chain is in the dump.
FIBER_TEST_IN_EVERY_ORDER(cancel_reason, a_fiber_that_does_not_stop_within_the_grace_is_reported) {
  std::vector<std::string> objects;
  std::vector<weir::time_point> times;
  auto observer = weir::on_event([&](const weir::event_info& event) {
    if (event.name != "cancel_overdue") return;
    objects.emplace_back(event.object);
    times.push_back(event.when);
  });
  const auto start = weir::now();
  std::optional<weir::resumer<void>> slot;
  co_await weir::with_scope([&](weir::scope& outer) -> weir::task<> {
    outer.spawn([&]() -> weir::task<> {
      co_await weir::sleep(20s);
      EXPECT_FALSE(objects.empty());
      slot->complete();
    });
    auto ended =
        co_await weir::settle(weir::with_scope({.grace = 5s}, [&](weir::scope& s) -> weir::task<> {
          s.spawn(park_uncancellable(slot), {.name = "stubborn"});
          co_await weir::sleep(1s);
          s.cancel();
          co_await weir::checkpoint();
        }));
    EXPECT_TRUE(ended.is_cancelled());
  });
  EXPECT_TRUE(!objects.empty() && contains(objects.front(), "stubborn"));
  EXPECT_TRUE(!times.empty() && times.front() == start + 6s);
}
TEST(cancel_reason, the_chain_goes_from_the_origin_to_here_and_never_loses_a_hop) {
  for_each_order([](weir::sim::world& w) {
    std::optional<weir::future<void>> direct;
    std::optional<weir::future<void>> deep;
    std::optional<weir::scope_id> origin;
    std::string story;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      auto ended = co_await weir::settle(
          weir::with_scope({.name = "outer"}, [&](weir::scope& outer) -> weir::task<> {
            origin.emplace(outer.id());
            direct = outer.spawn([&]() -> weir::task<> {
              co_await weir::with_scope({.name = "mid"}, [&](weir::scope&) -> weir::task<> {
                co_await weir::with_scope({.name = "inner"},
                                          [&](weir::scope& inner) -> weir::task<> {
                                            deep = inner.spawn(sleep_for(1h));
                                            co_await weir::sleep(1h);
                                          });
              });
            });
            co_await weir::sleep(10ms);
            const weir::cancel_reason reason(cancel_kind::custom, "the tap is closed");
            outer.cancel(reason);
            co_await weir::sleep(1h);
          }));
      EXPECT_TRUE(ended.is_cancelled());
      const auto chain = deep->peek()->reason().chain();
      EXPECT_EQ(chain.size(), 3u);
      EXPECT_EQ(chain.front().kind, cancel_kind::custom);
      EXPECT_EQ(message_of(chain.front()), "the tap is closed");
      EXPECT_TRUE(chain.front().source == *origin);
      EXPECT_TRUE(chain.front().when == start + 10ms);
      EXPECT_EQ(chain.at(1).kind, cancel_kind::parent);
      EXPECT_EQ(chain.back().kind, cancel_kind::parent);
      std::ostringstream out;
      weir::why(out, *deep);
      story = out.str();
    });
    EXPECT_EQ(direct->peek()->reason().kind, cancel_kind::custom);
    EXPECT_EQ(direct->peek()->reason().chain().size(), 1u);
    for (const char* part : {"the tap is closed", "outer", "inner"}) {
      EXPECT_TRUE(contains(story, part)) << "no '" << part << "' in\n" << story;
    }
  });
}
FIBER_TEST(cancel_reason, a_reason_does_not_pick_up_the_exception_that_is_being_handled) {
  auto ended = co_await weir::settle(weir::with_scope([](weir::scope& s) -> weir::task<> {
    try {
      throw boom(1);
    } catch (const boom&) {
      s.cancel("unrelated");
    }
    co_await weir::checkpoint();
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(message_of(ended.reason()), "unrelated");
  EXPECT_TRUE(ended.reason().cause == nullptr);
}
TEST(cancel_reason, a_signal_cancels_the_root_and_a_second_one_ends_the_grace) {
  text_log log;
  std::optional<cancel_kind> seen;
  auto error = thrown_by([&] {
    weir::run({.handle_signals = true}, [&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.defer([&](const weir::outcome_view& view) {
          if (view.is_cancelled()) seen = view.reason().chain().front().kind;
        });
        s.defer([&]() -> weir::task<> {
          end_note cleanup(log, "cleanup ended early");
          std::raise(SIGTERM);
          co_await weir::sleep(1h);
          log.push_back("WENT ON");
        });
        std::raise(SIGTERM);
        co_await weir::sleep(1h);
        log.push_back("WENT ON");
      });
    });
  });
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
  EXPECT_TRUE(seen == cancel_kind::signal);
  EXPECT_EQ(joined(log), "cleanup ended early");
}
TEST(cancel_reason_DeathTest, a_third_signal_aborts) {
  EXPECT_EXIT(ignore_two_signals_and_send_a_third(), testing::KilledBySignal(SIGABRT), "");
}
FIBER_TEST_IN_EVERY_ORDER(cancel_reason,
                          the_cancellation_among_siblings_does_not_leak_out_of_their_scope) {
  int caught = 0;
  try {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      s.spawn(fails_after(5ms, 3));
      co_await weir::sleep(1h);
    });
  } catch (const boom& e) {
    caught = e.n;
  }
  EXPECT_EQ(caught, 3);
  EXPECT_FALSE(weir::this_context().cancel_requested());
  EXPECT_EQ(weir::this_scope().reason(), nullptr);
  co_await weir::checkpoint();
  const int value = co_await after(1ms, 4);
  EXPECT_EQ(value, 4);
}
TEST(cancel_reason, an_inner_handler_sees_inner_errors_only_and_the_outer_one_comes_after) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> weir::task<> {
      try {
        co_await weir::with_scope([&](weir::scope& outer) -> weir::task<> {
          outer.spawn(fails_after(10ms, 2));
          try {
            co_await weir::with_scope({.errors = weir::errors::all},
                                      [&](weir::scope& inner) -> weir::task<> {
                                        inner.spawn(fails_after(5ms, 1));
                                        inner.spawn(slow_to_stop(log, "inner"));
                                        co_await weir::sleep(1h);
                                      });
          } catch (const weir::error_group& group) {
            for (int n : booms_of(group.flatten())) log.push_back("inner " + std::to_string(n));
          }
          co_await weir::sleep(1h);
          log.push_back("WENT ON");
        });
      } catch (const boom& e) {
        log.push_back("outer " + std::to_string(e.n));
      }
    });
    EXPECT_EQ(joined(log), "inner stopped,inner 1,outer 2");
  });
}

// An op that lets a cancelled_error escape ended with an error, not cancelled.
FIBER_TEST_IN_EVERY_ORDER(cancel_reason,
                          an_op_that_lets_a_cancelled_error_escape_ended_with_an_error) {
  auto ended = co_await weir::settle([]() -> weir::task<> {
    try {
      co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
        s.cancel();
        co_await weir::checkpoint();
      });
    } catch (const weir::cancelled_error&) {
      throw;
    }
  });
  EXPECT_TRUE(ended.is_error());
  EXPECT_EQ(code_of(ended.error()), weir::errc::cancelled);
}
