// SPDX-License-Identifier: MIT
// shared_governor on several loops of a simulation: order, weights, cancellation while a grant is
// on its way, and comparison with a simple model.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "governor_support.hpp"

using namespace flow_test;
using weir::shared_governor;

namespace {

const char* const loop_names[] = {"x", "y", "z"};

}  // namespace

TEST(shared_governor, no_newcomer_overtakes_a_waiter_of_another_loop) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      shared_governor g(1);
      auto held = co_await g.acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (const char* name : loop_names) {
          s.spawn_on(w.loop(name), [&, name]() -> task<> { return user(g, log, name, 1ms); });
          co_await weir::sleep(1ms);
        }
        EXPECT_EQ(g.waiting(), 3);
        held.release();
        EXPECT_FALSE(g.try_acquire().has_value());
        auto newcomer = co_await g.acquire();
        log.push_back("newcomer");
      });
      EXPECT_EQ(g.active(), 0);
      EXPECT_EQ(g.waiting(), 0);
    });
    EXPECT_EQ(joined(log), "x,y,z,newcomer");
  });
}

TEST(shared_governor, weights_are_served_in_order) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      shared_governor g(3);
      auto two = co_await g.acquire(2);
      EXPECT_EQ(two.weight(), 2);
      auto use = [&](const char* name, int weight) -> task<> {
        auto permit = co_await g.acquire(weight);
        log.push_back(name);
        co_await weir::sleep(1ms);
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn_on(w.loop("x"), [&] { return use("heavy", 3); });
        co_await weir::sleep(1ms);
        s.spawn_on(w.loop("y"), [&] { return use("light", 1); });
        co_await weir::sleep(1ms);
        EXPECT_EQ(g.waiting(), 4);
        EXPECT_FALSE(g.try_acquire().has_value());
        two.release();
        co_await s.join();
      });
      EXPECT_EQ(g.available(), 3);
      auto none = co_await attempt([&] { return g.acquire(0); });
      EXPECT_EQ(code_of(none), errc::invalid_argument);
      EXPECT_EQ(refused([&] { (void)g.try_acquire(-1); }), errc::invalid_argument);
    });
    EXPECT_EQ(joined(log), "heavy,light");
  });
}

TEST(shared_governor, a_heavy_waiter_that_leaves_lets_the_lighter_ones_behind_it_in) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      shared_governor g(2);
      auto one = co_await g.acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto heavy = s.spawn([&]() -> task<> { (void)co_await g.acquire(2); });
        co_await weir::sleep(1ms);
        s.spawn_on(w.loop("x"), [&] { return user(g, log, "light", 0ms); });
        co_await weir::sleep(1ms);
        EXPECT_TRUE(log.empty());
        heavy.cancel();
        co_await weir::sleep(1ms);
        EXPECT_EQ(joined(log), "light");
      });
    });
  });
}

// The grant is a message on its way to loop "x" when the waiter there is cancelled.
TEST(shared_governor, a_waiter_cancelled_while_its_grant_is_on_its_way_passes_it_on) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      shared_governor g(1);
      auto held = co_await g.acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto first = [&]() -> task<> {
          co_await weir::with_scope([&](weir::scope& inner) -> task<> {
            auto waits = inner.spawn(user(g, log, "first", 0ms));
            co_await weir::sleep(3ms);
            waits.cancel();  // at 3 ms, in the instant of the release
            co_await inner.join();
          });
        };
        s.spawn_on(w.loop("x"), first);
        co_await weir::sleep(1ms);
        s.spawn_on(w.loop("y"), [&] { return user(g, log, "second", 0ms); });
        co_await weir::sleep(1ms);
        s.spawn_on(w.loop("x"), [&] { return user(g, log, "third", 0ms); });
        co_await weir::sleep(1ms);
        held.release();
        co_await s.join();
      });
      EXPECT_EQ(g.active(), 0);
      EXPECT_EQ(g.available(), 1);
      EXPECT_EQ(g.waiting(), 0);
    });
    std::erase(log, "first");
    EXPECT_EQ(joined(log), "second,third");
  });
}

FIBER_TEST_IN_EVERY_ORDER(shared_governor, a_race_across_loops_loses_no_permit) {
  shared_governor g(1);
  int got = 0;
  auto impatient = [&]() -> task<> {
    for (int i = 0; i < 3; ++i) {
      auto first = co_await weir::race(g.acquire(), weir::sleep(1ms));
      if (first.index() == 0) ++got;
      if (first.index() == 0) co_await weir::sleep(1ms);
    }
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (const char* name : loop_names) s.spawn_on(w.loop(name), impatient);
    co_await s.join();
  });
  EXPECT_GE(got, 3);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(g.available(), 1);
}

FIBER_TEST_IN_EVERY_ORDER(shared_governor, closing_and_resizing_reach_the_waiters_of_all_loops) {
  shared_governor g(0, {.name = "all"});
  text_log log;
  int refusals = 0;
  auto wait = [&]() -> task<> {
    try {
      auto permit = co_await g.acquire();
      log.push_back("got");
      co_await weir::sleep(1h);
    } catch (const weir::error& e) {
      if (e.code() == errc::governor_closed && contains(e.what(), "'all'")) ++refusals;
    }
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (const char* name : loop_names) s.spawn_on(w.loop(name), wait);
    co_await weir::sleep(1ms);
    EXPECT_EQ(g.waiting(), 3);
    g.resize(2);
    co_await weir::sleep(1ms);
    EXPECT_EQ(log.size(), 2U);
    g.resize(1);
    EXPECT_EQ(g.active(), 2);  // nothing is revoked
    EXPECT_EQ(g.available(), 0);
    g.close();
    co_await weir::sleep(1ms);
    EXPECT_EQ(refusals, 1);
    EXPECT_FALSE(g.try_acquire().has_value());
    s.cancel();
  });
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(g.capacity(), 1);
}

TEST(shared_governor, capacities_outside_32_bits_are_refused) {
  for (std::int64_t bad :
       {std::int64_t{-1}, std::int64_t{1} << 32, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(refused([&] { shared_governor g(bad); }), errc::invalid_argument) << bad;
    shared_governor g(1);
    EXPECT_EQ(refused([&] { g.resize(bad); }), errc::invalid_argument) << bad;
    EXPECT_EQ(g.capacity(), 1);
  }
  shared_governor largest(0xffffffff);
  EXPECT_EQ(largest.available(), 0xffffffff);
  EXPECT_EQ(refused([&] { shared_governor g(1, {.max_waiting = -1}); }), errc::invalid_argument);
}

// futures-rs#2348: it never hangs silently
FIBER_TEST(shared_governor, with_capacity_0_it_waits_is_seen_in_the_dump_and_can_be_cancelled) {
  shared_governor g(0, {.name = "shut"});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto waiter = s.spawn([&]() -> task<> { (void)co_await g.acquire(); });
    co_await weir::sleep(1h);
    std::ostringstream tree;
    weir::dump(tree);
    EXPECT_TRUE(contains(tree.str(), "acquire of governor 'shut' (0 of 0 out)")) << tree.str();
    waiter.cancel();
  });
  EXPECT_EQ(g.waiting(), 0);
}

TEST(shared_governor, outside_of_loops_it_may_be_tried) {
  shared_governor g(1);
  auto held = g.try_acquire();
  EXPECT_TRUE(held.has_value());
  EXPECT_FALSE(g.try_acquire().has_value());
  held->release();
  EXPECT_EQ(g.available(), 1);
}

TEST(shared_governor, destroyed_under_a_waiter_it_aborts_with_its_name) {
  EXPECT_DEATH(simulate([]() -> task<> {
                 co_await weir::with_scope([](weir::scope& s) -> task<> {
                   shared_governor g(0, {.name = "database"});
                   auto wait = [&]() -> task<> { (void)co_await g.acquire(); };
                   s.spawn(wait);
                   co_await weir::sleep(1ms);
                 });
               }),
               "'database' destroyed while 1 requests wait");
}

FIBER_TEST(shared_governor, a_hundred_thousand_cancelled_acquires_leave_the_capacity_intact) {
  shared_governor shared(0);
  weir::counting_governor counting(0);
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 100'000; ++i) {
      if (i % 2 == 0) {
        s.spawn([&]() -> task<> { (void)co_await shared.acquire(); });
      } else {
        s.spawn([&]() -> task<> { (void)co_await counting.acquire(); });
      }
    }
    co_await weir::sleep(1ms);
    EXPECT_EQ(shared.waiting(), 50'000);
    EXPECT_EQ(counting.waiting(), 50'000);
    s.cancel();
  });
  shared.resize(2);
  counting.resize(2);
  EXPECT_EQ(shared.available(), 2);
  EXPECT_EQ(counting.available(), 2);
  auto both = co_await shared.acquire(2);
  EXPECT_EQ(shared.waiting() + counting.waiting(), 0);
}

namespace {

/// The same rules, written down in the simplest way.
struct governor_model {
  long capacity = 0, active = 0;
  std::deque<std::pair<int, long>> queue;  // id and weight
  std::map<int, long> granted;

  void settle() {
    while (!queue.empty() && active + queue.front().second <= capacity) {
      auto [id, weight] = queue.front();
      queue.pop_front();
      granted[id] = weight;
      active += weight;
    }
  }
  void forget(int id) {
    std::erase_if(queue, [&](const auto& entry) { return entry.first == id; });
    settle();
  }
  void release(int id) {
    active -= granted.at(id);
    granted.erase(id);
    settle();
  }
  long waiting() const {
    long sum = 0;
    for (const auto& entry : queue) sum += entry.second;
    return sum;
  }
};

/// Makes random calls from several loops and compares the governor with the model after each.
task<> compare_with_model(weir::sim::world& w) {
  std::mt19937 random(static_cast<unsigned>(weir::random()));
  shared_governor g(2);
  governor_model m;
  m.capacity = 2;
  std::map<int, weir::permit> permits;
  std::map<int, weir::child<void>> requests;
  auto request = [&](int id, int weight) -> task<> {
    auto permit = co_await g.acquire(weight);
    permits[id] = std::move(permit);
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int id = 0; id < 40; ++id) {
      auto choice = random() % 10;
      if (choice < 5) {
        int weight = static_cast<int>(random() % 3) + 1;
        auto op = [&request, id, weight] { return request(id, weight); };
        requests.emplace(id, s.spawn_on(w.loop(loop_names[random() % 3]), op));
        m.queue.emplace_back(id, weight);
        m.settle();
      } else if (choice < 7 && !m.granted.empty()) {
        int chosen = m.granted.begin()->first;
        permits.erase(chosen);
        m.release(chosen);
      } else if (choice < 9 && !m.queue.empty()) {
        int chosen = m.queue[random() % m.queue.size()].first;
        requests.at(chosen).cancel();
        m.forget(chosen);
      } else {
        m.capacity = static_cast<long>(random() % 5);
        g.resize(m.capacity);
        m.settle();
      }
      co_await weir::sleep(1ms);
      EXPECT_EQ(g.active(), m.active) << "after call " << id;
      EXPECT_EQ(g.waiting(), m.waiting()) << "after call " << id;
      EXPECT_EQ(g.available(), std::max(0L, m.capacity - m.active)) << "after call " << id;
      EXPECT_EQ(permits.size(), m.granted.size()) << "after call " << id;
      for (const auto& [granted, weight] : m.granted) EXPECT_TRUE(permits.contains(granted));
    }
    s.cancel();
  });
  permits.clear();
  EXPECT_EQ(g.active(), 0);
}

}  // namespace

TEST(shared_governor, random_sequences_of_calls_on_several_loops_agree_with_a_simple_model) {
  for_each_order([](weir::sim::world& w) { w.run([&] { return compare_with_model(w); }); });
}
