// SPDX-License-Identifier: MIT
// circuit_breaker: when it opens, what it lets through, and what it forgets.
#include <limits>
#include <memory>
#include <optional>

#include "policy_support.hpp"

using namespace policy_test;
using weir::circuit_breaker;
using weir::circuit_breaker_options;
using weir::circuit_state;

namespace {

/// A breaker with an operation behind it that takes and does what it is told to.
class rig {
 public:
  explicit rig(circuit_breaker_options options) : cb(options) {}

  auto operation() {
    return weir::op([this]() -> task<> {
             ++runs;
             const bool bad = fails;
             if (takes > weir::duration::zero()) co_await weir::sleep(takes);
             if (bad) throw boom(runs);
           }) |
           weir::breaker(cb);
  }
  task<std::string> call() {
    auto o = operation();
    co_return co_await verdict_of(o());
  }
  static task<std::string> verdict_of(task<> t) {
    const auto error = co_await error_of(std::move(t));
    if (error == nullptr) co_return "value";
    if (holds<weir::circuit_open_error>(error)) co_return "rejected";
    co_return holds<boom>(error) ? "failed" : "other";
  }
  /// 'f' fails, 's' succeeds; the verdicts by their first letters.
  task<std::string> calls(std::string plan) {
    std::string verdicts;
    for (char c : plan) {
      fails = c == 'f';
      const std::string word = co_await call();
      verdicts += word.front();
    }
    co_return verdicts;
  }
  circuit_state state() const { return cb.state(); }

  circuit_breaker cb;
  bool fails = false;
  weir::duration takes{};
  int runs = 0;
};

constexpr circuit_breaker_options half_of_four{
    .failure_ratio = 0.5, .minimum_calls = 4, .window = 10s, .open_for = 5s};

/// The time that a rejection says is left.
task<std::optional<weir::duration>> time_left(rig& r) {
  auto o = r.operation();
  try {
    co_await o();
  } catch (const weir::circuit_open_error& e) {
    co_return e.retry_after();
  }
  co_return std::nullopt;
}

}  // namespace
FIBER_TEST(circuit_breaker, it_starts_closed_and_does_not_open_below_its_minimum_of_calls) {
  rig r(half_of_four);
  EXPECT_EQ(r.state(), circuit_state::closed);
  EXPECT_EQ(co_await r.calls("fff"), "fff");
  EXPECT_EQ(r.state(), circuit_state::closed);
}
FIBER_TEST(circuit_breaker, it_opens_when_the_failures_reach_their_ratio_and_tells_it_once) {
  const event_record events;
  rig r(half_of_four);
  EXPECT_EQ(co_await r.calls("sssff"), "vvvff");
  EXPECT_EQ(r.state(), circuit_state::closed);  // 2 of 5
  EXPECT_EQ(co_await r.calls("f"), "f");        // 3 of 6
  EXPECT_EQ(r.state(), circuit_state::open);
  EXPECT_EQ(events.count("opened"), 1);
  EXPECT_EQ(events.of("opened").at(0).object, "breaker");
  rig at_minimum(half_of_four);
  EXPECT_EQ(co_await at_minimum.calls("fffs"), "fffv");  // the fourth call makes it 3 of 4
  EXPECT_EQ(at_minimum.state(), circuit_state::open);
}
FIBER_TEST(circuit_breaker, it_opens_when_the_slow_calls_reach_their_ratio) {
  rig r({.failure_ratio = 1, .minimum_calls = 4, .slow_ratio = 0.75, .slow_call = 100ms});
  r.takes = 100ms - 1ns;
  EXPECT_EQ(co_await r.calls("ss"), "vv");
  r.takes = 100ms;
  EXPECT_EQ(co_await r.calls("sssss"), "vvvvv");
  EXPECT_EQ(r.state(), circuit_state::closed);  // 5 of 7
  EXPECT_EQ(co_await r.calls("s"), "v");
  EXPECT_EQ(r.state(), circuit_state::open);  // 6 of 8
}
FIBER_TEST(circuit_breaker, open_it_rejects_without_running_and_says_how_long) {
  const event_record events;
  rig r({.name = "db", .failure_ratio = 0.5, .minimum_calls = 4, .open_for = 5s});
  EXPECT_EQ(co_await r.calls("ffffff"), "ffffrr");
  EXPECT_EQ(r.runs, 4);
  co_await weir::sleep(2s);
  EXPECT_EQ(*co_await time_left(r), 3s);
  EXPECT_EQ(events.count("rejected"), 3);
  EXPECT_EQ(events.of("rejected").at(0).object, "db");
  EXPECT_EQ(events.of("opened").at(0).object, "db");
  auto o = r.operation();
  const auto error = co_await error_of(o());
  EXPECT_EQ(code_of(error), errc::circuit_open);
  EXPECT_TRUE(contains(what_of(error), "'db'") && contains(what_of(error), "3000 ms"));
  EXPECT_EQ(r.cb.name(), "db");
}
FIBER_TEST(circuit_breaker, the_first_call_after_its_time_is_a_probe_and_a_value_closes_it) {
  const event_record events;
  rig r(half_of_four);
  EXPECT_EQ(co_await r.calls("ffff"), "ffff");
  co_await weir::sleep(5s - 1ns);
  EXPECT_EQ(co_await r.calls("s"), "r");
  co_await weir::sleep(1ns);
  EXPECT_EQ(r.state(), circuit_state::open);  // nobody has called yet
  EXPECT_EQ(co_await r.calls("s"), "v");
  EXPECT_EQ(r.state(), circuit_state::closed);
  EXPECT_EQ(co_await r.calls("fff"), "fff");  // the old failures are forgotten
  EXPECT_EQ(r.state(), circuit_state::closed);
  EXPECT_EQ(events.order_of({"opened", "half_opened", "closed"}), "opened,half_opened,closed");
}
FIBER_TEST(circuit_breaker, a_failing_probe_opens_it_again_for_the_whole_time) {
  rig r(half_of_four);
  (void)co_await r.calls("ffff");
  for (int i = 0; i < 3; ++i) {
    co_await weir::sleep(5s);
    EXPECT_EQ(co_await r.calls("f"), "f");
    EXPECT_EQ(r.state(), circuit_state::open);
    EXPECT_EQ(*co_await time_left(r), 5s);
  }
}
FIBER_TEST_IN_EVERY_ORDER(circuit_breaker, half_open_it_lets_exactly_its_probes_through) {
  rig r({.failure_ratio = 0.5, .minimum_calls = 1, .open_for = 1s, .probes = 3});
  (void)co_await r.calls("f");
  co_await weir::sleep(1s);
  r.fails = false;
  r.takes = 10ms;
  r.runs = 0;
  int rejected = 0, values = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 8; ++i) {
      s.spawn([&]() -> task<> {
        const std::string word = co_await r.call();
        rejected += word == "rejected" ? 1 : 0;
        values += word == "value" ? 1 : 0;
      });
    }
    co_await s.join();
  });
  EXPECT_EQ(r.runs, 3);
  EXPECT_EQ(rejected, 5);
  EXPECT_EQ(values, 3);
  EXPECT_EQ(r.state(), circuit_state::closed);
}

FIBER_TEST(circuit_breaker, half_open_a_rejection_has_no_time_left) {
  rig r({.failure_ratio = 0.5, .minimum_calls = 1, .open_for = 1s});
  (void)co_await r.calls("f");
  co_await weir::sleep(1s);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    r.fails = false;
    r.takes = 10ms;
    auto probe = s.spawn(r.operation());
    co_await weir::sleep(1ms);
    EXPECT_EQ(r.state(), circuit_state::half_open);
    EXPECT_EQ(*co_await time_left(r), 0s);
    co_await probe;
  });
}

FIBER_TEST(circuit_breaker, half_open_it_is_decided_as_soon_as_it_is_certain) {
  // Two failures of four are the limit: decided with the second failure.
  rig bad({.failure_ratio = 0.5, .minimum_calls = 1, .open_for = 1s, .probes = 4});
  (void)co_await bad.calls("f");
  co_await weir::sleep(1s);
  EXPECT_EQ(co_await bad.calls("f"), "f");
  EXPECT_EQ(bad.state(), circuit_state::half_open);
  EXPECT_EQ(co_await bad.calls("f"), "f");
  EXPECT_EQ(bad.state(), circuit_state::open);
  // Three values of four leave one to fail, which is too few.
  rig good({.failure_ratio = 0.5, .minimum_calls = 1, .open_for = 1s, .probes = 4});
  (void)co_await good.calls("f");
  co_await weir::sleep(1s);
  EXPECT_EQ(co_await good.calls("ss"), "vv");
  EXPECT_EQ(good.state(), circuit_state::half_open);
  EXPECT_EQ(co_await good.calls("s"), "v");
  EXPECT_EQ(good.state(), circuit_state::closed);
  // What may still be slow is not certain.
  rig slow({.failure_ratio = 0.5,
            .minimum_calls = 1,
            .open_for = 1s,
            .probes = 2,
            .slow_ratio = 0.5,
            .slow_call = 1ms});
  (void)co_await slow.calls("f");
  co_await weir::sleep(1s);
  EXPECT_EQ(co_await slow.calls("s"), "v");
  EXPECT_EQ(slow.state(), circuit_state::half_open);
  slow.takes = 1ms;
  EXPECT_EQ(co_await slow.calls("s"), "v");
  EXPECT_EQ(slow.state(), circuit_state::open);
}
FIBER_TEST_IN_EVERY_ORDER(circuit_breaker,
                          a_cancelled_probe_counts_as_nothing_and_gives_its_place_back) {
  rig r({.failure_ratio = 0.5, .minimum_calls = 1, .open_for = 1s});
  (void)co_await r.calls("f");
  co_await weir::sleep(1s);
  r.takes = 1h;
  auto o = r.operation();
  const auto late = co_await error_of(weir::with_timeout(10ms, o));
  EXPECT_TRUE(holds<weir::timeout_error>(late));
  EXPECT_EQ(r.state(), circuit_state::half_open);
  r.takes = 0ms;
  EXPECT_EQ(co_await r.calls("s"), "v");
  EXPECT_EQ(r.state(), circuit_state::closed);
}

FIBER_TEST(circuit_breaker, cancelled_calls_do_not_count_when_it_is_closed) {
  rig r({.failure_ratio = 0.5, .minimum_calls = 2, .slow_ratio = 0.5, .slow_call = 1ms});
  r.takes = 1h;
  auto o = r.operation();
  for (int i = 0; i < 5; ++i) (void)co_await error_of(weir::with_timeout(10ms, o));
  weir::cancel_source source;
  source.cancel();
  auto stopped = weir::op([&] { return weir::with_token(source.token(), after(1h, 1)); }) |
                 weir::breaker(r.cb);
  for (int i = 0; i < 5; ++i) (void)co_await error_of(stopped());
  r.takes = 0ms;
  EXPECT_EQ(co_await r.calls("f"), "f");
  EXPECT_EQ(r.state(), circuit_state::closed);
}

FIBER_TEST(circuit_breaker, a_time_limit_inside_it_is_a_failure) {
  circuit_breaker cb({.failure_ratio = 1, .minimum_calls = 3});
  auto o = weir::op([] { return after(1h, 1); }) | weir::timeout(10ms) | weir::breaker(cb);
  for (int i = 0; i < 3; ++i) {
    const auto error = co_await error_of(o());
    EXPECT_TRUE(holds<weir::timeout_error>(error));
  }
  EXPECT_EQ(cb.state(), circuit_state::open);
}
FIBER_TEST(circuit_breaker, results_of_an_earlier_state_never_change_the_present_one) {
  const event_record events;
  rig r({.failure_ratio = 0.5, .minimum_calls = 1, .open_for = 5s});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    r.fails = true;
    r.takes = 7s;
    auto stale = s.spawn(weir::settle(r.operation()));  // ends after it closed again
    r.takes = 5500ms;
    auto older = s.spawn(weir::settle(r.operation()));  // ends while the probe runs
    co_await weir::yield();
    r.takes = 0ms;
    EXPECT_EQ(co_await r.calls("f"), "f");
    co_await weir::sleep(5s);
    r.takes = 1s;
    EXPECT_EQ(co_await r.calls("s"), "v");
    EXPECT_EQ(r.state(), circuit_state::closed);
    co_await stale;
    co_await older;
    EXPECT_EQ(r.state(), circuit_state::closed);
    EXPECT_EQ(events.count("opened"), 1);
  });
}
FIBER_TEST(circuit_breaker, isolated_it_rejects_everything_until_it_is_reset) {
  const event_record events;
  rig r(half_of_four);
  EXPECT_EQ(co_await r.calls("fff"), "fff");
  r.cb.isolate();
  r.cb.isolate();
  EXPECT_EQ(r.state(), circuit_state::isolated);
  co_await weir::sleep(1h);
  EXPECT_EQ(co_await r.calls("s"), "r");
  EXPECT_EQ(*co_await time_left(r), weir::duration::max());
  r.cb.reset();
  EXPECT_EQ(r.state(), circuit_state::closed);
  EXPECT_EQ(co_await r.calls("fff"), "fff");  // with an empty window
  EXPECT_EQ(r.state(), circuit_state::closed);
  EXPECT_EQ(events.order_of({"isolated", "closed", "opened"}), "isolated,closed");
  EXPECT_EQ(co_await r.calls("f"), "f");
  r.cb.reset();
  EXPECT_EQ(co_await r.calls("s"), "v");
  r.cb.reset();  // already closed: nothing to tell
  EXPECT_EQ(events.count("closed"), 2);
}

FIBER_TEST(circuit_breaker, a_call_that_began_before_a_reset_does_not_count_after_it) {
  rig r({.failure_ratio = 0.5, .minimum_calls = 1});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    r.fails = true;
    r.takes = 10ms;
    auto old = s.spawn(weir::settle(r.operation()));
    co_await weir::sleep(1ms);
    r.cb.reset();
    co_await old;
    EXPECT_EQ(r.state(), circuit_state::closed);
  });
}
FIBER_TEST(circuit_breaker, its_window_forgets_exactly_at_its_length) {
  for (const bool inside : {true, false}) {
    rig r(half_of_four);
    co_await weir::sleep(123456789ns);
    EXPECT_EQ(co_await r.calls("fff"), "fff");
    co_await weir::sleep(inside ? 10s - 1ns : weir::duration(10s));
    EXPECT_EQ(co_await r.calls("f"), "f");
    EXPECT_EQ(r.state(), inside ? circuit_state::open : circuit_state::closed);
  }
}

FIBER_TEST(circuit_breaker, old_calls_leave_its_window_one_by_one) {
  rig r({.failure_ratio = 0.5, .minimum_calls = 10, .window = 10s});
  // One call a second, every third fails: the ratio stays below one half for ever.
  for (int i = 0; i < 100; ++i) {
    EXPECT_NE(co_await r.calls(i % 3 == 0 ? "f" : "s"), "r");
    co_await weir::sleep(1s);
  }
  EXPECT_EQ(r.state(), circuit_state::closed);
  std::string verdicts;
  for (int i = 0; i < 6; ++i) {
    verdicts += co_await r.calls("f");
    co_await weir::sleep(1s);
  }
  EXPECT_TRUE(contains(verdicts, "r")) << verdicts;
}
FIBER_TEST(circuit_breaker, an_endless_open_time_saturates) {
  rig r({.failure_ratio = 1, .minimum_calls = 1, .open_for = weir::unbounded});
  EXPECT_EQ(co_await r.calls("f"), "f");
  co_await weir::sleep(1000h);
  EXPECT_EQ(co_await r.calls("s"), "r");
  EXPECT_GT(*co_await time_left(r), 1000h);
}
FIBER_TEST(circuit_breaker, an_observer_of_its_events_may_ask_it) {
  rig r(half_of_four);
  std::vector<circuit_state> seen;
  auto sub = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "opened" || e.name == "half_opened" || e.name == "closed")
      seen.push_back(r.cb.state());
  });
  (void)co_await r.calls("ffff");
  co_await weir::sleep(5s);
  (void)co_await r.calls("s");
  const std::vector<circuit_state> expected{circuit_state::open, circuit_state::half_open,
                                            circuit_state::closed};
  EXPECT_EQ(seen, expected);
}

TEST(circuit_breaker, bad_options_are_refused_when_it_is_made) {
  const auto made = [](circuit_breaker_options o) {
    return thrown_by([&] { circuit_breaker cb(o); });
  };
  expect_invalid(made({.failure_ratio = 0}), "failure_ratio");
  expect_invalid(made({.failure_ratio = 1.1}), "failure_ratio");
  expect_invalid(made({.failure_ratio = std::numeric_limits<double>::quiet_NaN()}),
                 "failure_ratio");
  expect_invalid(made({.minimum_calls = 0}), "minimum_calls");
  expect_invalid(made({.window = 0s}), "window");
  expect_invalid(made({.open_for = -1s}), "open_for");
  expect_invalid(made({.probes = 0}), "probes");
  expect_invalid(made({.slow_ratio = 0}), "slow_ratio");
  expect_invalid(made({.slow_call = -1s}), "slow_call");
  EXPECT_EQ(made({}), nullptr);
  circuit_breaker with_braces({});
  EXPECT_EQ(with_braces.state(), circuit_state::closed);
}
