// SPDX-License-Identifier: MIT
// bulkhead and rate_limit: operations under permits of a governor.
#include <memory>

#include "policy_support.hpp"

using namespace policy_test;
using weir::counting_governor;

namespace {

/// Counts who is inside, at most and in all.
struct room {
  int inside = 0;
  int most = 0;
  int visits = 0;

  auto visit(weir::duration d) {
    return [this, d]() -> task<int> {
      const int number = ++visits;
      most = std::max(most, ++inside);
      const auto leave = weir::scope_exit([this] { --inside; });
      co_await weir::sleep(d);
      co_return number;
    };
  }
};

/// A governor of one's own: grants at once, and breaks when a permit is given back.
struct breaking_governor {
  task<weir::permit> acquire() {
    co_return weir::permit([] { throw bang(9); });
  }
  std::optional<weir::permit> try_acquire() { return std::nullopt; }
};

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(bulkhead, so_many_run_so_many_wait_and_the_next_is_rejected) {
  const event_record events;
  counting_governor g(2, {.name = "door", .max_waiting = 3});
  room r;
  auto o = weir::op(r.visit(10ms)) | weir::bulkhead(g);
  int rejected = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 7; ++i) {
      s.spawn([&]() -> task<> {
        const auto error = co_await error_of(o());
        if (error == nullptr) co_return;
        EXPECT_EQ(code_of(error), errc::governor_full);
        ++rejected;
      });
    }
    co_await s.join();
  });
  EXPECT_EQ(rejected, 2);
  EXPECT_EQ(r.most, 2);
  EXPECT_EQ(r.visits, 5);
  EXPECT_EQ(events.count("rejected"), 2);
  EXPECT_EQ(events.of("rejected").at(0).object, "door");
  EXPECT_EQ(g.active(), 0);
}
FIBER_TEST(bulkhead, a_cancelled_waiter_frees_its_place_in_the_queue_at_once) {
  counting_governor g(1, {.max_waiting = 1});
  room r;
  auto o = weir::op(r.visit(100ms)) | weir::bulkhead(g);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto first = s.spawn(o);
    co_await weir::sleep(1ms);
    auto waits = s.spawn(weir::settle(weir::with_timeout(10ms, o)));
    co_await weir::sleep(10ms);
    co_await waits;
    auto next = s.spawn(o);
    co_await weir::sleep(1ms);
    EXPECT_EQ(g.waiting(), 1);
    EXPECT_EQ(co_await next, 2);
    co_await first;
  });
  EXPECT_EQ(g.active(), 0);
}
FIBER_TEST(bulkhead, a_limit_that_changes_takes_effect_without_ending_anybody) {
  counting_governor g(1);
  room r;
  auto o = weir::op(r.visit(100ms)) | weir::bulkhead(g);
  const stopwatch time;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 6; ++i) s.spawn(o);
    co_await weir::sleep(10ms);
    g.resize(3);
    co_await weir::sleep(10ms);
    EXPECT_EQ(r.inside, 3);
    g.resize(1);
    co_await weir::sleep(10ms);
    EXPECT_EQ(r.inside, 3);  // nobody is thrown out
    co_await s.join();
  });
  EXPECT_EQ(r.visits, 6);
  EXPECT_EQ(time.ms(), 410);  // three until 110 ms, then one after the other
}

FIBER_TEST(bulkhead, a_number_makes_a_governor_that_everything_it_is_applied_to_shares) {
  room r;
  const auto policy = weir::bulkhead(2);
  auto a = weir::op(r.visit(10ms)) | policy;
  auto b = weir::op(r.visit(10ms)) | policy;
  co_await weir::all(a, b, a, b, a);
  EXPECT_EQ(r.most, 2);
  auto other = weir::op(r.visit(10ms)) | weir::bulkhead(2);
  co_await weir::all(a, b, other, other);
  EXPECT_EQ(r.most, 4);  // a policy of its own has a governor of its own
}

TEST(bulkhead, its_own_governor_passes_on_to_the_next_loop) {
  room r;
  auto o = weir::op(r.visit(1ms)) | weir::bulkhead(1);
  simulate([&]() -> task<> { co_await o(); });
  simulate([&]() -> task<> { co_await o(); });
  EXPECT_EQ(r.visits, 2);
}

FIBER_TEST(bulkhead, the_permit_is_back_before_the_result_is_delivered) {
  counting_governor g(1);
  auto value = weir::op([] { return ready(1); }) | weir::bulkhead(g);
  EXPECT_EQ(co_await value(), 1);
  EXPECT_EQ(g.active(), 0);
  flaky f(9);
  auto bad = weir::op(f.operation()) | weir::bulkhead(g);
  EXPECT_EQ(boom_of(co_await error_of(bad())), 1);
  EXPECT_EQ(g.active(), 0);
  auto late = weir::op([] { return after(1h, 1); }) | weir::bulkhead(g) | weir::timeout(1ms);
  (void)co_await error_of(late());
  EXPECT_EQ(g.active(), 0);
}

FIBER_TEST(bulkhead, an_error_of_the_release_is_an_error_of_the_operation) {
  breaking_governor g;
  auto value = weir::op([] { return ready(1); }) | weir::bulkhead(g);
  EXPECT_TRUE(holds<bang>(co_await error_of(value())));
  flaky f(9);
  auto both = weir::op(f.operation()) | weir::bulkhead(g);
  try {
    (void)co_await both();
    ADD_FAILURE() << "no error";
  } catch (const weir::error_group& e) {
    EXPECT_EQ(e.errors().size(), 2u);
    EXPECT_EQ(boom_of(e.errors().at(0)), 1);
    EXPECT_TRUE(holds<bang>(e.errors().at(1)));
  }
}

FIBER_TEST(bulkhead, a_closed_governor_rejects) {
  const event_record events;
  counting_governor g(1);
  g.close();
  auto o = weir::op([] { return ready(1); }) | weir::bulkhead(g);
  EXPECT_EQ(code_of(co_await error_of(o())), errc::governor_closed);
  EXPECT_EQ(events.of("rejected").at(0).object, "bulkhead");
}

TEST(bulkhead, a_number_that_lets_nothing_run_is_refused) {
  expect_invalid(thrown_by([] { (void)weir::bulkhead(0); }), "bulkhead");
  expect_invalid(thrown_by([] { (void)weir::bulkhead(-1); }), "bulkhead");
  expect_invalid(thrown_by([] { (void)weir::rate_limit(0, 1s); }), "rate_limit");
  expect_invalid(thrown_by([] { (void)weir::rate_limit(5, 0s); }), "rate_limit");
}

// "`rate_limit(n, per)` such as `rate_limit(5, 1s)`": five at once, then five in each second.
FIBER_TEST(rate_limit, a_number_and_a_time_let_so_many_run_in_that_time) {
  const auto begun = weir::now();
  std::vector<long> started;
  auto o = weir::op([&]() -> task<> {
             started.push_back((weir::now() - begun) / 1ms);
             co_return;
           }) |
           weir::rate_limit(5, 1s);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 10; ++i) s.spawn(o);
    co_await s.join();
  });
  EXPECT_EQ(started, (std::vector<long>{0, 0, 0, 0, 0, 200, 400, 600, 800, 1000}));
}

// "every operation it is applied to shares it", copies too.
FIBER_TEST(rate_limit, everything_that_the_policy_is_applied_to_shares_its_rate) {
  const auto begun = weir::now();
  const auto slowly = weir::rate_limit(1, 10ms);
  auto a = weir::op([] { return ready(1); }) | slowly;
  auto b = weir::op([] { return ready(2); }) | slowly;
  auto c = a;
  (void)co_await a();
  (void)co_await b();
  (void)co_await c();
  EXPECT_EQ((weir::now() - begun) / 1ms, 20);
}
FIBER_TEST(rate_limit, a_waiting_caller_that_is_cancelled_takes_no_permit) {
  const event_record events;
  counting_governor g(1, {.max_waiting = 1});
  room r;
  auto o = weir::op(r.visit(50ms)) | weir::rate_limit(g);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(o);
    co_await weir::sleep(1ms);
    auto waits = s.spawn(weir::settle(weir::with_timeout(10ms, o)));
    co_await weir::sleep(1ms);
    EXPECT_EQ(code_of(co_await error_of(o())), errc::governor_full);
    const auto& ended = co_await waits;
    EXPECT_TRUE(holds<weir::timeout_error>(ended.error()));
  });
  EXPECT_EQ(g.active() + g.waiting(), 0);
  EXPECT_EQ(r.visits, 1);
  EXPECT_EQ(events.of("rejected").at(0).object, "rate_limit");
}
