// SPDX-License-Identifier: MIT
// The promise: a durable timer is due at its wall-clock time, and a jump of the wall clock (NTP, a
// suspended machine) is noticed within a second: forward, overdue timers end at once; backward,
// they wait until then.
#include <weir/test_clock.hpp>

#include "core/environment.hpp"
#include "core/session.hpp"

#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

/// Sleeps `n` minutes; a negative one is a time limit around something that never comes.
task<std::string> waits(int n) {
  if (n < 0) {
    try {
      (void)co_await weir::with_timeout(std::chrono::minutes(-n),
                                        weir::signal<int>("never").wait());
    } catch (const weir::timeout_error&) {
    }
  } else {
    co_await weir::sleep(std::chrono::minutes(n));
  }
  co_return "done";
}

task<std::string> sends(int n) {
  (void)co_await weir::send("h", 0, {.delay = std::chrono::minutes(n), .id = "sent"});
  co_return "sent";
}

void add_waits(durable::engine& e) {
  e.add("h", waits);
  e.add("sends", sends);
}

bool is_done(const durable::engine& e, std::string_view id) {
  const auto info = e.get(id);
  return info && info->state == durable::run_state::completed;
}

task<> start_minutes(durable::engine& e, std::string id, int minutes) {
  (void)co_await e.start<std::string>("h", {.id = id}, minutes);
  co_await weir::sleep(1s);  // it sleeps by now
}

/// Runs `use` on an engine in a world whose wall clock it may set.
template <class F>
void in_world(F use, std::int64_t max_live = 10'000) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  auto options = options_for(on);
  options.max_live = max_live;
  auto with_world = [&](durable::engine& e) -> task<> { co_await use(e, w); };
  w.run(with_open_engine(options, add_waits, with_world));
}

/// Virtual time with a wall clock that is set without a word, as that of a machine is.
class silent_clock final : public weir::detail::environment {
 public:
  weir::time_point now() override { return now_; }
  weir::wall_time wall_now() override { return day0 + now_.time_since_epoch() + step; }
  std::uint64_t random() override { return ++drawn_; }
  bool simulated() const noexcept override { return true; }
  const void* clock() const noexcept override { return this; }
  void park(weir::detail::loop&, std::optional<weir::time_point> until) override {
    ++parks;
    if (until) now_ = std::max(now_, *until);
  }

  weir::duration step{};
  long parks = 0;

 private:
  weir::time_point now_{1h};
  std::uint64_t drawn_ = 0;
};

template <class F>
void on_silent_clock(F use) {
  const stage on;
  silent_clock clock;
  auto body = [&](durable::engine& e) -> task<> { co_await use(e, clock); };
  auto program = [&] { return with_open_engine(options_for(on), add_waits, body); };
  weir::detail::fiber* made = weir::scope::make(program);
  const weir::detail::core_ref root(made);
  weir::detail::session session(clock, {}, *made, std::source_location::current());
  const weir::detail::active_loop active(session.here());
  session.here().run();
  ASSERT_TRUE(made->result().is_value()) << test_support::what_of(made->result().error());
}

}  // namespace

TEST(durable_wall_clock, set_forward_ends_what_is_overdue_at_once) {
  for (const int minutes : {600, -600}) {
    in_world([&](durable::engine& e, sim::world& w) -> task<> {
      co_await start_minutes(e, "r", minutes);
      const auto before = weir::now();
      w.shift_wall_clock(11h);
      co_await until([&] { return is_done(e, "r"); });
      EXPECT_LT(weir::now() - before, 1s) << minutes;
    });
  }
}

TEST(durable_wall_clock, set_forward_ends_overdue_ones_in_the_order_of_their_times) {
  in_world([&](durable::engine& e, sim::world& w) -> task<> {
    auto events = e.events();
    co_await start_minutes(e, "late", 300);
    co_await start_minutes(e, "early", 100);
    co_await start_minutes(e, "much later", 3000);
    w.shift_wall_clock(10h);
    lines order;
    while (order.size() < 2) {
      const auto event = co_await events.next();
      if (event->state == durable::run_state::completed) order.push_back(event->id);
    }
    EXPECT_EQ(order, (lines{"early", "late"}));
    co_await weir::sleep(1h);
    EXPECT_FALSE(is_done(e, "much later"));
  });
}

TEST(durable_wall_clock, set_back_lets_timers_wait_until_their_time) {
  in_world([&](durable::engine& e, sim::world& w) -> task<> {
    co_await start_minutes(e, "r", 120);
    w.shift_wall_clock(-5h);
    co_await weir::sleep(6h + 55min);
    EXPECT_FALSE(is_done(e, "r"));
    co_await weir::sleep(10min);
    EXPECT_TRUE(is_done(e, "r"));
  });
}

TEST(durable_wall_clock, a_timer_that_begins_after_a_jump_is_right_though_it_is_not_the_first) {
  in_world([&](durable::engine& e, sim::world& w) -> task<> {
    co_await start_minutes(e, "first", 60);
    w.shift_wall_clock(-2h);  // so "first" has three hours to go
    co_await start_minutes(e, "second", 200);
    co_await weir::sleep(2h + 58min);
    EXPECT_FALSE(is_done(e, "first"));
    co_await weir::sleep(4min);
    EXPECT_TRUE(is_done(e, "first"));
    EXPECT_FALSE(is_done(e, "second"));
    co_await weir::sleep(20min);
    EXPECT_TRUE(is_done(e, "second"));
  });
}

TEST(durable_wall_clock, set_forward_begins_delayed_runs_and_wakes_suspended_ones) {
  auto use = [](durable::engine& e, sim::world& w) -> task<> {
    co_await start_minutes(e, "one", 600);
    co_await start_minutes(e, "two", 600);
    (void)co_await e.start<std::string>("sends", {.id = "sender"}, 600);
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("one")->state, durable::run_state::suspended);
    w.shift_wall_clock(11h);
    co_await weir::sleep(1s);
    for (const char* id : {"one", "two", "sent"}) EXPECT_TRUE(is_done(e, id)) << id;
  };
  in_world(use, 1);
}

TEST(durable_wall_clock, that_is_set_without_a_word_is_noticed_within_a_second) {
  on_silent_clock([](durable::engine& e, silent_clock& clock) -> task<> {
    co_await start_minutes(e, "r", 600);
    co_await start_minutes(e, "later", 6000);
    clock.step += 11h;
    co_await weir::sleep(1s + 1ms);
    EXPECT_TRUE(is_done(e, "r"));
    EXPECT_FALSE(is_done(e, "later"));
    clock.step -= 20h;
    co_await start_minutes(e, "new", 60 * 24);  // not the first
    co_await weir::sleep(23h);
    EXPECT_FALSE(is_done(e, "new"));
    clock.step += 90 * 24h;
    co_await weir::sleep(1s + 1ms);
    EXPECT_TRUE(is_done(e, "new"));
    EXPECT_TRUE(is_done(e, "later"));
  });
}

TEST(durable_wall_clock, an_engine_without_timers_does_not_look_at_it) {
  on_silent_clock([](durable::engine& e, silent_clock& clock) -> task<> {
    co_await start_minutes(e, "r", 1);
    co_await weir::sleep(2min);
    EXPECT_TRUE(is_done(e, "r"));
    const long before = clock.parks;
    co_await weir::sleep(24h);
    EXPECT_LE(clock.parks - before, 2);
  });
}

TEST(durable_wall_clock, of_a_simulation_costs_nothing_while_nobody_sets_it) {
  // A timer of a hundred years: looking once a second would be three billion looks.
  in_world([&](durable::engine& e, sim::world&) -> task<> {
    const int years = 60 * 24 * 365 * 100;
    (void)co_await e.start<std::string>("h", {.id = "r"}, years);
    co_await weir::sleep(24h * 365 * 100 + 1h);
    EXPECT_TRUE(is_done(e, "r"));
  });
}

TEST(durable_wall_clock, of_a_test_clock_is_set_by_hand) {
  const stage on;
  whole_life([&] {
    weir::test_clock clock;
    auto use = [&](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 600);
      auto setter = [&]() -> task<> {
        clock.shift_wall_clock(11h);
        co_return;
      };
      co_await setter();
      EXPECT_EQ(co_await run.result(), "done");
      EXPECT_EQ(clock.now().time_since_epoch(), 0s);
    };
    weir::run({.clock = &clock}, with_open_engine(options_for(on), add_waits, use));
  });
}
