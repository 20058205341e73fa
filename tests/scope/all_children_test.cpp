// SPDX-License-Identifier: MIT
// The arms of `all` and the calls of `parallel_map` begin depth first: what that costs, what can be
// seen of it, and that it changes nothing else. On the scheduler of production.
#include <algorithm>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "scope_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;
using weir::task;

namespace {

template <class Op>
void run_on_test_clock(Op op) {
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, std::move(op));
  EXPECT_EQ(weir::live().fibers, 0);
}

long calls = 0;
long most_alive = 0;

void note_call() {
  ++calls;
  most_alive = std::max(most_alive, static_cast<long>(weir::live().fibers));
}

task<long> fib(int n) {
  note_call();
  if (n < 2) co_return n;
  const auto [a, b] = co_await weir::all(fib(n - 1), fib(n - 2));
  co_return a + b;
}

task<long> plain_fib(int n) {
  if (n < 2) co_return n;
  const auto [a, b] = co_await weir::all(plain_fib(n - 1), plain_fib(n - 2));
  co_return a + b;
}

/// A tree of `arms` calls per call.
task<long> tree(int depth, int arms) {
  note_call();
  if (depth == 0) co_return 1;
  std::vector<int> numbers(static_cast<std::size_t>(arms), depth - 1);
  auto call = [arms](int below) { return tree(below, arms); };
  const auto counts = co_await weir::parallel_map(numbers, call, 2);
  co_return std::accumulate(counts.begin(), counts.end(), 1L);
}

task<> append(std::string& to, std::string what) {
  to += what;
  co_return;
}

}  // namespace

TEST(all_children, a_recursion_keeps_only_the_fibers_of_one_path_alive) {
  run_on_test_clock([]() -> task<> {
    calls = most_alive = 0;
    const long result = co_await fib(20);
    EXPECT_EQ(result, 6765);
    EXPECT_EQ(calls, 21891);
    EXPECT_LE(most_alive, 2 * 20 + 1);
  });
}

TEST(all_children, the_budget_of_several_recursions_is_shared_fairly) {
  run_on_test_clock([]() -> task<> {
    calls = most_alive = 0;
    int turns = 0;
    bool ended = false;
    auto watcher = [&]() -> task<> {
      while (!ended) {
        ++turns;
        co_await weir::yield();
      }
    };
    auto both = [&]() -> task<> {
      co_await weir::all(fib(16), fib(16));
      ended = true;
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(fib(15));
      s.spawn(fib(15));
      s.spawn(watcher);
      s.spawn(both);
      co_return;
    });
    EXPECT_LE(most_alive, 3 * (2 * 17 + 1) + 4);
    EXPECT_GE(turns, 2 * 3193 / 256);  // each call costs at least one await of the budget
  });
}

TEST(all_children, the_calls_of_parallel_map_begin_depth_first_too) {
  run_on_test_clock([]() -> task<> {
    calls = most_alive = 0;
    const long result = co_await tree(8, 3);
    EXPECT_EQ(result, 9841);
    EXPECT_EQ(calls, 9841);
    EXPECT_LE(most_alive, 8 + 2);
  });
}

TEST(all_children, a_recursion_allocates_nothing_once_the_caches_are_warm) {
  if (test_support::sanitized) return;
  run_on_test_clock([]() -> task<> {
    (void)co_await plain_fib(12);
    test_support::allocations = 0;
    test_support::armed = true;
    (void)co_await plain_fib(12);
    test_support::armed = false;
    EXPECT_EQ(test_support::allocations, 0);
  });
}

TEST(all_children, the_arms_run_in_order_before_other_ready_fibers_until_each_waits) {
  run_on_test_clock([]() -> task<> {
    std::string order;
    auto inner = [&](std::string name) -> task<> {
      order += name + "1 ";
      co_await weir::all(append(order, name + "x "), append(order, name + "y "));
      order += name + "2 ";
      co_await weir::yield();
      order += name + "3 ";
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(append(order, "first "));
      s.spawn([&]() -> task<> {
        co_await weir::all(inner("a"), inner("b"));
        order += "end ";
      });
      s.spawn(append(order, "other "));
      co_return;
    });
    EXPECT_EQ(order, "first a1 ax ay a2 b1 bx by b2 other a3 b3 end ");
  });
}

TEST(all_children, spawn_still_goes_to_the_end_of_the_ready_queue) {
  run_on_test_clock([]() -> task<> {
    std::string order;
    auto spawner = [&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(append(order, "spawned "));
        order += "body ";
        co_return;
      });
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> { co_await weir::all(spawner(), append(order, "arm ")); });
      s.spawn(append(order, "other "));
      co_return;
    });
    EXPECT_EQ(order, "body arm other spawned ");
  });
}

TEST(all_children, an_arm_that_fails_keeps_the_later_ones_from_beginning) {
  run_on_test_clock([]() -> task<> {
    std::string order;
    auto fails = []() -> task<> {
      throw boom(1);
      co_return;
    };
    int caught = 0;
    try {
      co_await weir::all(append(order, "before "), fails, append(order, "after "));
    } catch (const boom& e) {
      caught = e.n;
    }
    EXPECT_EQ(caught, 1);
    EXPECT_EQ(order, "before ");
  });
}

TEST(all_children, the_first_failure_is_thrown_although_an_earlier_arm_ends_cancelled) {
  run_on_test_clock([]() -> task<> {
    auto fails = []() -> task<> {
      throw boom(2);
      co_return;
    };
    int caught = 0;
    try {
      co_await weir::all(sleep_for(1h), fails, sleep_for(1h));
    } catch (const boom& e) {
      caught = e.n;
    }
    EXPECT_EQ(caught, 2);
  });
}

TEST(all_children, a_cancellation_from_inside_keeps_later_arms_from_beginning) {
  run_on_test_clock([]() -> task<> {
    std::string order;
    auto body = [&](weir::scope& s) -> task<> {
      auto cancels = [&]() -> task<> {
        order += "cancels ";
        s.cancel("enough");
        co_await weir::yield();
        order += "never ";
      };
      auto outer = [&]() -> task<> {
        co_await weir::all(cancels, append(order, "never "));
        order += "never ";
      };
      co_await weir::all(outer(), append(order, "never "));
    };
    const auto out = co_await weir::settle(weir::with_scope(body));
    EXPECT_TRUE(out.is_cancelled());
    EXPECT_EQ(order, "cancels ");
  });
}

TEST(all_children, a_deadline_ends_a_recursion_that_waits_at_its_leaves) {
  run_on_test_clock([]() -> task<> {
    struct waiting {
      static task<> tree(int depth) {
        if (depth == 0) {
          co_await weir::sleep(1h);
        } else {
          co_await weir::all(tree(depth - 1), tree(depth - 1));
        }
      }
    };
    bool timed_out = false;
    try {
      co_await weir::with_timeout(5ms, waiting::tree(6));
    } catch (const weir::timeout_error&) {
      timed_out = true;
    }
    EXPECT_TRUE(timed_out);
    EXPECT_EQ(weir::live().fibers, 1);
  });
}

TEST(all_children, an_endless_recursion_does_not_starve_others_or_the_clock) {
  run_on_test_clock([]() -> task<> {
    auto nothing = []() -> task<> { co_return; };
    bool ended = false;
    auto endless = [&]() -> task<> {
      while (!ended) co_await weir::all(nothing, nothing);
    };
    auto ends = [&]() -> task<> {
      for (int i = 0; i < 10; ++i) co_await weir::yield();
      ended = true;
    };
    co_await weir::all(endless, ends);
    EXPECT_TRUE(ended);
  });
}

TEST(all_children, a_dump_from_inside_shows_the_path) {
  run_on_test_clock([]() -> task<> {
    std::ostringstream out;
    auto dumps = [&]() -> task<> {
      weir::dump(out);
      co_return;
    };
    auto middle = [&]() -> task<> { co_await weir::all(dumps, sleep_for(1ms)); };
    co_await weir::all(middle, sleep_for(2ms));
    const std::string text = out.str();
    EXPECT_NE(text.find("all of 2 (future, future)"), std::string::npos) << text;
    EXPECT_NE(text.find(", running"), std::string::npos) << text;
    EXPECT_NE(text.find(", not started"), std::string::npos) << text;
  });
}

TEST(all_children, locals_are_those_of_the_caller_at_every_depth) {
  static weir::local<int> depth{0};
  struct nested {
    static task<int> deeper(int n) {
      if (n == 0) co_return depth.get();
      auto below = [n] { return weir::with_local(depth, depth.get() + 1, deeper(n - 1)); };
      const auto [a, b] = co_await weir::all(below, below);
      co_return a + b;
    }
  };
  run_on_test_clock([]() -> task<> {
    const int sum = co_await nested::deeper(6);
    EXPECT_EQ(sum, 64 * 6);
  });
}
