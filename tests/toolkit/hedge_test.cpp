// SPDX-License-Identifier: MIT
// hedge: when further attempts start, which one wins, and what happens to the others.
#include <limits>
#include <memory>

#include "policy_support.hpp"

using namespace policy_test;
using weir::hedge_options;

namespace {

/// An operation whose n-th attempt takes and gives what it is told to.
class lanes {
 public:
  struct plan {
    weir::duration takes;
    bool fails = false;
  };
  explicit lanes(std::vector<plan> plans) : plans_(std::move(plans)) {}

  auto operation() {
    return [this]() -> task<int> {
      const auto number = static_cast<std::size_t>(started++);
      starts.push_back(weir::now());
      const end_note ended(log, "end " + std::to_string(number + 1));
      const auto guard = weir::scope_exit([&] {
        if (const weir::cancel_reason* why = weir::unwinding())
          kinds.push_back(why->chain().front().kind);
      });
      const plan p = number < plans_.size() ? plans_[number] : plan{1h};
      co_await weir::sleep(p.takes);
      if (p.fails) throw boom(static_cast<int>(number) + 1);
      co_return static_cast<int>(number) + 1;
    };
  }
  std::vector<long> starts_ms() const {
    std::vector<long> all;
    for (auto t : starts) all.push_back(static_cast<long>((t - starts.front()) / 1ms));
    return all;
  }

  int started = 0;
  std::vector<weir::time_point> starts;
  std::vector<weir::cancel_kind> kinds;  // of the attempts that were cancelled
  text_log log;

 private:
  std::vector<plan> plans_;
};

using times = std::vector<long>;

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(hedge,
                          it_starts_another_attempt_after_the_delay_and_the_first_value_wins) {
  lanes l({{1h}, {20ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 50ms, .max = 3});
  const stopwatch time;
  EXPECT_EQ(co_await o(), 2);
  EXPECT_EQ(time.ms(), 70);
  EXPECT_EQ(l.starts_ms(), (times{0, 50}));
  EXPECT_EQ(l.kinds, (std::vector<weir::cancel_kind>{weir::cancel_kind::hedge_lost}));
  EXPECT_EQ(counted(l.log, "end 1"), 1);  // joined before the value is delivered
  EXPECT_EQ(live_timers(), 0);
}

FIBER_TEST(hedge, losers_are_joined_before_the_value_is_delivered) {
  text_log log;
  int started = 0;
  auto stubborn = [&]() -> task<int> {
    const int number = ++started;
    if (number == 1) co_return co_await slow_to_stop(log, "first");
    co_return co_await after(10ms, number);
  };
  auto o = weir::op(stubborn) | weir::hedge({.after = 50ms});
  const stopwatch time;
  EXPECT_EQ(co_await o(), 2);
  EXPECT_EQ(time.ms(), 90);  // the loser takes 30 ms to stop
  EXPECT_EQ(joined(log), "first stopped");
}
FIBER_TEST(hedge, a_delay_of_zero_starts_all_at_once) {
  lanes l({{30ms}, {10ms}, {20ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 0ms, .max = 3});
  const stopwatch time;
  EXPECT_EQ(co_await o(), 2);
  EXPECT_EQ(time.ms(), 10);
  EXPECT_EQ(l.starts_ms(), (times{0, 0, 0}));
  EXPECT_EQ(l.kinds.size(), 2u);
}
FIBER_TEST(hedge, without_end_the_next_attempt_starts_only_after_a_failure) {
  lanes l({{100ms, true}, {100ms, true}, {100ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = weir::unbounded, .max = 5});
  EXPECT_EQ(co_await o(), 3);
  EXPECT_EQ(l.starts_ms(), (times{0, 100, 200}));
  EXPECT_TRUE(l.kinds.empty());
}
FIBER_TEST(hedge, a_failure_starts_the_next_attempt_at_once) {
  lanes l({{10ms, true}, {1h}, {5ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 50ms, .max = 3});
  EXPECT_EQ(co_await o(), 3);
  EXPECT_EQ(l.starts_ms(), (times{0, 10, 60}));  // the delay counts from the last start
}
FIBER_TEST(hedge, if_all_fail_the_last_error_comes_out_and_the_others_are_told) {
  const event_record events;
  lanes l({{100ms, true}, {10ms, true}, {10ms, true}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 50ms, .max = 3});
  EXPECT_EQ(boom_of(co_await error_of(o())), 1);
  EXPECT_EQ(l.starts_ms(), (times{0, 50, 60}));
  EXPECT_EQ(events.count("suppressed"), 2);
  EXPECT_EQ(events.count("cancel"), 0);
}

FIBER_TEST(hedge, no_more_than_max_attempts_are_made) {
  lanes l({{100ms, true}, {100ms, true}, {1ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 10ms, .max = 2});
  EXPECT_EQ(boom_of(co_await error_of(o())), 2);
  EXPECT_EQ(l.started, 2);
  lanes one({{1h}});
  auto single =
      weir::op(one.operation()) | weir::hedge({.after = 1ms, .max = 1}) | weir::timeout(1s);
  EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(single())));
  EXPECT_EQ(one.started, 1);
}
FIBER_TEST_IN_EVERY_ORDER(hedge, a_cancelled_caller_cancels_and_joins_every_attempt) {
  lanes l({});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 20ms, .max = 3}) | weir::timeout(50ms);
  const stopwatch time;
  EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(o())));
  EXPECT_EQ(time.ms(), 50);
  EXPECT_EQ(l.started, 3);
  EXPECT_EQ(l.log.size(), 3u);
  EXPECT_EQ(l.kinds, std::vector<weir::cancel_kind>(3, weir::cancel_kind::timeout));
  EXPECT_EQ(live_timers(), 0);
}

FIBER_TEST(hedge, every_attempt_has_a_context_of_its_own) {
  text_log log;
  std::vector<const weir::context*> seen;
  auto with_context = [&](weir::context& c) -> task<int> {
    seen.push_back(&c);
    const auto number = seen.size();
    c.defer([&log, number] { log.push_back("end " + std::to_string(number)); });
    if (number == 1) co_await weir::sleep(1h);
    co_await weir::sleep(1ms);
    co_return static_cast<int>(number);
  };
  auto o = weir::op(with_context) | weir::hedge({.after = 10ms});
  EXPECT_EQ(co_await o(), 2);
  EXPECT_NE(seen.at(0), seen.at(1));
  EXPECT_EQ(joined(log), "end 2,end 1");
}
FIBER_TEST(hedge, a_quick_value_costs_no_further_attempt_and_leaves_no_timer) {
  const event_record events;
  lanes l({{49ms}, {50ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 50ms});
  EXPECT_EQ(co_await o(), 1);
  EXPECT_EQ(live_timers(), 0);
  EXPECT_EQ(co_await o(), 2);  // at the very instant of the delay the value is first
  EXPECT_EQ(l.started, 2);
  EXPECT_EQ(events.count("hedge"), 0);
  EXPECT_EQ(events.count("cancel"), 0);
}
FIBER_TEST(hedge, a_losing_value_is_destroyed_and_told) {
  const event_record events;
  auto alive = std::make_shared<int>(0);
  int started = 0;
  auto shielded = [&]() -> task<std::shared_ptr<int>> {
    const int number = ++started;
    co_await weir::shield([&] { return weir::sleep(number == 1 ? 100ms : 10ms); });
    co_return alive;
  };
  auto o = weir::op(shielded) | weir::hedge({.after = 50ms});
  const stopwatch time;
  auto won = co_await o();
  EXPECT_EQ(time.ms(), 100);
  EXPECT_EQ(alive.use_count(), 2);
  EXPECT_EQ(events.count("value_discarded"), 1);
}
FIBER_TEST(hedge, the_delay_is_a_quantile_of_the_times_seen_once_there_are_enough) {
  weir::duration takes = 0ms;
  int started = 0;
  auto timed = [&]() -> task<int> {
    ++started;
    co_await weir::sleep(takes);
    co_return started;
  };
  auto o =
      weir::op(timed) | weir::hedge({.after = 500ms, .max = 2, .quantile = 0.9, .min_samples = 10});
  for (int i = 1; i <= 9; ++i) {
    takes = i * 10ms;
    (void)co_await o();
  }
  takes = 300ms;  // nine samples are not enough: the fixed delay holds
  EXPECT_EQ(co_await o(), 10);
  takes = 100ms;  // now there are 10, 20, ..., 90, 300: the nine-tenths quantile is 90
  const auto start = weir::now();
  const event_record events;
  (void)co_await o();
  EXPECT_EQ(started, 12);
  EXPECT_EQ(events.of("hedge").at(0).when, start + 90ms);
}

TEST(hedge, its_samples_are_shared_by_all_it_is_applied_to_and_belong_to_one_loop) {
  auto policy = weir::hedge({.after = 1h, .quantile = 1, .min_samples = 2});
  weir::sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    auto slow = weir::op([] { return after(10ms, 1); }) | policy;
    (void)co_await slow();
    (void)co_await slow();
    int started = 0;
    auto stuck = [&]() -> task<int> {
      co_await weir::sleep(++started == 1 ? weir::duration(1h) : 1ms);
      co_return started;
    };
    auto other = weir::op(stuck) | policy;
    const stopwatch time;
    EXPECT_EQ(co_await other(), 2);
    EXPECT_EQ(time.ms(), 11);
  });
  simulate([&]() -> task<> {  // the home has ended and passes on
    auto quick = weir::op([] { return ready(1); }) | policy;
    EXPECT_EQ(co_await quick(), 1);
  });
}

FIBER_TEST(hedge, calls_that_take_no_time_are_not_made_twice_because_of_their_quantile) {
  int started = 0;
  auto quick = [&]() -> task<int> { co_return ++started; };
  auto o = weir::op(quick) | weir::hedge({.quantile = 0.5, .min_samples = 1});
  for (int i = 0; i < 5; ++i) (void)co_await o();
  EXPECT_EQ(started, 5);
}
FIBER_TEST(hedge, a_denied_budget_leaves_the_running_attempt_alone_and_is_asked_once) {
  const event_record events;
  weir::retry_budget none({.ratio = 0, .min_per_second = 0});
  lanes l({{200ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 10ms, .max = 5, .budget = &none});
  EXPECT_EQ(co_await o(), 1);
  EXPECT_EQ(l.started, 1);
  EXPECT_EQ(events.count("budget_denied"), 1);
  EXPECT_EQ(events.of("budget_denied").at(0).object, "hedge");
  lanes bad({{10ms, true}});
  auto fails = weir::op(bad.operation()) | weir::hedge({.after = 1h, .max = 5, .budget = &none});
  EXPECT_EQ(boom_of(co_await error_of(fails())), 1);
  EXPECT_EQ(bad.started, 1);
}

FIBER_TEST(hedge, further_attempts_are_told_with_their_number) {
  const event_record events;
  lanes l({{1h}, {1h}, {1ms}});
  auto o = weir::op(l.operation()) | weir::hedge({.after = 10ms, .max = 3});
  (void)co_await o();
  EXPECT_EQ(events.numbers("hedge"), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(events.of("hedge").at(0).object, "hedge");
}

TEST(hedge, bad_options_are_refused_when_it_is_made) {
  const auto made = [](hedge_options o) { return thrown_by([&] { (void)weir::hedge(o); }); };
  expect_invalid(made({.after = -1ms}), "after");
  expect_invalid(made({.max = 0}), "max");
  expect_invalid(made({.max = -1}), "max");
  expect_invalid(made({.max = 1001}), "max");
  expect_invalid(made({.quantile = -0.1}), "quantile");
  expect_invalid(made({.quantile = 1.1}), "quantile");
  expect_invalid(made({.quantile = std::numeric_limits<double>::quiet_NaN()}), "quantile");
  expect_invalid(made({.min_samples = -1}), "min_samples");
  EXPECT_EQ(made({}), nullptr);
}

namespace {

/// Its moves throw boom(5) when the fuse has burnt down.
struct fragile {
  fragile() = default;
  fragile(fragile&&) {
    if (fuse > 0 && --fuse == 0) throw boom(5);
  }
  static inline int fuse = 0;
};

}  // namespace

TEST(hedge, a_move_of_the_value_that_throws_is_the_error) {
  for (int fuse = 1; fuse <= 12; ++fuse) {
    SCOPED_TRACE(fuse);
    weir::sim::run({}, [&]() -> task<> {
      const auto op = []() -> task<fragile> {
        co_await weir::sleep(1ms);
        co_return fragile{};
      };
      fragile::fuse = fuse;
      const auto error = co_await error_of(op | weir::hedge({.after = 1h, .max = 1}));
      EXPECT_TRUE(error == nullptr || boom_of(error) == 5) << what_of(error);
      fragile::fuse = 0;
    });
  }
}
