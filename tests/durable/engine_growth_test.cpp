// SPDX-License-Identifier: MIT
// Lists that can be long: what the engine looks at grows in proportion to them, not with their
// square. Promise: "All runs live on the engine's loop", ten thousand of them and more. Visits are
// counted, not time.
#include <cstdint>
#include <functional>

#include "durable/support/stage.hpp"
#include "durable/visits.hpp"

using namespace durable_test;

namespace {

using weir::detail::list_visits;

/// The visits of a session with `n` of something.
std::uint64_t visits_of(const installer& setup, const user& use, std::int64_t max_live = 100'000) {
  const stage on;
  durable::engine_options options = options_for(on);
  options.max_live = max_live;
  options.segment_bytes = 16 * smallest_segment;
  const std::uint64_t before = list_visits;
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, setup, use));
  return list_visits - before;
}

/// Four times as much work may take little more than four times the visits.
void expect_linear(const std::function<std::uint64_t(int)>& visits) {
  const std::uint64_t few = visits(300);
  const std::uint64_t many = visits(1200);
  EXPECT_GT(few, 300u / 2);
  EXPECT_LE(many, 5 * few) << few << " visits for 300, " << many << " for 1200";
  EXPECT_LE(many, 20u * 1200);
}

/// All of these runs are parked now.
task<> start_all(durable::engine& e, const char* handler, int n) {
  for (int i = 0; i < n; ++i)
    (void)co_await e.start<int>(handler, {.id = "r" + std::to_string(i)}, i);
  co_await weir::sleep(1s);
}

task<int> in_a_long_step(int n) {
  auto body = [n]() -> task<int> {
    co_await weir::sleep(1h);
    co_return n;
  };
  co_return co_await weir::step("long", body);
}

task<int> hears_go(int n) { co_return n + co_await weir::signal<int>("go").wait(); }

}  // namespace

// Runs in steps cannot be suspended; looking for some that can does not look at them again.
TEST(durable_growth, runs_in_long_steps_beyond_max_live) {
  expect_linear([](int n) {
    auto use = [n](durable::engine& e) -> task<> {
      co_await start_all(e, "h", n);
      for (int i = 0; i < n; ++i) {
        auto run = co_await e.start<int>("h", {.id = "r" + std::to_string(i)}, i);
        EXPECT_EQ(co_await run.result(), i);
      }
    };
    return visits_of(as_h(in_a_long_step), use, 10);
  });
}

TEST(durable_growth, runs_that_are_suspended_one_after_the_other) {
  expect_linear([](int n) {
    auto use = [n](durable::engine& e) -> task<> {
      co_await start_all(e, "h", n);
      for (int i = 0; i < n; ++i) EXPECT_TRUE(co_await e.signal("r" + std::to_string(i), "go", 1));
    };
    return visits_of(as_h(hears_go), use, 10);
  });
}

TEST(durable_growth, runs_whose_timers_are_due_while_others_are_replayed) {
  expect_linear([](int n) {
    const stage on;
    auto sleeps = [](int i) -> task<int> {
      co_await weir::sleep(1min);
      co_return i;
    };
    durable::engine_options options = options_for(on);
    options.segment_bytes = 16 * smallest_segment;
    options.max_live = 10;
    auto life = [&](weir::duration later, const user& use) {
      sim::run({.seed = 1, .start_time = day0 + later},
               with_open_engine(options, as_h(sleeps), use));
    };
    life(0s, [n](durable::engine& e) { return start_all(e, "h", n); });
    const std::uint64_t before = list_visits;
    life(1h, [n](durable::engine& e) -> task<> {
      for (int i = 0; i < n; ++i) {
        auto run = co_await e.start<int>("h", {.id = "r" + std::to_string(i)}, i);
        EXPECT_EQ(co_await run.result(), i);
      }
    });
    return list_visits - before;
  });
}

TEST(durable_growth, sends_in_one_turn) {
  expect_linear([](int n) {
    auto nothing = [](int) -> task<int> { co_return 0; };
    auto sends = [](int count) -> task<int> {
      for (int i = 0; i < count; ++i) co_await weir::send("nothing", i);
      co_return count;
    };
    auto setup = [=](durable::engine& e) {
      e.add("nothing", nothing);
      e.add("h", sends);
    };
    return visits_of(setup, [n](durable::engine& e) -> task<> {
      auto run = co_await e.start<int>("h", {.id = "r"}, n);
      EXPECT_EQ(co_await run.result(), n);
    });
  });
}

TEST(durable_growth, an_id_sent_to_twice_in_one_turn_is_refused_for_another_handler) {
  const stage on;
  auto nothing = [](int) -> task<int> { co_return 0; };
  auto sends = [](int) -> task<int> {
    const weir::send_options to{.id = "same"};
    co_await weir::send("one", 1, to);
    co_await weir::send("one", 1, to);
    co_await weir::send("two", 1, to);
    co_return 1;
  };
  auto setup = [=](durable::engine& e) {
    e.add("one", nothing);
    e.add("two", nothing);
    e.add("h", sends);
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("h", {.id = "r"}, 1);
    const auto error = co_await test_support::attempt([&] { return run.result(); });
    EXPECT_EQ(test_support::code_of(error), errc::id_in_use) << test_support::what_of(error);
  });
}

namespace {

enum class waited { promise, awakeable, signal };

/// Many fibers wait for one thing, and are cancelled.
template <waited What>
task<int> cancels_waiters(int n) {
  auto one = weir::awakeable<int>("one");
  auto wait = [&]() -> task<> {
    if constexpr (What == waited::promise) (void)co_await weir::promise<int>("one").wait();
    if constexpr (What == waited::awakeable) (void)co_await one.wait();
    if constexpr (What == waited::signal) (void)co_await weir::signal<int>("one").wait();
  };
  auto body = [&](weir::scope& s) -> task<> {
    for (int i = 0; i < n; ++i) s.spawn(wait());
    co_await weir::sleep(1s);
    s.cancel();
  };
  (void)co_await weir::settle(weir::with_scope(body));
  co_return n;
}

/// Many fibers wait for one thing, and get it.
template <waited What>
task<int> wakes_waiters(int n) {
  auto one = weir::awakeable<int>("one");
  note("id " + std::string(one.id()));
  int sum = 0;
  auto wait = [&]() -> task<> {
    if constexpr (What == waited::promise) sum += co_await weir::promise<int>("one").wait();
    if constexpr (What == waited::awakeable) sum += co_await one.wait();
    if constexpr (What == waited::signal) sum += co_await weir::signal<int>("one").wait();
  };
  auto body = [&](weir::scope& s) -> task<> {
    for (int i = 0; i < n; ++i) s.spawn(wait());
    co_await weir::sleep(1s);
    if (What == waited::promise) (void)co_await weir::promise<int>("one").resolve(1);
  };
  co_await weir::with_scope(body);
  co_return sum;
}

template <class H>
std::uint64_t visits_of_h(H handler, int n, user also = nullptr) {
  return visits_of(as_h(handler), [n, also](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("h", {.id = "r"}, n);
    if (also) co_await also(e);
    EXPECT_EQ(co_await run.result(), n);
  });
}

}  // namespace

TEST(durable_growth, waiters_of_one_promise_that_are_cancelled) {
  expect_linear([](int n) { return visits_of_h(cancels_waiters<waited::promise>, n); });
}

TEST(durable_growth, waiters_of_one_awakeable_that_are_cancelled) {
  expect_linear([](int n) { return visits_of_h(cancels_waiters<waited::awakeable>, n); });
}

TEST(durable_growth, waiters_of_one_signal_that_are_cancelled) {
  expect_linear([](int n) { return visits_of_h(cancels_waiters<waited::signal>, n); });
}

TEST(durable_growth, waiters_of_one_promise_that_get_it) {
  expect_linear([](int n) { return visits_of_h(wakes_waiters<waited::promise>, n); });
}

TEST(durable_growth, waiters_of_one_awakeable_that_get_it) {
  expect_linear([](int n) {
    return visits_of_h(wakes_waiters<waited::awakeable>, n, [](durable::engine& e) -> task<> {
      const std::string id = co_await last_noted("id ");
      EXPECT_TRUE(co_await e.resolve(id, 1));
    });
  });
}

TEST(durable_growth, waiters_of_one_signal_that_get_one_each) {
  expect_linear([](int n) {
    return visits_of_h(wakes_waiters<waited::signal>, n, [n](durable::engine& e) -> task<> {
      for (int i = 0; i < n; ++i) EXPECT_TRUE(co_await e.signal("r", "one", 1));
    });
  });
}

TEST(durable_growth, callers_of_one_run) {
  expect_linear([](int n) {
    auto calls = [](int) -> task<int> {
      const weir::call_options to{.id = "one"};
      const int input = 1;
      co_return co_await weir::call<int>("hears", input, to);
    };
    auto setup = [=](durable::engine& e) {
      e.add("hears", hears_go);
      e.add("h", calls);
    };
    return visits_of(setup, [n](durable::engine& e) -> task<> {
      co_await start_all(e, "h", n);
      EXPECT_TRUE(co_await e.signal("one", "go", 1));
      for (int i = 0; i < n; ++i) {
        auto run = co_await e.start<int>("h", {.id = "r" + std::to_string(i)}, i);
        EXPECT_EQ(co_await run.result(), 2);
      }
    });
  });
}

namespace {

/// Waits for one that waits.
task<int> relays(int n) { co_return co_await weir::call<int>("hears", n, {.id = "last"}); }

/// Calls `n` runs by their ids, all at once, when it is told to.
task<int> calls_many(int n) {
  (void)co_await weir::signal<int>("begin").wait();
  int sum = 0;
  auto one = [&](int i) -> task<> {
    const std::string id = "t" + std::to_string(i);
    const int input = 0;
    sum += co_await weir::call<int>("relays", input, {.id = id});
  };
  auto body = [&](weir::scope& s) -> task<> {
    for (int i = 0; i < n; ++i) s.spawn(one(i));
    co_return;
  };
  co_await weir::with_scope(body);
  co_return sum;
}

}  // namespace

// Each call looks for a circle. A crowd that waits for the caller is not gone through by each.
TEST(durable_growth, calls_of_one_run_that_many_wait_for) {
  for (const bool ended : {false, true}) {
    expect_linear([ended](int n) {
      auto waits_for_hub = [](int many) -> task<int> {
        co_return co_await weir::call<int>("calls_many", many, {.id = "hub"});
      };
      auto setup = [=](durable::engine& e) {
        e.add("hears", hears_go);
        e.add("relays", relays);
        e.add("calls_many", calls_many);
        e.add("h", waits_for_hub);
      };
      return visits_of(setup, [n, ended](durable::engine& e) -> task<> {
        auto hub = co_await e.start<int>("calls_many", {.id = "hub"}, n);
        for (int i = 0; i < n; ++i)
          (void)co_await e.start<int>("relays", {.id = "t" + std::to_string(i)}, 0);
        co_await start_all(e, "h", n);
        if (ended) {
          EXPECT_TRUE(co_await e.signal("last", "go", 1));
        }
        co_await weir::sleep(1s);
        EXPECT_TRUE(co_await e.signal("hub", "begin", 1));
        co_await weir::sleep(1s);
        EXPECT_EQ(co_await e.signal("last", "go", 1), !ended);
        EXPECT_EQ(co_await hub.result(), n);
      });
    });
  }
}

// And the other way: a run that waits for a crowd, and is called by many that others wait for.
TEST(durable_growth, calls_by_many_of_a_run_that_waits_for_many) {
  expect_linear([](int n) {
    auto calls_hub = [](int many) -> task<int> {
      (void)co_await weir::signal<int>("begin").wait();
      co_return co_await weir::call<int>("calls_many", many, {.id = "hub"});
    };
    auto calls_caller = [](int i) -> task<int> {
      co_return co_await weir::call<int>("calls_hub", i, {.id = "c" + std::to_string(i)});
    };
    auto setup = [=](durable::engine& e) {
      e.add("hears", hears_go);
      e.add("relays", relays);
      e.add("calls_many", calls_many);
      e.add("calls_hub", calls_hub);
      e.add("h", calls_caller);
    };
    return visits_of(setup, [n](durable::engine& e) -> task<> {
      auto hub = co_await e.start<int>("calls_many", {.id = "hub"}, n);
      EXPECT_TRUE(co_await e.signal("hub", "begin", 1));
      co_await start_all(e, "h", n);
      for (int i = 0; i < n; ++i)
        EXPECT_TRUE(co_await e.signal("c" + std::to_string(i), "begin", 1));
      co_await weir::sleep(1s);
      EXPECT_TRUE(co_await e.signal("last", "go", 1));
      EXPECT_EQ(co_await hub.result(), n);
    });
  });
}

TEST(durable_growth, operations_that_absorb_the_cancellation_of_their_run) {
  expect_linear([](int n) {
    auto absorbs = [](int count) -> task<int> {
      int ended = 0;
      auto one = [&]() -> task<> {
        (void)co_await weir::absorb(weir::sleep(1h));
        ++ended;
      };
      auto body = [&](weir::scope& s) -> task<> {
        for (int i = 0; i < count; ++i) s.spawn(one());
        co_return;
      };
      co_await weir::with_scope(body);
      co_return ended;
    };
    return visits_of_h(absorbs, n, [](durable::engine& e) -> task<> {
      co_await weir::sleep(1s);
      EXPECT_TRUE(e.cancel("r"));
    });
  });
}

TEST(durable_growth, steps_that_are_cancelled_when_all_of_them_have_just_ended) {
  expect_linear([](int n) {
    auto steps = [](int count) -> task<int> {
      auto one = []() -> task<> {
        auto body = []() -> task<int> {
          co_await weir::sleep(1s);
          co_return 1;
        };
        (void)co_await weir::step("one", body);
      };
      auto body = [&](weir::scope& s) -> task<> {
        for (int i = 0; i < count; ++i) s.spawn(one());
        co_await weir::sleep(1s);
        s.cancel();
      };
      (void)co_await weir::settle(weir::with_scope(body));
      co_return count;
    };
    return visits_of_h(steps, n);
  });
}
