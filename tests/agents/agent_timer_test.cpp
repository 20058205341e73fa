// SPDX-License-Identifier: MIT
// cast_after and cast_every: when they come, how they are cancelled, and that they end with the
// agent.
#include "agent_support.hpp"

using namespace weir_test;

namespace {

/// Notes at which millisecond of its life it was told something.
class ticker {
 public:
  explicit ticker(numbers* at) : start_(weir::now()), at_(at) {}
  void tick() { at_->push_back(static_cast<int>(ms_since(start_))); }
  void tick_with(int n, const std::string& text) {
    tick();
    at_->push_back(n + static_cast<int>(text.size()));
  }
  void arm_after(weir::duration d) { weir::self<ticker>().cast_after(d, &ticker::tick); }
  void arm_every(weir::duration d) { weir::self<ticker>().cast_every(d, &ticker::tick); }
  task<> nap(weir::duration d) { co_await weir::sleep(d); }
  void fail(int n) { throw boom(n); }

 private:
  weir::time_point start_;
  numbers* at_;
};

/// An argument that cancels its own timer when that copies it for the second time.
struct fuse {
  explicit fuse(weir::timer_handle* of) : timer(of) {}
  fuse(const fuse& other) : timer(other.timer), copies(other.copies) {
    if (++*copies == 2) timer->cancel();
  }
  weir::timer_handle* timer;
  std::shared_ptr<int> copies = std::make_shared<int>(0);
};

class fused {
 public:
  void hold(const fuse&) { ++held_; }
  int held() const { return held_; }

 private:
  int held_ = 0;
};

}  // namespace

SCOPE_TEST_IN_EVERY_ORDER(agent_timer, one_that_is_cancelled_while_it_rings_does_not_ring_again) {
  auto a = weir::spawn_agent<fused>(s, {});
  weir::timer_handle timer;
  const fuse given(&timer);
  timer = a.cast_every(10ms, &fused::hold, given);
  co_await weir::sleep(1s);
  EXPECT_EQ(co_await a.call(&fused::held), 1);
  EXPECT_EQ(live_timers(), 0);
}

SCOPE_TEST(agent_timer, a_null_handler_is_refused_when_it_is_armed) {
  auto a = weir::spawn_agent<fused>(s, {});
  int (fused::*none)() const = nullptr;
  EXPECT_EQ(code_of(thrown_by([&] { a.cast_after(1ms, none); })), weir::errc::empty_job);
  EXPECT_EQ(code_of(thrown_by([&] { a.cast_every(1ms, none); })), weir::errc::empty_job);
  EXPECT_EQ(live_timers(), 0);
  co_return;
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, cast_after_comes_once_at_its_time) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    t.cast_after(20ms, &ticker::tick);
    t.cast_after(10ms, &ticker::tick);
    std::string text = "four";
    t.cast_after(30ms, &ticker::tick_with, 100, text);
    text = "changed";
    co_await weir::sleep(1s);
    EXPECT_EQ(at, (numbers{10, 20, 30, 104}));
    EXPECT_EQ(live_timers(), 0);
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, cast_every_keeps_its_grid) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    t.cast_every(10ms, &ticker::tick);
    co_await weir::sleep(45ms);
    EXPECT_EQ(at, (numbers{10, 20, 30, 40}));
    co_await t.call(&ticker::nap, 8ms);  // busy from 45 to 53
    co_await weir::sleep(20ms);
    EXPECT_EQ(at, (numbers{10, 20, 30, 40, 53, 60, 70}));
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, may_be_armed_in_the_agents_own_handlers) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    t.cast(&ticker::arm_every, 10ms);
    t.cast(&ticker::arm_after, 15ms);
    co_await weir::sleep(35ms);
    EXPECT_EQ(at, (numbers{10, 15, 20, 30}));
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer,
                          a_cancelled_one_does_not_come_and_cancelling_again_is_nothing) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    weir::timer_handle once = t.cast_after(10ms, &ticker::tick);
    weir::timer_handle often = t.cast_every(4ms, &ticker::tick);
    co_await weir::sleep(9ms);
    once.cancel();
    once.cancel();
    often.cancel();
    co_await weir::sleep(1s);
    EXPECT_EQ(at, (numbers{4, 8}));
    weir::timer_handle late = t.cast_after(1ms, &ticker::tick);
    co_await weir::sleep(5ms);
    late.cancel();  // it has come
    EXPECT_EQ(at.size(), 3U);
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, a_cancelled_one_leaves_no_timer) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    co_await settled();
    const long before = live_timers();
    weir::timer_handle once = t.cast_after(1h, &ticker::tick);
    weir::timer_handle often = t.cast_every(1h, &ticker::tick);
    co_await settled();
    EXPECT_EQ(live_timers(), before + 2);
    once.cancel();
    often.cancel();
    co_await settled();
    EXPECT_EQ(live_timers(), before);
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, a_dropped_handle_changes_nothing) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    {
      weir::timer_handle dropped = t.cast_after(5ms, &ticker::tick);
      [[maybe_unused]] const weir::timer_handle moved = std::move(dropped);
    }
    co_await weir::sleep(10ms);
    EXPECT_EQ(at, numbers{5});
  });
}

FIBER_TEST(agent_timer, an_interval_that_is_not_positive_is_refused_and_a_delay_comes_at_once) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    for (const auto d : {0ms, -1ms}) {
      const auto code = code_thrown_by([&] { return t.cast_every(d, &ticker::tick); });
      EXPECT_EQ(code, errc::invalid_argument);
    }
    t.cast_after(0ms, &ticker::tick);
    t.cast_after(-5ms, &ticker::tick);
    co_await settled();
    EXPECT_EQ(at, (numbers{0, 0}));
  });
}
TEST(agent_timer, all_end_with_the_agent_and_do_not_hold_it) {
  for (const bool by_scope : {false, true}) {
    in_every_order([&]() -> task<> {
      numbers at;
      const auto start = weir::now();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto t = weir::spawn_agent<ticker>(s, {}, &at);
        t.cast_after(1h, &ticker::tick);
        weir::timer_handle often = t.cast_every(10ms, &ticker::tick);
        co_await weir::sleep(25ms);
        if (by_scope) co_return;
        co_await t.stop();
        co_await settled();
        EXPECT_EQ(live_timers(), 0);
        often.cancel();
        co_await weir::sleep(1s);
      });
      EXPECT_EQ(ms_since(start), by_scope ? 25 : 1026);
      EXPECT_EQ(at, (numbers{10, 20}));
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, those_of_a_crashed_agent_are_gone) {
  numbers at;
  auto body = [&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    t.cast_every(10ms, &ticker::tick);
    co_await weir::sleep(25ms);
    t.cast(&ticker::fail, 1);
    co_await weir::sleep(1h);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
  EXPECT_EQ(live_timers(), 0);
  co_await weir::sleep(1s);
  EXPECT_EQ(at, (numbers{10, 20}));
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, armed_on_an_ended_agent_never_comes_and_leaves_nothing) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto t = weir::spawn_agent<ticker>(s, {}, &at);
    co_await t.stop();
    weir::timer_handle once = t.cast_after(10ms, &ticker::tick);
    weir::timer_handle often = t.cast_every(10ms, &ticker::tick);
    co_await settled();
    EXPECT_EQ(live_timers(), 0);
    co_await weir::sleep(1s);
    once.cancel();
    often.cancel();
  });
  EXPECT_TRUE(at.empty());
}

FIBER_TEST_IN_EVERY_ORDER(agent_timer, a_full_mailbox_drops_it_like_any_cast) {
  numbers at;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    weir::agent_options options;
    options.capacity = 1;
    options.overflow = weir::overflow::drop_newest;
    auto t = weir::spawn_agent<ticker>(s, options, &at);
    co_await settled();
    t.cast(&ticker::nap, 50ms);
    co_await settled();
    t.cast_every(10ms, &ticker::tick);
    co_await weir::sleep(47ms);
    EXPECT_EQ(t.info().dropped, 3U);
    co_await weir::sleep(2500us);  // the nap is over, the next tick has not come
    EXPECT_EQ(at.size(), 1U);
  });
}
