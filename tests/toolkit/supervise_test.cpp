// SPDX-License-Identifier: MIT
// supervise: lives, the sliding window of failures, and the waits between them.
#include <limits>

#include "policy_support.hpp"

using namespace policy_test;
using weir::jitter;
using weir::supervise_options;

namespace {

/// Fails at the given times after its first start, then gives the number of its life.
class mortal {
 public:
  explicit mortal(std::vector<weir::duration> deaths) : deaths_(std::move(deaths)) {}
  auto operation() {
    return [this]() -> task<int> {
      if (lives == 0) start_ = weir::now();
      starts_ms.push_back(static_cast<long>((weir::now() - start_) / 1ms));
      const auto number = static_cast<std::size_t>(lives++);
      if (number >= deaths_.size()) co_return lives;
      co_await weir::sleep_until(start_ + deaths_[number]);
      throw boom(lives);
    };
  }
  int lives = 0;
  std::vector<long> starts_ms;

 private:
  std::vector<weir::duration> deaths_;
  weir::time_point start_{};
};

using times = std::vector<long>;

/// The numbers of the errors that an operation gives up with.
template <class Op>
task<std::vector<int>> gives_up_with(Op& op) {
  std::vector<int> found;
  try {
    (void)co_await op();
  } catch (const weir::restart_limit_error& e) {
    EXPECT_EQ(e.code(), errc::restart_limit);
    found = booms_of(e.errors());
  }
  co_return found;
}

}  // namespace

FIBER_TEST(supervise, it_runs_again_until_there_is_a_value) {
  const event_record events;
  mortal m({0s, 0s, 0s});
  auto o = weir::op(m.operation()) | weir::supervise({.max_restarts = 3});
  EXPECT_EQ(co_await o(), 4);
  EXPECT_EQ(events.numbers("restart"), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(events.of("restart").at(0).object, "supervise");
  EXPECT_EQ(live_timers(), 0);
}

FIBER_TEST(supervise, too_many_failures_end_it_with_all_of_them_oldest_first) {
  const event_record events;
  mortal m({1s, 2s, 3s, 4s, 5s});
  auto o = weir::op(m.operation()) | weir::supervise({.max_restarts = 3, .within = 5s});
  const std::vector<int> all = co_await gives_up_with(o);
  EXPECT_EQ(all, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(m.lives, 4);
  EXPECT_EQ(events.count("restart"), 3);
  mortal once({0s});
  auto none = weir::op(once.operation()) | weir::supervise({.max_restarts = 0});
  const std::vector<int> one = co_await gives_up_with(none);
  EXPECT_EQ(one, (std::vector<int>{1}));
}

FIBER_TEST(supervise, its_window_slides) {
  std::vector<weir::duration> slow;
  for (int i = 1; i <= 50; ++i) slow.push_back(i * 2s);
  mortal patient(slow);
  auto o = weir::op(patient.operation()) | weir::supervise({.max_restarts = 3, .within = 5s});
  EXPECT_EQ(co_await o(), 51);
  mortal burst({1s, 4900ms, 4950ms, 5050ms, 6s - 1ns});
  auto b = weir::op(burst.operation()) | weir::supervise({.max_restarts = 4, .within = 5s});
  const std::vector<int> five = co_await gives_up_with(b);
  EXPECT_EQ(five.size(), 5u);
  mortal edge({1s, 4900ms, 4950ms, 5050ms, 6s});  // the first is exactly 5 s ago
  auto e = weir::op(edge.operation()) | weir::supervise({.max_restarts = 4, .within = 5s});
  EXPECT_EQ(co_await e(), 6);
}

FIBER_TEST(supervise, each_run_has_a_window_of_its_own) {
  int lives = 0;
  auto dies = [&]() -> task<> {
    ++lives;
    throw boom(lives);
    co_return;
  };
  auto o = weir::op(dies) | weir::supervise({.max_restarts = 2});
  const std::vector<int> first = co_await gives_up_with(o);
  const std::vector<int> second = co_await gives_up_with(o);
  EXPECT_EQ(first, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(second, (std::vector<int>{4, 5, 6}));
}

FIBER_TEST(supervise, it_waits_between_lives_as_its_backoff_says) {
  mortal m({0s, 0s, 0s, 0s, 0s});
  auto o = weir::op(m.operation()) |
           weir::supervise({.max_restarts = 9,
                            .within = 1h,
                            .backoff = {.base = 10ms, .factor = 3, .ceiling = 200ms}});
  EXPECT_EQ(co_await o(), 6);
  EXPECT_EQ(m.starts_ms, (times{0, 10, 40, 130, 330, 530}));
}

FIBER_TEST(supervise, a_long_life_starts_again_at_the_base) {
  mortal m({0s, 10ms, 1030ms, 1040ms});  // the third life lasts exactly one second
  auto o = weir::op(m.operation()) |
           weir::supervise(
               {.max_restarts = 9, .within = 1h, .backoff = {.base = 10ms, .reset_after = 1s}});
  EXPECT_EQ(co_await o(), 5);
  EXPECT_EQ(m.starts_ms, (times{0, 10, 30, 1040, 1060}));
}

FIBER_TEST_IN_EVERY_ORDER(supervise, a_cancellation_ends_it_at_once_also_while_it_waits) {
  mortal m({10ms, 10ms, 10ms});
  auto o = weir::op(m.operation()) | weir::supervise({.backoff = {.base = 1h, .ceiling = 1h}}) |
           weir::timeout(50ms);
  const stopwatch time;
  const auto error = co_await error_of(o());
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(time.ms(), 50);
  EXPECT_EQ(m.lives, 1);
  EXPECT_EQ(live_timers(), 0);
}

FIBER_TEST(supervise, an_operation_that_was_cancelled_is_not_run_again) {
  weir::cancel_source source;
  source.cancel("enough");
  int lives = 0;
  auto stopped = [&] {
    ++lives;
    return weir::with_token(source.token(), after(1h, 1));
  };
  auto o = weir::op(stopped) | weir::supervise();
  const auto ended = co_await weir::settle(o);
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(lives, 1);
}

FIBER_TEST(supervise, without_a_limit_it_never_gives_up_and_keeps_no_errors) {
  flaky f(5000);
  auto o = weir::op(f.operation()) | weir::supervise({.max_restarts = weir::unbounded});
  EXPECT_EQ(co_await o(), 5001);
}

FIBER_TEST(supervise, its_error_says_how_often_and_how_fast) {
  mortal m({0s, 0s});
  auto o = weir::op(m.operation()) | weir::supervise({.max_restarts = 1, .within = 3s});
  const std::string text = what_of(co_await error_of(o()));
  EXPECT_TRUE(contains(text, "2 failures within 3000 ms")) << text;
}

TEST(supervise, bad_options_are_refused_when_it_is_made) {
  const auto made = [](supervise_options o) {
    return thrown_by([&] { (void)weir::supervise(o); });
  };
  expect_invalid(made({.max_restarts = -1}), "max_restarts");
  expect_invalid(made({.within = 0s}), "within");
  expect_invalid(made({.backoff = {.base = -1ms}}), "base");
  expect_invalid(made({.backoff = {.factor = 0}}), "factor");
  expect_invalid(made({.backoff = {.ceiling = -1ms}}), "ceiling");
  expect_invalid(made({.backoff = {.reset_after = -1ms}}), "reset_after");
  EXPECT_EQ(made({}), nullptr);
}
