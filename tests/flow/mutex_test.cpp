// SPDX-License-Identifier: MIT
// mutex: one at a time, in order, across awaits; cancelled waiters and holders; deadlocks.
#include <algorithm>
#include <optional>

#include "flow_support.hpp"

using namespace weir_test;

namespace {

/// Locks, says so, and holds for a while.
task<> lock_holder(weir::mutex& m, text_log& log, std::string name, weir::duration d) {
  weir::mutex_guard held = co_await m.lock();
  log.push_back(std::move(name));
  co_await weir::sleep(d);
}

task<> lock_both(weir::mutex& first, weir::mutex& second) {
  weir::mutex_guard outer = co_await first.lock();
  co_await weir::sleep(1ms);
  weir::mutex_guard inner = co_await second.lock();
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(mutex, only_one_fiber_is_inside_also_across_awaits) {
  weir::mutex m;
  int inside = 0, most = 0, rounds = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 4; ++i) {
      s.spawn([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
          weir::mutex_guard held = co_await m.lock();
          most = std::max(most, ++inside);
          co_await weir::yield();
          --inside;
          ++rounds;
        }
      });
    }
    co_await s.join();
  });
  EXPECT_EQ(most, 1);
  EXPECT_EQ(rounds, 12);
  EXPECT_FALSE(m.locked());
}

TEST(mutex, is_handed_over_in_the_order_of_arrival_and_nobody_barges) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::mutex m;
      weir::mutex_guard held = co_await m.lock();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (const char* name : {"a", "b", "c"}) {
          s.spawn(lock_holder(m, log, name, 1ms));
          co_await settled();
        }
        held.unlock();
        EXPECT_TRUE(m.locked());  // it is a's already
        EXPECT_FALSE(m.try_lock().has_value());
        weir::mutex_guard newcomer = co_await m.lock();
        log.push_back("newcomer");
      });
    });
    EXPECT_EQ(joined(log), "a,b,c,newcomer");
  });
}

FIBER_TEST(mutex, try_lock_takes_it_at_once_or_not_at_all) {
  weir::mutex m;
  std::optional<weir::mutex_guard> first = m.try_lock();
  EXPECT_TRUE(first.has_value());
  EXPECT_FALSE(m.try_lock().has_value());
  first.reset();
  EXPECT_TRUE(m.try_lock().has_value());
  EXPECT_FALSE(m.locked());
  co_return;
}

FIBER_TEST(mutex, the_guard_moves_with_its_object_and_unlocks_once) {
  weir::mutex m, other;
  weir::mutex_guard a = co_await m.lock();
  weir::mutex_guard b = std::move(a);
  EXPECT_FALSE(static_cast<bool>(a));
  a.unlock();
  EXPECT_TRUE(m.locked());
  b = co_await other.lock();  // gives m back
  EXPECT_FALSE(m.locked());
  EXPECT_TRUE(other.locked());
  b.unlock();
  b.unlock();
  EXPECT_FALSE(other.locked());
}
TEST(mutex, a_cancelled_waiter_leaves_alone_and_the_next_one_gets_the_lock) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::mutex m;
      weir::mutex_guard held = co_await m.lock();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto leaves = s.spawn(lock_holder(m, log, "a", 1ms));
        co_await settled();
        s.spawn(lock_holder(m, log, "b", 1ms));
        co_await settled();
        leaves.cancel();
        held.unlock();
        co_await s.join();
      });
      EXPECT_FALSE(m.locked());
    });
    EXPECT_EQ(joined(log), "b");
  });
}
TEST(mutex, a_waiter_cancelled_right_after_it_was_given_the_lock_passes_it_on) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::mutex m;
      weir::mutex_guard held = co_await m.lock();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto leaves = s.spawn(lock_holder(m, log, "a", 1h));
        co_await settled();
        s.spawn(lock_holder(m, log, "b", 1ms));
        co_await settled();
        held.unlock();
        leaves.cancel();
        co_await s.idle();
        EXPECT_TRUE(leaves.peek()->is_cancelled());
      });
      EXPECT_FALSE(m.locked());
    });
    EXPECT_EQ(counted(log, "b"), 1);
  });
}

TEST(mutex, a_cancelled_holder_unlocks) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::mutex m;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto holder = s.spawn(lock_holder(m, log, "holder", 1h));
        co_await settled();
        s.spawn(lock_holder(m, log, "next", 1ms));
        co_await settled();
        EXPECT_EQ(joined(log), "holder");
        holder.cancel();
        co_await s.join();
      });
      EXPECT_FALSE(m.locked());
    });
    EXPECT_EQ(joined(log), "holder,next");
  });
}

FIBER_TEST(mutex, an_error_of_the_holder_unlocks) {
  weir::mutex m;
  auto fails = [&]() -> task<> {
    weir::mutex_guard held = co_await m.lock();
    throw boom(1);
  };
  const std::exception_ptr error = co_await attempt(fails);
  EXPECT_EQ(boom_of(error), 1);
  EXPECT_FALSE(m.locked());
}

TEST(mutex, locking_twice_in_one_fiber_is_a_deadlock_that_names_it) {
  auto twice = []() -> task<> {
    weir::mutex m("accounts");
    weir::mutex_guard first = co_await m.lock();
    weir::mutex_guard second = co_await m.lock();
  };
  auto real = thrown_by([&] { weir::run(twice); });
  EXPECT_EQ(code_of(real), errc::deadlock);
  EXPECT_TRUE(contains(what_of(real), "mutex 'accounts'")) << what_of(real);
  auto simulated = thrown_by([&] { in_order(twice); });
  EXPECT_EQ(code_of(simulated), errc::deadlock);
  EXPECT_TRUE(contains(what_of(simulated), "mutex 'accounts'")) << what_of(simulated);
}

TEST(mutex, two_fibers_that_lock_in_opposite_order_are_a_deadlock_that_names_the_cycle) {
  auto error = thrown_by([] {
    in_order([]() -> task<> {
      weir::mutex a("left"), b("right");
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(lock_both(a, b), {.name = "philosopher-1"});
        s.spawn(lock_both(b, a), {.name = "philosopher-2"});
        co_await s.join();
      });
    });
  });
  EXPECT_EQ(code_of(error), errc::deadlock);
  const std::string what = what_of(error);
  for (const char* part : {"cycle", "philosopher-1", "philosopher-2", "left", "right"})
    EXPECT_TRUE(contains(what, part)) << part << " is not in\n" << what;
}

TEST(mutex, the_cycle_holds_only_fibers_of_the_cycle) {
  auto error = thrown_by([] {
    in_order([]() -> task<> {
      weir::mutex a("left"), b("right");
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(lock_both(a, b), {.name = "philosopher-1"});
        s.spawn(lock_both(b, a), {.name = "philosopher-2"});
        co_await weir::sleep(5ms);
        s.spawn(lock_both(a, b), {.name = "bystander"});
        co_await s.join();
      });
    });
  });
  const std::string what = what_of(error);
  const auto at = what.find("cycle");
  ASSERT_NE(at, std::string::npos) << what;
  const std::string line = what.substr(at, what.find('\n', at) - at);
  EXPECT_TRUE(contains(line, "philosopher-1") && contains(line, "philosopher-2")) << line;
  EXPECT_FALSE(contains(line, "bystander")) << line;
}

FIBER_TEST_IN_EVERY_ORDER(mutex, the_guard_may_outlive_the_fiber_that_locked) {
  weir::mutex m;
  weir::mutex_guard kept;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> { kept = co_await m.lock(); });
    co_await s.join();
  });
  EXPECT_TRUE(m.locked());
  kept.unlock();
  EXPECT_FALSE(m.locked());
  EXPECT_TRUE(m.try_lock().has_value());
}
