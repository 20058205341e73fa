// SPDX-License-Identifier: MIT
// The order in which the fibers of a run execute, in every replay, and long runs.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

/// Handlers with thousands of fibers have one crash: at their end.
template <class H>
void survives_at_the_end(H handler, const std::string& want) {
  const stage on;
  life_that_dies_in("end", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler, 100h), want); });
  EXPECT_EQ(times("end"), 2);
}

}  // namespace

TEST(durable_order, siblings_run_to_their_ends_before_the_parent_goes_on) {
  survives(
      [](int) -> task<std::string> {
        std::string order;
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          auto says = [&](char c) -> task<> {
            order += c;
            co_return;
          };
          s.spawn([&] { return says('a'); });
          s.spawn([&] { return says('b'); });
          co_await weir::sleep(1h);
          order += 'p';
        });
        co_await give("after", 0);
        co_return order;
      },
      "abp");
}

TEST(durable_order, one_completion_is_drained_before_the_next_is_seen) {
  // Both timers are overdue on recovery, yet what follows the first comes before the second.
  survives(
      [](int) -> task<std::string> {
        std::string order;
        weir::oneshot<int> o;
        auto first = [&]() -> task<> {
          co_await weir::sleep(1h);
          order += "1";
          o.send(1);
        };
        auto follows = [&]() -> task<> {
          (void)co_await o.receive();
          order += "a";
          co_await weir::yield();
          order += "b";
        };
        auto second = [&]() -> task<> {
          co_await weir::sleep(61min);
          order += "2";
        };
        (void)co_await give("before", 0);
        co_await weir::all(second(), follows(), first());
        co_await give("after", 0);
        co_return order;
      },
      "1ab2");
}

TEST(durable_order, results_are_in_input_order_even_when_settled_in_reverse) {
  survives(
      [](int) -> task<std::string> {
        std::vector<task<int>> all;
        for (int i = 0; i < 100; ++i) all.push_back(nap(1min * (100 - i), i));
        const auto values = co_await weir::all(std::move(all));
        co_await give("after", 0);
        co_return std::is_sorted(values.begin(), values.end()) ? "in order" : text(values);
      },
      "in order");
}

TEST(durable_order, a_tree_of_children_runs_every_leaf_once) {
  survives(
      [](int) -> task<std::string> {
        int leaves = 0;
        auto branch = [&](int n) -> task<> {
          co_await weir::with_scope([&](weir::scope& s) -> task<> {
            for (int i = 0; i < 4; ++i) {
              s.spawn([&leaves, n, i]() -> task<> {
                co_await weir::sleep(1min * (n + i));
                ++leaves;
              });
            }
            co_await s.join();
          });
        };
        co_await weir::all(branch(1), branch(2), branch(3));
        co_await give("after", 0);
        co_return std::to_string(leaves);
      },
      "12");
}

TEST(durable_order, a_race_lost_again_and_again_leaves_nothing_behind) {
  // B: stress.test, nested race in a loop with fresh futures each iteration.
  auto handler = [](int) -> task<std::string> {
    int sum = 0;
    for (int i = 0; i < 300; ++i) {
      sum += co_await weir::race(tasks(nap(2min, 0), nap(1min, 1), nap(3min, 2)));
    }
    co_await give("end", 0);
    co_return std::to_string(sum);
  };
  survives_at_the_end(handler, "300");
}

TEST(durable_order, ten_thousand_children_of_one_run) {
  auto handler = [](int) -> task<std::string> {
    const long sum = co_await weir::with_scope([](weir::scope& s) -> task<long> {
      std::vector<weir::child<int>> children;
      for (int i = 0; i < 10'000; ++i) children.push_back(s.spawn(test_support::ready(i)));
      long all = 0;
      for (auto& child : children) all += co_await child;
      co_return all;
    });
    co_await give("end", 0);
    co_return std::to_string(sum);
  };
  survives_at_the_end(handler, "49995000");
}

TEST(durable_order, a_thousand_children_with_a_timer_each) {
  auto handler = [](int) -> task<std::string> {
    std::vector<task<int>> all;
    for (int i = 0; i < 1000; ++i) all.push_back(nap(1s * (1 + i * 7 % 1000), i));
    const auto values = co_await weir::all(std::move(all));
    co_await give("end", 0);
    co_return std::to_string(values.size());
  };
  survives_at_the_end(handler, "1000");
}

TEST(durable_order, a_thousand_timers_one_after_another) {
  auto handler = [](int) -> task<std::string> {
    for (int i = 0; i < 1000; ++i) co_await weir::sleep(1min);
    co_await give("end", 0);
    co_return "done";
  };
  survives_at_the_end(handler, "done");
}

TEST(durable_order, children_spawned_and_awaited_five_hundred_times) {
  auto handler = [](int) -> task<std::string> {
    int sum = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 500; ++i) sum += co_await s.spawn(nap(1s, 1));
    });
    co_await give("end", 0);
    co_return std::to_string(sum);
  };
  survives_at_the_end(handler, "500");
}

TEST(durable_order, commands_are_counted_per_fiber_so_other_timing_between_fibers_is_no_mismatch) {
  // behaviours 2.4: command identity is (fiber path, sequence in fiber).
  static bool second_life = false;
  auto handler = [](int) -> task<std::string> {
    auto worker = [](const char* name, bool quick) -> task<int> {
      int sum = 0;
      for (int i = 0; i < 3; ++i) {
        auto body = [&]() -> task<int> {
          co_await weir::sleep(quick != second_life ? 1min : 10min);
          note(name + std::to_string(i));
          co_return i;
        };
        sum += co_await weir::step(name, body);
      }
      co_return sum;
    };
    co_return co_await in_scope([&](weir::scope& s) -> task<std::string> {
      auto slow = s.spawn(worker("slow ", false));
      auto quick = s.spawn(worker("quick ", true));
      const int a = co_await quick;
      co_await give("half", 0);
      co_return row(a, co_await slow);
    });
  };
  const stage on;
  life_that_dies_in("half", [&] { (void)ending(on, handler); });
  whole_life([&] {
    second_life = true;
    EXPECT_EQ(ending(on, handler), "3,3");
  });
  EXPECT_EQ(noted("quick "), (lines{"0", "1", "2"}));
}

TEST(durable_order, one_handler_runs_many_times_at_once_without_mixing) {
  // B: basic.test, running the same op concurrently gives independent executions.
  auto handler = [](int n) -> task<int> {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
      sum += co_await weir::step("add", [&] { return n; });
      co_await weir::sleep(1min * (1 + n % 7));
    }
    co_return sum;
  };
  const stage on;
  session_of(on, handler, [](durable::engine& e) -> task<> {
    std::vector<durable::run_handle<int>> runs;
    for (int n = 0; n < 50; ++n) {
      const std::string id = "r" + std::to_string(n);
      runs.push_back(co_await e.start<int>("h", {.id = id}, n));
    }
    for (int n = 0; n < 50; ++n) {
      EXPECT_EQ(co_await runs[static_cast<std::size_t>(n)].result(), 3 * n);
    }
  });
}
