// SPDX-License-Identifier: MIT
// partitioned_governor: parts with shares that the others may borrow.
#include <map>
#include <random>
#include <vector>

#include "governor_support.hpp"

using namespace flow_test;
using weir::governor_part;
using weir::partitioned_governor;

namespace {

std::vector<weir::permit> permits_of(governor_part& g, int count) {
  std::vector<weir::permit> taken;
  for (int i = 0; i < count; ++i) {
    auto p = g.try_acquire();
    if (!p) break;
    taken.push_back(std::move(*p));
  }
  return taken;
}

}  // namespace

FIBER_TEST(partitioned_governor, shares_are_weights_and_unused_ones_may_be_borrowed) {
  partitioned_governor g(10, {{"gold", 60}, {"free", 40}});
  EXPECT_EQ(g.part("gold").share(), 6);
  EXPECT_EQ(g.part("free").share(), 4);
  auto borrowed = permits_of(g.part("free"), 20);
  EXPECT_EQ(borrowed.size(), 10U);
  EXPECT_EQ(g.active(), 10);
  EXPECT_EQ(g.available(), 0);
  EXPECT_EQ(g.part("free").active(), 10);
  EXPECT_EQ(g.part("gold").active(), 0);
  borrowed.resize(7);
  EXPECT_EQ(g.part("gold").available(), 3);
  EXPECT_EQ(permits_of(g.part("gold"), 5).size(), 3U);
  co_return;
}

TEST(partitioned_governor, what_comes_back_goes_first_to_parts_below_their_share) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      partitioned_governor g(4, {{"gold", 3}, {"free", 1}});
      auto held = permits_of(g.part("free"), 4);  // everything, three of them borrowed
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (const char* name : {"f1", "f2"}) {
          s.spawn(user(g.part("free"), log, name, 1ms));
          co_await weir::sleep(1us);
        }
        for (const char* name : {"g1", "g2", "g3", "g4"}) {  // later, but below their share
          s.spawn(user(g.part("gold"), log, name, 1h));
          co_await weir::sleep(1us);
        }
        EXPECT_EQ(g.waiting(), 6);
        while (!held.empty()) {
          held.pop_back();
          co_await weir::sleep(1us);
        }
        EXPECT_EQ(joined(log), "g1,g2,g3,f1");
        co_await weir::sleep(5ms);
        EXPECT_EQ(joined(log), "g1,g2,g3,f1,f2,g4");  // nobody else: gold may borrow
        s.cancel();
      });
      EXPECT_EQ(g.active(), 0);
    });
  });
}

TEST(partitioned_governor, within_a_part_the_order_is_first_come_first_served) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      partitioned_governor g(1, {{"a", 1}, {"b", 1}});
      auto held = permits_of(g.part("a"), 1);
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (const char* name : {"a1", "a2"}) {
          s.spawn(user(g.part("a"), log, name, 1ms));
          co_await weir::sleep(1us);
        }
        auto gone = s.spawn(user(g.part("b"), log, "never", 1ms));
        co_await weir::sleep(1us);
        gone.cancel();
        held.clear();
        EXPECT_FALSE(g.part("b").try_acquire().has_value());  // no newcomer overtakes
        co_await s.join();
      });
    });
    EXPECT_EQ(joined(log), "a1,a2");
  });
}

FIBER_TEST_IN_EVERY_ORDER(partitioned_governor, growing_hands_out_what_is_new_by_share) {
  partitioned_governor g(0, {{"gold", 2}, {"free", 1}});
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 4; ++i) s.spawn(user(g.part("free"), log, "free", 1h));
    for (int i = 0; i < 4; ++i) s.spawn(user(g.part("gold"), log, "gold", 1h));
    co_await weir::sleep(1us);
    g.resize(6);
    co_await weir::sleep(1us);
    EXPECT_EQ(counted(log, "gold"), 4);
    EXPECT_EQ(counted(log, "free"), 2);
    g.resize(1);
    EXPECT_EQ(g.active(), 6);
    EXPECT_EQ(g.available(), 0);
    s.cancel();
  });
  EXPECT_EQ(g.available(), 1);
  EXPECT_EQ(g.waiting(), 0);
}

FIBER_TEST_IN_EVERY_ORDER(partitioned_governor, closing_fails_the_waiters_of_every_part) {
  partitioned_governor g(1, {{"a", 1}, {"b", 1}}, {.name = "api"});
  auto held = permits_of(g.part("a"), 1);
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (const char* name : {"a", "b"}) {
      s.spawn([&, name]() -> task<> {
        auto error = co_await error_of(g.part(name).acquire());
        if (code_of(error) == errc::governor_closed) log.push_back(what_of(error));
      });
    }
    co_await weir::sleep(1us);
    g.close();
  });
  EXPECT_EQ(log.size(), 2U);
  EXPECT_EQ(g.part("b").name(), "api/b");
  EXPECT_TRUE(contains(joined(log), "'api/b' is closed")) << joined(log);
}

TEST(partitioned_governor, all_parts_have_one_home) {
  weir::sim::world w;
  w.run([&]() -> task<> {
    partitioned_governor g(2, {{"a", 1}, {"b", 1}});
    std::exception_ptr error;
    auto there = [&]() -> task<> {
      error = co_await attempt([&] { return g.part("b").acquire(); });
    };
    auto held = co_await g.part("a").acquire();
    co_await weir::on(w.loop("peer"), there);
    EXPECT_EQ(code_of(error), errc::wrong_loop);
  });
}

TEST(partitioned_governor, unknown_parts_and_bad_shares_are_refused) {
  partitioned_governor g(2, {{"gold", 60}, {"free", 40}}, {.name = "api"});
  auto unknown = thrown_by([&] { (void)g.part("silver"); });
  EXPECT_EQ(code_of(unknown), errc::invalid_argument);
  EXPECT_TRUE(contains(what_of(unknown), "'api'")) << what_of(unknown);
  EXPECT_TRUE(contains(what_of(unknown), "'silver'; it has 'gold' 'free'")) << what_of(unknown);
  EXPECT_EQ(refused([] { partitioned_governor bad(1, {}); }), errc::invalid_argument);
  EXPECT_EQ(refused([] { partitioned_governor bad(1, {{"a", 0}}); }), errc::invalid_argument);
  EXPECT_EQ(refused([] { partitioned_governor bad(1, {{"", 1}}); }), errc::invalid_argument);
  EXPECT_EQ(refused([] { partitioned_governor bad(1, {{"a", 1}, {"a", 1}}); }),
            errc::invalid_argument);
  EXPECT_EQ(refused([] { partitioned_governor bad(-1, {{"a", 1}}); }), errc::invalid_argument);
  EXPECT_EQ(refused([&] { g.resize(std::int64_t{1} << 32); }), errc::invalid_argument);
}

// Who waits is never let wait while something is free, and nobody gets more than there is.
FIBER_TEST_IN_EVERY_ORDER(partitioned_governor,
                          random_sequences_of_calls_waste_nothing_and_exceed_nothing) {
  std::mt19937 random(static_cast<unsigned>(weir::random()));
  partitioned_governor g(3, {{"a", 3}, {"b", 2}, {"c", 1}});
  const char* const names[] = {"a", "b", "c"};
  std::map<int, weir::permit> permits;
  std::map<int, weir::child<void>> requests;
  auto request = [&](int id, governor_part& part) -> task<> {
    auto permit = co_await part.acquire();
    permits[id] = std::move(permit);
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int id = 0; id < 40; ++id) {
      const auto choice = random() % 10;
      if (choice < 5) {
        requests.emplace(id, s.spawn(request(id, g.part(names[random() % 3]))));
      } else if (choice < 8 && !permits.empty()) {
        permits.erase(permits.begin());
      } else if (choice < 9 && !requests.empty()) {
        requests.begin()->second.cancel();
        requests.erase(requests.begin());
      } else {
        g.resize(static_cast<std::int64_t>(random() % 5));
      }
      co_await weir::sleep(1ms);
      EXPECT_EQ(g.active(), static_cast<std::int64_t>(permits.size()));
      EXPECT_TRUE(g.available() == 0 || g.waiting() == 0);
      std::int64_t sum = 0;
      for (const char* name : names) sum += g.part(name).active();
      EXPECT_EQ(sum, g.active());
    }
    s.cancel();
  });
  permits.clear();
  EXPECT_EQ(g.active(), 0);
}
