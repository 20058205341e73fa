// SPDX-License-Identifier: MIT
// Cleanup after the grace has expired: what an overdue defer may still do, how the end of an outer
// grace reaches services that are being joined, and what must not get lost.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "scope_support.hpp"

using namespace weir_test;
using weir::task;

namespace {

/// Runs `overdue` as a defer whose grace was used up by the defer before it, and tells how the
/// scope ended. It must end when the grace does.
template <class F>
task<weir::outcome<void>> run_overdue(F overdue) {
  const auto t0 = weir::now();
  auto how = co_await weir::settle(weir::with_scope({.grace = 1s}, [&](weir::scope& s) -> task<> {
    s.defer([&]() -> task<> { return overdue(); });
    s.defer([]() -> task<> { co_await weir::sleep(100s); });
    co_return;
  }));
  EXPECT_EQ(weir::now() - t0, 1s);
  EXPECT_TRUE(how.is_error() && holds<weir::timeout_error>(how.error()));
  // What was left armed in a destroyed frame would show now.
  co_await weir::sleep(20s);
  co_return how;
}

/// The overdue defer waits for `make()`, which would park: it is unwound there.
template <class Make>
task<> is_cut_short(Make make) {
  text_log log;
  const long timers = live_timers();
  auto how = co_await run_overdue([&]() -> task<> {
    end_note ended(log, "ended");
    (void)co_await make();
    log.push_back("NEVER");
  });
  EXPECT_EQ(joined(log), "ended");
  EXPECT_EQ(how.cleanup().size(), 2u);
  EXPECT_EQ(live_timers(), timers);
}

/// The overdue defer waits for `make()`, which is ready: it succeeds.
template <class Make>
task<> still_succeeds(Make make) {
  bool succeeded = false;
  auto how = co_await run_overdue([&]() -> task<> {
    (void)co_await make();
    succeeded = true;
  });
  EXPECT_TRUE(succeeded);
  EXPECT_EQ(how.cleanup().size(), 1u);
}

struct throws_when_destroyed {
  throws_when_destroyed() = default;
  throws_when_destroyed(const throws_when_destroyed&) = delete;
  throws_when_destroyed& operator=(const throws_when_destroyed&) = delete;
  ~throws_when_destroyed() noexcept(false) { throw boom(9); }
};

class counted_copy {
 public:
  explicit counted_copy(int& live) : live_(&live) { ++*live_; }
  counted_copy(const counted_copy& other) : live_(other.live_) { ++*live_; }
  counted_copy& operator=(const counted_copy&) = delete;
  ~counted_copy() { --*live_; }

 private:
  int* live_;
};

task<counted_copy> value_then_error(int& live) {
  throws_when_destroyed last;
  co_return counted_copy(live);
}

/// In a process of its own: a service is being joined when the second signal comes. Ends with 0 if
/// the scope was cancelled and the service was cut short.
template <class Service>
[[noreturn]] void second_signal_while_joining(Service service) {
  text_log log;
  bool stopping = false;
  bool cancelled = false;
  try {
    weir::run({.handle_signals = true, .grace = 1h}, [&]() -> task<> {
      co_await weir::with_scope({.grace = 1h}, [&](weir::scope& s) -> task<> {
        s.background([&]() -> task<> { return service(log, stopping); }, {.name = "the service"});
        s.defer([&] { stopping = true; });  // popped before the service is joined
        co_await weir::sleep(1ms);
        ::kill(::getpid(), SIGINT);
        co_await weir::sleep(1h);
      });
    });
  } catch (const weir::cancelled_error&) {
    cancelled = true;
  }
  ::_exit(cancelled && joined(log) == "cut short" ? 0 : 1);
}

/// Waits, out of reach of the first signal, until it is being joined, and sends the second.
task<> send_when_joined(const bool& stopping) {
  while (!stopping) co_await weir::sleep(1ms);
  co_await weir::sleep(1ms);
  ::kill(::getpid(), SIGINT);
  co_await weir::sleep(1h);
}

task<> shielded_service(text_log& log, const bool& stopping) {
  end_note ended(log, "cut short");
  co_await weir::shield(send_when_joined(stopping));
  log.push_back("NEVER");
}

task<> service_that_cannot_stop(text_log& log, const bool& stopping) {
  std::optional<weir::resumer<void>> kept;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> { co_await weir::shield(send_when_joined(stopping)); });
    co_await park_uncancellable(kept);
  });
  log.push_back("NEVER");
}

/// Waits for ever for something that no timer and no other thread can bring.
task<> wait_in_vain() {
  weir::counting_governor none(0);
  weir::permit never = co_await none.acquire();
}

template <class Op>
std::error_code how_run_ends(Op op) {
  return code_thrown_by([&] { weir::run(std::move(op)); });
}

}  // namespace

// ------------------------------------------------------------------ overdue defers

FIBER_TEST_IN_EVERY_ORDER(cleanup_force, an_overdue_defer_is_unwound_where_a_composite_would_park) {
  co_await is_cut_short([] { return weir::race(weir::sleep(5s), weir::sleep(6s)); });
  co_await is_cut_short([] { return weir::any(weir::sleep(5s), weir::sleep(6s)); });
  co_await is_cut_short([] { return weir::all(weir::sleep(5s), weir::sleep(6s)); });
  co_await is_cut_short([] { return weir::with_timeout(3s, weir::sleep(5s)); });
  co_await is_cut_short(
      [] { return weir::with_timeout(3s, weir::race(weir::sleep(5s), weir::sleep(6s))); });
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force,
                          an_overdue_defer_is_unwound_where_a_task_in_it_would_park) {
  co_await is_cut_short([]() -> task<> { co_await weir::sleep(5s); });
  co_await is_cut_short([]() -> task<> { co_await weir::race(weir::sleep(5s), weir::sleep(6s)); });
  co_await is_cut_short([]() -> task<> { co_await weir::with_timeout(3s, weir::sleep(6s)); });
  co_await is_cut_short([] { return weir::with_timeout(3s, sleep_for(5s)); });
  co_await is_cut_short([] { return weir::race(sleep_for(5s), sleep_for(6s)); });
  co_await is_cut_short([] {
    return weir::with_scope([](weir::scope& s) -> task<> {
      auto never_started = s.spawn(ready(1));
      EXPECT_TRUE(never_started.done() && never_started.peek()->is_cancelled());
      co_await weir::sleep(5s);
    });
  });
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force, an_overdue_defer_does_not_start_what_would_park) {
  weir::counting_governor none(0);
  int started = 0;
  co_await is_cut_short([&] { return none.acquire(); });
  co_await is_cut_short([&] { return weir::race(none.acquire(), none.acquire(2)); });
  co_await is_cut_short([&] { return weir::suspend<int>([&](weir::resumer<int>) { ++started; }); });
  EXPECT_EQ(static_cast<long>(none.waiting()), 0);
  EXPECT_EQ(started, 0);
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force, in_an_overdue_defer_waits_that_are_ready_still_succeed) {
  weir::counting_governor g(1), none(0);
  co_await still_succeeds([&] { return g.acquire(); });
  co_await still_succeeds([&] { return weir::with_timeout(3s, g.acquire()); });
  co_await still_succeeds([&] { return weir::race(weir::sleep(1s), g.acquire()); });
  co_await still_succeeds([&] { return weir::any(none.acquire(), g.acquire()); });
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto done = s.spawn(ready(1));
    co_await s.idle();
    co_await still_succeeds([&] { return weir::all(g.acquire(), done); });
    co_await still_succeeds([&]() -> task<int> { co_return co_await done; });
    co_await still_succeeds([&] { return s.idle(); });
  });
  EXPECT_EQ(static_cast<long>(g.active()), 0);
  EXPECT_EQ(static_cast<long>(none.waiting()), 0);
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force, in_an_overdue_defer_tasks_that_never_park_still_succeed) {
  weir::counting_governor g(1);
  co_await still_succeeds([] { return ready(1); });
  co_await still_succeeds([] { return weir::with_timeout(3s, ready(1)); });
  co_await still_succeeds([] { return weir::settle(ready(1)); });
  co_await still_succeeds([] { return weir::shield(ready(1)); });
  co_await still_succeeds([&] {
    return weir::with_scope([&](weir::scope&) -> task<int> {
      weir::permit p = co_await g.acquire();
      co_return 1;
    });
  });
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force, an_overdue_defer_of_an_operation_is_started_as_well) {
  text_log log;
  const auto t0 = weir::now();
  auto error = co_await error_of(weir::with_scope({.grace = 1s}, [&](weir::scope& s) -> task<> {
    s.spawn([&](weir::context& c) -> task<> {
      c.defer([&] { log.push_back("plain"); });
      c.defer([&]() -> task<> {
        end_note ended(log, "second");
        co_await weir::sleep(100s);
        log.push_back("NEVER");
      });
      c.defer([&]() -> task<> {
        end_note ended(log, "first");
        co_await weir::sleep(50s);
        log.push_back("NEVER");
      });
      co_await weir::sleep(5s);
    });
    co_await weir::sleep(1s);
    s.cancel("stop");
    co_await weir::sleep(1s);
  }));
  EXPECT_TRUE(error != nullptr);
  EXPECT_EQ(joined(log), "first,second,plain");
  EXPECT_EQ(weir::now() - t0, 2s);
}

// ------------------------------------------------------------------ services that are being joined

FIBER_TEST_IN_EVERY_ORDER(cleanup_force,
                          the_end_of_an_outer_grace_reaches_a_service_that_an_inner_scope_joins) {
  text_log log;
  const auto t0 = weir::now();
  const auto service = [&]() -> task<> {
    end_note ended(log, "service ended");
    co_await weir::shield(sleep_for(10s));
    log.push_back("NEVER");
  };
  auto error = co_await error_of(
      weir::with_scope({.name = "outer", .grace = 1s}, [&](weir::scope& s) -> task<> {
        s.defer([&]() -> task<> {
          co_await weir::with_scope({.name = "inner", .grace = 60s},
                                    [&](weir::scope& in) -> task<> {
                                      in.background(service);
                                      co_await weir::sleep(10ms);
                                    });
          log.push_back("NEVER");
        });
        co_return;
      }));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(joined(log), "service ended");
  EXPECT_EQ(weir::now() - t0, 1s);
  co_await weir::sleep(20s);
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force,
                          an_isolated_service_that_fails_while_it_is_stopped_is_raised) {
  auto error = co_await error_of(
      weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
        s.background([]() -> task<> { co_await weir::shield(fails_after(2s, 3)); });
        co_await weir::sleep(1s);
      }));
  EXPECT_EQ(boom_of(error), 3);
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force,
                          an_isolated_service_that_was_awaited_keeps_its_failure_in_its_future) {
  auto error = co_await error_of(
      weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
        auto service = s.background(fails_after(1s, 3));
        auto failure = co_await error_of(weir::future<int>(service));
        EXPECT_EQ(boom_of(failure), 3);
      }));
  EXPECT_TRUE(error == nullptr) << what_of(error);
}

TEST(cleanup_force_death, a_second_signal_ends_a_service_that_is_being_joined) {
  EXPECT_EXIT(second_signal_while_joining(shielded_service), testing::ExitedWithCode(0), "");
}

TEST(cleanup_force_death, a_service_that_cannot_stop_is_named_when_the_process_ends) {
  EXPECT_EXIT(second_signal_while_joining(service_that_cannot_stop), testing::ExitedWithCode(124),
              "the service");
}

// ------------------------------------------------------------------ waits that nothing can end

TEST(cleanup_force, a_service_that_waits_in_vain_is_a_deadlock_also_with_an_endless_grace) {
  text_log log;
  EXPECT_EQ(how_run_ends(weir::with_scope({.grace = weir::duration::max()},
                                          [&](weir::scope& s) -> task<> {
                                            s.background([&]() -> task<> {
                                              end_note ended(log, "ended");
                                              co_await weir::shield(wait_in_vain());
                                            });
                                            co_await weir::yield();
                                            co_await weir::yield();
                                          })),
            weir::errc::deadlock);
  EXPECT_EQ(joined(log), "ended");
}

TEST(cleanup_force, after_a_token_has_fired_it_keeps_no_loop_waiting) {
  weir::cancel_source source;
  EXPECT_EQ(how_run_ends([&]() -> task<> {
              co_await weir::with_scope([&](weir::scope& s) -> task<> {
                s.spawn(weir::with_token(source.token(), weir::shield(wait_in_vain())));
                co_await weir::sleep(1ms);
                source.cancel("fired");
              });
            }),
            weir::errc::deadlock);
}

TEST(cleanup_force, a_token_whose_source_went_after_it_fired_keeps_no_loop_waiting) {
  weir::cancel_source source;
  EXPECT_EQ(how_run_ends([&]() -> task<> {
              co_await weir::with_scope([&](weir::scope& s) -> task<> {
                s.spawn(weir::with_token(source.token(), weir::shield(wait_in_vain())));
                co_await weir::sleep(1ms);
                source.cancel("fired");
                source = weir::cancel_source();
              });
            }),
            weir::errc::deadlock);
}

TEST(cleanup_force, a_token_linked_to_a_stop_source_that_is_gone_keeps_no_loop_waiting) {
  auto source = std::make_unique<std::stop_source>();
  EXPECT_EQ(how_run_ends([&]() -> task<> {
              co_await weir::with_token(weir::link(source->get_token()), [&]() -> task<> {
                source.reset();
                co_await wait_in_vain();
              });
            }),
            weir::errc::deadlock);
}

// ------------------------------------------------------------------ values on the way out

TEST(cleanup_force, a_value_before_a_destructor_that_throws_does_not_leak) {
  int live = 0;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    auto awaited = co_await error_of(value_then_error(live));
    EXPECT_EQ(boom_of(awaited), 9);
    EXPECT_EQ(live, 0);
    auto settled = co_await weir::settle(value_then_error(live));
    EXPECT_TRUE(settled.is_error());
    EXPECT_EQ(live, 0);
    auto error = co_await error_of(weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(value_then_error(live));
      co_return;
    }));
    EXPECT_EQ(boom_of(error), 9);
  });
  EXPECT_EQ(live, 0);
}

SCOPE_TEST_IN_EVERY_ORDER(cleanup_force,
                          a_child_that_says_it_is_up_and_ends_at_once_gives_its_value) {
  const std::string long_text(60, 'x');
  std::string text = co_await s.start([&](weir::started<std::string>& up) -> task<> {
    up(long_text);
    co_return;
  });
  EXPECT_EQ(text, long_text);
  using pointer = std::unique_ptr<int>;
  pointer number = co_await s.start([](weir::started<pointer>& up) -> task<> {
    up(std::make_unique<int>(7));
    co_return;
  });
  EXPECT_TRUE(number && *number == 7);
  co_await s.start([](weir::started<>& up) -> task<> {
    up();
    co_return;
  });
}

FIBER_TEST_IN_EVERY_ORDER(cleanup_force,
                          a_start_that_is_awaited_in_a_defer_finds_the_scope_closed) {
  bool ran = false;
  auto error = co_await error_of(weir::with_scope([&](weir::scope& s) -> task<> {
    auto start = std::make_shared<task<>>(s.start([&](weir::started<>& up) -> task<> {
      ran = true;
      up();
      co_await weir::sleep(5s);
    }));
    s.defer([start]() -> task<> { co_await std::move(*start); });
    co_return;
  }));
  EXPECT_EQ(code_of(error), weir::errc::scope_closed) << what_of(error);
  EXPECT_FALSE(ran);
}

FIBER_TEST(cleanup_force, an_observer_that_throws_is_in_the_recent_events) {
  auto throwing = weir::on_event([](const weir::event_info&) { throw boom(1); });
  auto error = co_await error_of(weir::with_scope([](weir::scope& s) -> task<> {
    s.cancel("stop");
    co_await weir::sleep(1s);
  }));
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
  std::vector<std::string> failed;
  for (const auto& e : weir::recent_events().events)
    if (e.name == "observer_failed") failed.push_back(e.object);
  EXPECT_EQ(failed, std::vector<std::string>{"cancel"});
}
