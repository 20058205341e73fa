// SPDX-License-Identifier: MIT
// counting_governor: strict FIFO, weights, resizing, closing, limits on waiting, idleness, and a
// comparison with a simple model over random sequences of calls.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <random>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

struct counts {
  long capacity, available, active, waiting;
  friend bool operator==(const counts&, const counts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const counts& c) {
    return out << "capacity " << c.capacity << " available " << c.available << " active "
               << c.active << " waiting " << c.waiting;
  }
};

counts counts_of(const weir::counting_governor& g) {
  return {static_cast<long>(g.capacity()), static_cast<long>(g.available()),
          static_cast<long>(g.active()), static_cast<long>(g.waiting())};
}

/// Takes `weight` units, says so in the log, and keeps them for `d`.
task<> user(weir::counting_governor& g, text_log& log, std::string name, int weight,
            weir::duration d) {
  auto permit = co_await g.acquire(weight);
  log.push_back(std::move(name));
  co_await weir::sleep(d);
}

}  // namespace
FIBER_TEST(counting_governor, it_grants_up_to_its_capacity_and_no_more) {
  weir::counting_governor g(2);
  EXPECT_EQ(counts_of(g), (counts{2, 2, 0, 0}));
  auto a = co_await g.acquire();
  auto b = g.try_acquire();
  EXPECT_TRUE(b.has_value());
  EXPECT_FALSE(g.try_acquire().has_value());
  EXPECT_EQ(counts_of(g), (counts{2, 0, 2, 0}));
  a.release();
  EXPECT_EQ(counts_of(g), (counts{2, 1, 1, 0}));
  b.reset();
  EXPECT_EQ(counts_of(g), (counts{2, 2, 0, 0}));
}
TEST(counting_governor, no_newcomer_overtakes_a_waiter) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::counting_governor g(1);
      auto held = co_await g.acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        const text_log names{"a", "b", "c"};
        for (const std::string& name : names) {
          s.spawn(user(g, log, name, 1, 1ms));
          co_await weir::sleep(1ms);
        }
        held.release();
        EXPECT_FALSE(g.try_acquire().has_value());
        auto newcomer = co_await g.acquire();
        log.push_back("newcomer");
      });
    });
    EXPECT_EQ(joined(log), "a,b,c,newcomer");
  });
}

TEST(counting_governor, a_lighter_request_does_not_overtake_a_heavier_one) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::counting_governor g(3);
      auto two = co_await g.acquire(2);
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(user(g, log, "heavy", 3, 10ms));
        co_await weir::sleep(1ms);
        s.spawn(user(g, log, "light", 1, 10ms));
        co_await weir::sleep(1ms);
        EXPECT_EQ(log.size(), 0u);
        EXPECT_FALSE(g.try_acquire().has_value());
        EXPECT_EQ(counts_of(g).waiting, 4);
        two.release();
      });
      EXPECT_EQ(counts_of(g), (counts{3, 3, 0, 0}));
    });
    EXPECT_EQ(joined(log), "heavy,light");
  });
}

FIBER_TEST(counting_governor, a_permit_knows_its_weight_and_gives_all_of_it_back) {
  weir::counting_governor g(5);
  auto p = co_await g.acquire(4);
  EXPECT_EQ(static_cast<long>(p.weight()), 4);
  EXPECT_EQ(counts_of(g), (counts{5, 1, 4, 0}));
  p.release();
  EXPECT_EQ(counts_of(g), (counts{5, 5, 0, 0}));
  auto none = co_await attempt([&] { return g.acquire(0); });
  EXPECT_EQ(code_of(none), weir::errc::invalid_argument);
}

FIBER_TEST_IN_EVERY_ORDER(counting_governor, more_than_the_capacity_waits_for_a_resize) {
  text_log log;
  weir::counting_governor g(1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(user(g, log, "big", 3, 1ms));
    co_await weir::sleep(1ms);
    g.resize(2);
    co_await weir::sleep(1ms);
    EXPECT_TRUE(log.empty());
    g.resize(3);
    co_await weir::sleep(1ms);
    EXPECT_EQ(joined(log), "big");
  });
}
TEST(counting_governor, growing_wakes_exactly_as_many_as_it_adds) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::counting_governor g(0);
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        const text_log names{"a", "b", "c", "d"};
        for (const std::string& name : names) {
          s.spawn(user(g, log, name, 1, 1h));
          co_await weir::sleep(1ms);
        }
        EXPECT_EQ(counts_of(g), (counts{0, 0, 0, 4}));
        g.resize(2);
        co_await weir::sleep(1ms);
        std::sort(log.begin(), log.end());  // granted together: any order to run in
        EXPECT_EQ(joined(log), "a,b");
        g.resize(3);
        co_await weir::sleep(1ms);
        EXPECT_EQ(joined(log), "a,b,c");
      });
      EXPECT_EQ(joined(log), "a,b,c,d");
    });
  });
}
FIBER_TEST(counting_governor, shrinking_revokes_nothing_and_grants_nothing_until_there_is_room) {
  weir::counting_governor g(3);
  auto a = co_await g.acquire();
  auto b = co_await g.acquire();
  auto c = co_await g.acquire();
  g.resize(1);
  EXPECT_EQ(counts_of(g), (counts{1, 0, 3, 0}));
  a.release();
  b.release();
  EXPECT_EQ(counts_of(g), (counts{1, 0, 1, 0}));
  EXPECT_FALSE(g.try_acquire().has_value());
  c.release();
  EXPECT_TRUE(g.try_acquire().has_value());
}
FIBER_TEST(counting_governor, capacities_outside_32_bits_are_refused) {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  for (std::int64_t bad : {std::int64_t{-1}, most + 1}) {
    auto made = thrown_by([&] { weir::counting_governor g(bad); });
    EXPECT_EQ(code_of(made), weir::errc::invalid_argument) << bad;
    weir::counting_governor g(1);
    auto resized = thrown_by([&] { g.resize(bad); });
    EXPECT_EQ(code_of(resized), weir::errc::invalid_argument) << bad;
    EXPECT_EQ(counts_of(g).capacity, 1);
  }
  weir::counting_governor largest(most);
  EXPECT_EQ(counts_of(largest).available, static_cast<long>(most));
  co_return;
}
FIBER_TEST_IN_EVERY_ORDER(counting_governor, cancelled_waiters_leave_and_take_nothing_with_them) {
  weir::counting_governor g(0);
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    std::vector<weir::child<void>> waiters;
    for (int i = 0; i < 20; ++i) waiters.push_back(s.spawn(user(g, log, "got", 1, 0ms)));
    co_await weir::sleep(1ms);
    EXPECT_EQ(counts_of(g).waiting, 20);
    for (auto& waiter : waiters) waiter.cancel();
  });
  EXPECT_EQ(counts_of(g), (counts{0, 0, 0, 0}));
  g.resize(1);
  EXPECT_EQ(counts_of(g), (counts{1, 1, 0, 0}));
  EXPECT_TRUE(log.empty());
}

FIBER_TEST_IN_EVERY_ORDER(counting_governor,
                          a_cancelled_heavy_waiter_lets_the_lighter_ones_behind_it_in) {
  text_log log;
  weir::counting_governor g(2);
  auto one = co_await g.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto heavy = s.spawn(user(g, log, "heavy", 2, 1ms));
    co_await weir::sleep(1ms);
    s.spawn(user(g, log, "light", 1, 1ms));
    co_await weir::sleep(1ms);
    EXPECT_TRUE(log.empty());
    heavy.cancel();
    co_await weir::sleep(1ms);
    EXPECT_EQ(joined(log), "light");
  });
}

// The grant and the cancellation meet in one step
FIBER_TEST_IN_EVERY_ORDER(counting_governor, a_grant_that_meets_a_cancellation_is_not_lost) {
  weir::counting_governor g(1);
  text_log log;
  auto held = co_await g.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto first = s.spawn(user(g, log, "first", 1, 0ms));
    co_await weir::sleep(1ms);
    s.spawn(user(g, log, "second", 1, 0ms));
    co_await weir::sleep(1ms);
    held.release();
    first.cancel();
  });
  EXPECT_EQ(counted(log, "second"), 1);
  EXPECT_EQ(counts_of(g), (counts{1, 1, 0, 0}));
}

FIBER_TEST_IN_EVERY_ORDER(counting_governor, acquire_for_gives_up_after_its_time) {
  weir::counting_governor g(1);
  auto held = co_await g.acquire();
  auto t0 = weir::now();
  auto error = co_await error_of(g.acquire_for(10ms));
  EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  EXPECT_EQ(weir::now() - t0, 10ms);
  EXPECT_EQ(counts_of(g), (counts{1, 0, 1, 0}));
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(5ms);
      held.release();
    });
    auto permit = co_await g.acquire_for(10ms);
    EXPECT_EQ(counts_of(g).active, 1);
  });
}

FIBER_TEST_IN_EVERY_ORDER(counting_governor, closing_fails_every_waiter_and_every_later_request) {
  weir::counting_governor g(1);
  auto held = co_await g.acquire();
  int refused = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 3; ++i) {
      s.spawn([&]() -> task<> {
        auto error = co_await error_of(g.acquire());
        if (code_of(error) == weir::errc::governor_closed) ++refused;
      });
    }
    co_await weir::sleep(1ms);
    g.close();
  });
  EXPECT_EQ(refused, 3);
  held.release();  // a permit that is out stays valid and comes back
  EXPECT_FALSE(g.try_acquire().has_value());
  auto late = co_await attempt([&] { return g.acquire(); });
  EXPECT_EQ(code_of(late), weir::errc::governor_closed);
  EXPECT_EQ(counts_of(g).active, 0);
}
FIBER_TEST_IN_EVERY_ORDER(counting_governor,
                          beyond_max_waiting_it_refuses_and_a_cancelled_waiter_frees_its_place) {
  weir::counting_governor g(1, {.name = "db", .max_waiting = 2});
  text_log log;
  auto held = co_await g.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto first = s.spawn(user(g, log, "first", 1, 1ms));
    s.spawn(user(g, log, "second", 1, 1ms));
    co_await weir::sleep(1ms);
    auto full = co_await attempt([&] { return g.acquire(); });
    EXPECT_EQ(code_of(full), weir::errc::governor_full);
    EXPECT_TRUE(contains(what_of(full), "db")) << what_of(full);
    first.cancel();
    s.spawn(user(g, log, "third", 1, 1ms));
    co_await weir::sleep(1ms);
    held.release();
  });
  EXPECT_EQ(joined(log), "second,third");
}
FIBER_TEST_IN_EVERY_ORDER(counting_governor,
                          idle_listeners_are_called_when_nothing_is_active_and_nobody_waits) {
  weir::counting_governor g(1);
  text_log log;
  int first = 0, last = 0;
  g.on_idle([&] { ++first; });
  g.on_idle([] { throw boom(1); });
  g.on_idle([&] { ++last; });
  auto held = co_await g.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(user(g, log, "waiter", 1, 1ms));
    co_await weir::sleep(1ms);
    held.release();
    co_await weir::yield();
    EXPECT_EQ(first, 0);  // the waiter has it now
  });
  co_await weir::yield();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(last, 1);
  auto again = co_await g.acquire();
  again.release();
  co_await weir::yield();
  EXPECT_EQ(first, 2);
  EXPECT_EQ(last, 2);
}
FIBER_TEST_IN_EVERY_ORDER(counting_governor,
                          with_gives_the_permit_back_on_value_error_throw_and_cancellation) {
  weir::counting_governor g(1);
  int value = co_await g.with([&]() -> task<int> {
    EXPECT_EQ(counts_of(g).active, 1);
    co_return 5;
  });
  EXPECT_EQ(value, 5);
  auto failed = co_await error_of(g.with(fails_after(1ms, 2)));
  EXPECT_EQ(boom_of(failed), 2);
  auto threw = co_await attempt([&] { return g.with([]() -> task<int> { throw boom(3); }); });
  EXPECT_EQ(boom_of(threw), 3);
  auto timed = co_await error_of(weir::with_timeout(5ms, g.with(after(1h, 1))));
  EXPECT_TRUE(holds<weir::timeout_error>(timed));
  EXPECT_EQ(counts_of(g), (counts{1, 1, 0, 0}));
  g.close();
  bool ran = false;
  auto op = [&]() -> task<> {
    ran = true;
    co_return;
  };
  auto closed = co_await attempt([&] { return g.with(op); });
  EXPECT_EQ(code_of(closed), weir::errc::governor_closed);
  EXPECT_FALSE(ran);
}
FIBER_TEST_IN_EVERY_ORDER(counting_governor,
                          wrapped_functions_take_the_same_arguments_and_share_the_limit) {
  weir::counting_governor g(1);
  int inside = 0, most = 0;
  auto add = g.wrap([&](int a, std::unique_ptr<int> b) -> task<int> {
    most = std::max(most, ++inside);
    co_await weir::sleep(1ms);
    --inside;
    co_return a + *b;
  });
  auto twice = g.wrap([&](int a) -> task<int> {
    most = std::max(most, ++inside);
    co_await weir::sleep(1ms);
    --inside;
    co_return 2 * a;
  });
  auto sums = co_await weir::all(add(1, std::make_unique<int>(2)), twice(4), twice(5));
  EXPECT_EQ(std::get<0>(sums), 3);
  EXPECT_EQ(std::get<1>(sums), 8);
  EXPECT_EQ(std::get<2>(sums), 10);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(counts_of(g), (counts{1, 1, 0, 0}));
}
TEST(counting_governor, a_self_deadlock_is_found_and_named) {
  auto error = thrown_by([] {
    weir::sim::run({.seed = 1}, []() -> task<> {
      weir::counting_governor g(1, {.name = "database"});
      co_await g.with([&]() -> task<> { co_await g.with(weir::sleep(1ms)); });
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "database")) << what_of(error);
}

TEST(counting_governor, destroying_it_with_permits_out_aborts_with_its_name) {
  EXPECT_DEATH(weir::sim::run({.seed = 1},
                              []() -> task<> {
                                weir::permit p;
                                {
                                  weir::counting_governor g(1, {.name = "database"});
                                  p = co_await g.acquire();
                                }
                              }),
               "database");
}

TEST(counting_governor, destroying_it_under_a_waiter_aborts_with_both_names) {
  EXPECT_DEATH(weir::sim::run({.seed = 1},
                              []() -> task<> {
                                co_await weir::with_scope([](weir::scope& s) -> task<> {
                                  weir::counting_governor g(0, {.name = "database"});
                                  auto wait = [&]() -> task<> { (void)co_await g.acquire(); };
                                  s.spawn(wait, {.name = "waiter"});
                                  co_await weir::sleep(1ms);
                                });
                              }),
               "database.*waiter");
}

namespace {

/// The same rules, written down in the simplest way.
struct model {
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
  counts totals() const {
    long waiting = 0;
    for (const auto& entry : queue) waiting += entry.second;
    return {capacity, std::max(0L, capacity - active), active, waiting};
  }
};

/// Makes random calls and compares the governor with the model after each.
task<> compare_with_model(unsigned seed) {
  std::mt19937 random(seed);
  weir::counting_governor g(2);
  model m;
  m.capacity = 2;
  std::map<int, weir::permit> permits;
  std::map<int, weir::child<void>> requests;
  auto request = [&](int id, int weight) -> task<> {
    auto permit = co_await g.acquire(weight);
    permits[id] = std::move(permit);
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int id = 0; id < 60; ++id) {
      auto choice = random() % 10;
      if (choice < 5) {
        int weight = static_cast<int>(random() % 3) + 1;
        requests.emplace(id, s.spawn(request(id, weight)));
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
      EXPECT_EQ(counts_of(g), m.totals()) << "after call " << id;
      EXPECT_EQ(permits.size(), m.granted.size()) << "after call " << id;
      for (const auto& [granted, weight] : m.granted) EXPECT_TRUE(permits.contains(granted));
    }
    s.cancel();
  });
  permits.clear();
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(counting_governor, random_sequences_of_calls_agree_with_a_simple_model) {
  return compare_with_model(static_cast<unsigned>(weir::random()));
}
