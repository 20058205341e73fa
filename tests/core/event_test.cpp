// SPDX-License-Identifier: MIT
// The events of a loop: observers, the bounded record of recent events, and what is reported.
#include <optional>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

/// Makes one event of the name `cleanup_failed`, synchronously.
void make_event() {
  weir::permit broken([] { throw boom(1); });
}

long kept_and_dropped() {
  weir::event_log log = weir::recent_events();
  return static_cast<long>(log.events.size()) + static_cast<long>(log.dropped);
}

}  // namespace

FIBER_TEST(event, an_observer_is_told_name_time_and_scope) {
  co_await weir::sleep(5ms);
  std::optional<weir::event_record> seen;
  auto sub = weir::on_event([&](const weir::event_info& e) {
    if (e.name != "suppressed") return;
    seen.emplace();
    seen->name = e.name;
    seen->when = e.when;
    seen->scope = e.scope;
  });
  weir::scope_id id{};
  auto o = co_await weir::settle(
      weir::with_scope({.failure = weir::failure::wait_for_all}, [&](weir::scope& s) -> task<> {
        id = s.id();
        s.spawn(fails_after(1ms, 1));
        s.spawn(fails_after(2ms, 2));
        co_return;
      }));
  EXPECT_TRUE(o.is_error());
  EXPECT_TRUE(seen.has_value());
  EXPECT_TRUE(seen && seen->when == weir::now());
  EXPECT_TRUE(seen && seen->scope == id);
}

FIBER_TEST(event, a_dropped_subscription_is_told_nothing_more) {
  int first = 0, second = 0;
  auto stays = weir::on_event([&](const weir::event_info&) { ++second; });
  {
    auto sub = weir::on_event([&](const weir::event_info&) { ++first; });
    make_event();
  }
  make_event();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  co_return;
}
FIBER_TEST(event, a_throwing_observer_is_ignored_and_the_others_are_told) {
  int told = 0;
  auto bad = weir::on_event([](const weir::event_info&) { throw boom(1); });
  auto good = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "cleanup_failed") ++told;
  });
  make_event();
  make_event();
  EXPECT_EQ(told, 2);
  co_await weir::sleep(1ms);  // and the loop is none the worse
}

FIBER_TEST(event, recent_events_are_kept_even_if_nobody_asked) {
  co_await weir::sleep(5ms);
  make_event();
  weir::event_log log = weir::recent_events();
  EXPECT_FALSE(log.events.empty());
  if (!log.events.empty()) {
    EXPECT_EQ(std::string(log.events.back().name), "cleanup_failed");
    EXPECT_EQ(log.events.back().when, weir::now());
  }
  EXPECT_EQ(static_cast<long>(log.dropped), 0);
}

FIBER_TEST(event, the_ring_is_bounded_keeps_the_last_ones_and_counts_what_it_dropped) {
  long before = kept_and_dropped();
  constexpr long most = 100'000;
  long made = 0;
  while (made < most && weir::recent_events().dropped == 0) {
    for (int i = 0; i < 1000; ++i, ++made) make_event();
    co_await weir::sleep(1ns);
  }
  EXPECT_GT(static_cast<long>(weir::recent_events().dropped), 0);
  auto bound = weir::recent_events().events.size();
  make_event();
  ++made;
  EXPECT_EQ(kept_and_dropped(), before + made);
  EXPECT_EQ(weir::recent_events().events.size(), bound);
  EXPECT_EQ(weir::recent_events().events.back().when, weir::now());
}

TEST(event, each_loop_has_its_own_ring) {
  weir::sim::run({.seed = 1}, []() -> task<> {
    make_event();
    co_return;
  });
  weir::sim::run({.seed = 1}, []() -> task<> {
    text_log names;
    for (const auto& e : weir::recent_events().events) names.emplace_back(e.name);
    EXPECT_EQ(counted(names, "cleanup_failed"), 0);
    co_return;
  });
}

FIBER_TEST(event, a_cancellation_is_told) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    s.spawn(after(1h, 1));
    s.cancel("stop");
    co_return;
  });
  EXPECT_GE(counted(events, "cancel"), 1);
}

TEST(event, outside_a_fiber_there_is_no_loop_to_observe) {
  auto observed = thrown_by([] { (void)weir::on_event([](const weir::event_info&) {}); });
  auto asked = thrown_by([] { (void)weir::recent_events(); });
  EXPECT_EQ(code_of(observed), weir::errc::no_current_fiber);
  EXPECT_EQ(code_of(asked), weir::errc::no_current_fiber);
}

// "error of crash, restart, suppressed, connection_failed and the like"; records have "the same
// members, owned"
FIBER_TEST(event, an_event_carries_its_error_and_the_ring_keeps_it) {
  text_log seen;
  auto sub = weir::on_event([&](const weir::event_info& e) {
    if (e.error != nullptr) seen.push_back(std::string(e.name) + std::to_string(boom_of(e.error)));
  });
  make_event();
  auto out = co_await weir::settle(
      weir::with_scope({.failure = weir::failure::wait_for_all}, [&](weir::scope& s) -> task<> {
        s.spawn(fails_after(1ms, 4));
        s.spawn(fails_after(2ms, 5));
        s.defer([] { throw boom(6); });
        co_return;
      }));
  EXPECT_TRUE(out.is_error());
  EXPECT_EQ(joined(seen), "cleanup_failed1,suppressed5,cleanup_failed6");
  text_log kept;
  for (const auto& e : weir::recent_events().events)
    if (e.error != nullptr) kept.push_back(e.name + std::to_string(boom_of(e.error)));
  EXPECT_EQ(joined(kept), joined(seen));
}

// What an exception holds is user code: it is released in a turn of the loop, not in the middle of
// the event that takes its place.
TEST(event, a_forgotten_error_dies_between_turns) {
  struct guarded {
    std::shared_ptr<void> gone;
  };
  weir::sim::run({.seed = 1}, []() -> task<> {
    bool in_event = false, died_inside = false, died = false;
    auto sub = weir::on_event([&](const weir::event_info&) { in_event = true; });
    {
      weir::permit broken([&] {
        throw guarded{std::shared_ptr<void>(nullptr, [&](void*) {
          died = true;
          died_inside = in_event;
        })};
      });
    }
    for (int i = 0; i < 5000; ++i) {
      in_event = false;
      make_event();
      EXPECT_FALSE(died);
    }
    in_event = false;
    co_await weir::yield();
    co_await weir::sleep(1ms);
    EXPECT_TRUE(died);
    EXPECT_FALSE(died_inside);
  });
}

// "Destructors may do what other code may": also those of errors that the ring forgets.
TEST(event, an_error_that_is_forgotten_may_emit_events) {
  long gone = 0;
  struct loud : std::exception {
    explicit loud(long& count)
        : leaves(std::make_shared<weir::permit>([&count] {
            ++count;
            throw boom(2);
          })) {}
    std::shared_ptr<weir::permit> leaves;
  };
  weir::run([&]() -> task<> {
    for (int i = 0; i < 4000; ++i) {
      {
        weir::permit broken([&gone] { throw loud(gone); });
      }
      if (i % 10 == 0) co_await weir::yield();
    }
  });
  EXPECT_EQ(gone, 4000);
}
