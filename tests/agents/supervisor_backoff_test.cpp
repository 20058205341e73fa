// SPDX-License-Identifier: MIT
// supervisor: the backoff before it restarts a child.
#include <algorithm>

#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

using start_times = std::vector<long>;

weir::child_options with_backoff(std::string_view name, const weir::backoff& how) {
  auto o = kid(name);
  o.backoff = how;
  return o;
}

/// Runs a task that fails `lasting` after each start and gives its starts in milliseconds.
start_times starts_of(const weir::backoff& how, weir::duration lasting, weir::duration observed,
                      const weir::supervisor_options& options = patient()) {
  start_times starts;
  simulate(options, [&](rig& r) -> task<> {
    const auto begin = weir::now();
    r.sup.add_task(with_backoff("t", how), [&]() -> task<> {
      starts.push_back(ms_since(begin));
      co_await weir::sleep(lasting);
      throw boom(1);
    });
    co_await r.start();
    co_await weir::sleep_until(begin + observed);
  });
  return starts;
}

}  // namespace
TEST(supervisor_backoff, the_pauses_grow_by_the_factor_up_to_the_ceiling) {
  EXPECT_EQ(starts_of({.base = 10ms, .factor = 3, .ceiling = 200ms}, 0s, 550ms),
            (start_times{0, 10, 40, 130, 330, 530}));
  EXPECT_EQ(starts_of({.base = 100ms, .factor = 1}, 0s, 350ms), (start_times{0, 100, 200, 300}));
  EXPECT_EQ(starts_of({.base = 100ms}, 50ms, 600ms), (start_times{0, 150, 400}));
}
TEST(supervisor_backoff, a_long_life_begins_again_at_the_base) {
  EXPECT_EQ(starts_of({.base = 100ms, .reset_after = 1s}, 1s, 3500ms),
            (start_times{0, 1100, 2200, 3300}));
  EXPECT_EQ(starts_of({.base = 100ms, .reset_after = 1s}, 1s - 1ms, 3600ms),
            (start_times{0, 1099, 2298}));
}
TEST(supervisor_backoff, jitter_spreads_the_restarts_of_many) {
  const weir::backoff full{.base = 1s, .factor = 1, .ceiling = 1s, .jitter = weir::jitter::full};
  simulate(patient(), [&](rig& r) -> task<> {
    start_times starts;
    const auto begin = weir::now();
    std::vector<int> lives(50);
    for (int& life : lives) {
      r.sup.add_task(with_backoff("", full), [&]() -> task<> {
        if (life++ == 0) throw boom(1);
        starts.push_back(ms_since(begin));
        co_await weir::sleep(10000h);
      });
    }
    co_await r.start();
    co_await weir::sleep(2s);
    EXPECT_EQ(starts.size(), 50u);
    std::sort(starts.begin(), starts.end());
    EXPECT_LE(starts.back(), 1000);
    EXPECT_LT(starts.front(), 200);
    EXPECT_GT(starts.back(), 800);
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    EXPECT_GT(starts.size(), 30u);
  });
}
TEST(supervisor_backoff, equal_jitter_stays_in_the_upper_half) {
  const weir::backoff equal{.base = 1s, .factor = 1, .ceiling = 1s, .jitter = weir::jitter::equal};
  const start_times starts = starts_of(equal, 0s, 30s);
  EXPECT_GE(starts.size(), 30u);
  for (std::size_t i = 1; i < starts.size(); ++i) {
    EXPECT_GE(starts[i] - starts[i - 1], 499);
    EXPECT_LE(starts[i] - starts[i - 1], 1001);
  }
}
TEST(supervisor_backoff, the_intensity_is_counted_when_a_restart_is_made) {
  const weir::backoff slow{.base = 2s, .factor = 1};
  EXPECT_EQ(starts_of(slow, 0s, 21s, options_of(strategy::one_for_one, 3, 5s)).size(), 11u);
  const weir::backoff fast{.base = 1s, .factor = 1};
  EXPECT_EQ(starts_of(fast, 0s, 21s, options_of(strategy::one_for_one, 3, 5s)).size(), 4u);
}
TEST(supervisor_backoff, stop_and_cancellation_do_not_wait_for_it) {
  for (bool cancel : {true, false}) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      auto a = r.add(with_backoff("a", {.base = 1h, .ceiling = 1h}), "a");
      co_await r.start();
      a.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(children_of(r.sup), "a:restarting");
      if (cancel) r.running->cancel("enough");
      const auto start = weir::now();
      if (!cancel) co_await r.sup.stop();
      EXPECT_EQ(ms_since(start), 0);
      co_await settle();
      EXPECT_TRUE(r.result.ended);
      EXPECT_EQ(r.log.text(), "+a -a");
    });
  }
}
TEST(supervisor_backoff, a_retry_that_was_cancelled_by_hand_never_happens) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add(with_backoff("a", {.base = 10s}), "a");
    co_await r.start();
    a.cast(&worker::crash);
    co_await weir::sleep(5s);
    co_await r.sup.terminate_child("a");
    co_await r.sup.restart_child("a");
    EXPECT_EQ(r.log.text(), "+a -a +a");
    co_await weir::sleep(1h);
    EXPECT_EQ(r.log.text(), "+a -a +a");
    EXPECT_EQ(counts(r.sup), "1 1 0 1");
  });
}
TEST(supervisor_backoff, a_retry_is_forgotten_when_a_sibling_restarts_the_group) {
  in_every_order(patient(strategy::rest_for_one), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto b = r.add(with_backoff("b", {.base = 10s}), "b");
    co_await r.start();
    b.cast(&worker::crash);
    co_await weir::sleep(5s);
    EXPECT_EQ(r.log.take(), "+a +b -b");
    a.cast(&worker::crash);
    co_await weir::sleep(10s);  // the group may wait as long as its slowest
    EXPECT_EQ(r.log.take(), "-a +a +b");
    co_await weir::sleep(1h);
    EXPECT_EQ(r.log.take(), "");
    EXPECT_EQ(counts(r.sup), "2 2 0 2");
  });
}
TEST(supervisor_backoff, the_mailbox_stays_bounded_meanwhile) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto o = with_backoff("a", {.base = 1s});
    o.capacity = 2;
    auto a = r.add(o, "a");
    co_await r.start();
    a.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(a.cast(&worker::note, 1), sent::enqueued);
    EXPECT_EQ(a.cast(&worker::note, 2), sent::enqueued);
    EXPECT_EQ(a.cast(&worker::note, 3), sent::full);
    co_await weir::sleep(2s);
    EXPECT_EQ(r.log.text(), "+a -a +a a1 a2");
  });
}
TEST(supervisor_backoff, a_group_waits_for_the_child_that_crashed) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    r.add("a");
    auto b = r.add(with_backoff("b", {.base = 1s}), "b");
    co_await r.start();
    b.cast(&worker::crash);
    co_await weir::sleep(900ms);
    EXPECT_EQ(r.log.text(), "+a +b -b -a");
    EXPECT_EQ(state_of(r.sup, "b"), "restarting");
    co_await weir::sleep(200ms);
    EXPECT_EQ(r.log.text(), "+a +b -b -a +a +b");
  });
}
TEST(supervisor_backoff, starts_that_fail_are_retried_with_growing_pauses) {
  simulate(patient(), [](rig& r) -> task<> {
    auto& plan = r.keep<start_plan>(&r.log, "f", 2, 4);
    auto f = r.sup.add<flaky>(with_backoff("f", {.base = 1s}), &plan);
    co_await r.start();
    f.cast(&flaky::crash);
    const auto begin = weir::now();
    co_await weir::sleep_until(begin + 990ms);
    EXPECT_EQ(plan.starts, 1);
    co_await weir::sleep_until(begin + 1100ms);
    EXPECT_EQ(plan.starts, 2);
    co_await weir::sleep_until(begin + 3100ms);
    EXPECT_EQ(plan.starts, 3);
    co_await weir::sleep_until(begin + 7100ms);
    EXPECT_EQ(plan.starts, 4);
    co_await weir::sleep_until(begin + 15100ms);
    EXPECT_EQ(r.log.text(), "+f -f !f !f !f +f");
  });
}
TEST(supervisor_backoff, children_wait_independently_of_each_other) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add(with_backoff("a", {.base = 2s}), "a");
    auto b = r.add(with_backoff("b", {.base = 1s}), "b");
    auto c = r.add("c");
    co_await r.start();
    a.cast(&worker::crash);
    b.cast(&worker::crash);
    c.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(children_of(r.sup), "c:running b:restarting a:restarting");
    co_await weir::sleep(1s);
    EXPECT_EQ(children_of(r.sup), "c:running b:running a:restarting");
    co_await weir::sleep(1s);
    EXPECT_EQ(children_of(r.sup), "c:running b:running a:running");
  });
}
