// SPDX-License-Identifier: MIT
// Time limits, beside tests/scope/deadline_test.cpp: the last nanosecond, which limit is reported,
// and clocks that are set.
#include "core/environment.hpp"
#include "core/session.hpp"

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

/// Virtual time with a wall clock that somebody sets.
class set_wall_clock final : public weir::detail::environment {
 public:
  weir::time_point now() override { return now_; }
  weir::wall_time wall_now() override { return weir::wall_time(now_.time_since_epoch() + step); }
  std::uint64_t random() override { return 4; }
  void park(weir::detail::loop&, std::optional<weir::time_point> until) override {
    if (until) now_ = std::max(now_, *until);
  }

  weir::duration step{};

 private:
  weir::time_point now_{1h};
};

/// weir::run in an environment of the test's own.
template <class F>
void run_in(weir::detail::environment& env, F& op) {
  weir::detail::fiber* made = weir::scope::make(op);
  const weir::detail::core_ref root(made);
  weir::detail::session session(env, {}, *made, std::source_location::current());
  const weir::detail::active_loop active(session.here());
  session.here().run();
  ASSERT_TRUE(made->result().is_value()) << what_of(made->result().error());
}

/// Runs until it is cancelled and counts that it was started.
auto endless(int& started) {
  return [&started]() -> task<> {
    ++started;
    co_await weir::sleep(1000h);
  };
}

}  // namespace

FIBER_TEST(timeout_behaviour, a_result_one_nanosecond_before_the_limit_always_wins) {
  long sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += co_await weir::with_timeout(10ms, after(10ms - 1ns, 1));
  EXPECT_EQ(sum, 100'000);
}

FIBER_TEST_IN_EVERY_ORDER(timeout_behaviour, a_result_one_nanosecond_after_the_limit_never_does) {
  const auto start = weir::now();
  const auto by_task = co_await error_of(weir::with_timeout(10ms, after(10ms + 1ns, 1)));
  const auto by_wait = co_await error_of(weir::with_timeout(10ms, weir::sleep(10ms + 1ns)));
  EXPECT_TRUE(holds<weir::timeout_error>(by_task));
  EXPECT_TRUE(holds<weir::timeout_error>(by_wait));
  EXPECT_EQ(ms_since(start), 20);
}

SCOPE_TEST_IN_EVERY_ORDER(timeout_behaviour, the_last_nanosecond_wins_in_every_order) {
  for (int i = 0; i < 3; ++i) s.spawn(sleep_for(10ms - 1ns));  // others in the same instant
  const int value = co_await weir::with_timeout(10ms, after(10ms - 1ns, 4));
  EXPECT_EQ(value, 4);
}

FIBER_TEST_IN_EVERY_ORDER(timeout_behaviour,
                          an_error_of_the_op_is_rethrown_also_if_it_looks_like_the_limit) {
  std::exception_ptr thrown;
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  auto lookalike = [&]() -> task<> {
    co_await weir::sleep(5ms);
    thrown = std::make_exception_ptr(weir::timeout_error("the time limit of 10 ms was reached"));
    std::rethrow_exception(thrown);
  };
  const auto start = weir::now();
  const auto caught = co_await error_of(weir::with_timeout(10ms, lookalike));
  EXPECT_TRUE(thrown != nullptr && caught == thrown);
  EXPECT_EQ(ms_since(start), 5);
  EXPECT_EQ(counted(events, "suppressed"), 0);
}

FIBER_TEST_IN_EVERY_ORDER(timeout_behaviour,
                          under_an_outer_limit_that_has_passed_the_op_never_starts) {
  int started = 0;
  auto inner = [&]() -> task<> {
    co_await weir::shield(weir::sleep(20ms));  // beyond the outer limit
    co_await weir::with_timeout(1h, endless(started));
  };
  const auto error = co_await error_of(weir::with_timeout(10ms, inner));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_TRUE(contains(what_of(error), "10 ms")) << what_of(error);  // the outer one
  EXPECT_EQ(started, 0);
}

FIBER_TEST_IN_EVERY_ORDER(timeout_behaviour, a_reason_given_from_outside_comes_out_exactly) {
  weir::cancel_source source;
  int started = 0;
  std::string told;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(30ms);
      source.cancel(weir::cancel_reason(cancel_kind::custom, "quota"));
    });
    auto limited = [&] { return weir::with_timeout(1h, endless(started)); };
    try {
      co_await weir::with_token(source.token(), limited);
    } catch (const weir::cancelled_error& e) {
      told = message_of(e.reason());
      EXPECT_EQ(e.reason().kind, cancel_kind::custom);
    }
    const auto start = weir::now();
    const auto late = co_await error_of(weir::with_token(source.token(), limited));
    EXPECT_TRUE(holds<weir::cancelled_error>(late));
    EXPECT_EQ(ms_since(start), 0);
  });
  EXPECT_EQ(told, "quota");
  EXPECT_EQ(started, 1);  // not again once it had fired
}

TEST(timeout_behaviour, setting_the_wall_clock_neither_fires_nor_delays_a_limit) {
  set_wall_clock clocks;
  auto program = [&]() -> task<> {
    const auto start = weir::now();
    auto jump = [&](weir::duration by) -> task<> {
      const auto wall = weir::wall_now();
      clocks.step += by;
      EXPECT_EQ(weir::wall_now() - wall, by);
      co_await weir::sleep(50ms);
    };
    co_await weir::with_timeout(100ms, jump(24h));
    co_await weir::with_timeout(100ms, jump(-48h));
    auto endless_jump = [&]() -> task<> {
      co_await jump(-24h);
      co_await weir::sleep(1h);
    };
    const auto error = co_await error_of(weir::with_timeout(100ms, endless_jump));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_EQ(ms_since(start), 200);
    int runs = 0;
    auto count = [&]() -> task<> { co_return void(++runs); };
    const auto end = co_await error_of(weir::with_timeout(95ms, [&]() -> task<> {
      clocks.step += 24h;
      co_await weir::every(10ms, count);
    }));
    EXPECT_TRUE(holds<weir::timeout_error>(end));
    EXPECT_EQ(runs, 9);
  };
  run_in(clocks, program);
}
