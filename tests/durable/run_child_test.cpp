// SPDX-License-Identifier: MIT
// Handlers and their children: futures, spawning, the end of the body, errors.
#include "durable/support/sources.hpp"

using namespace durable_test;

TEST(durable_handler, gives_its_value_without_a_single_command) {
  const stage on;
  EXPECT_EQ(ending(on, [](int n) -> task<std::string> { co_return std::to_string(n); }), "1");
}

TEST(durable_handler, takes_nothing_or_its_root_scope_or_both) {
  const stage on;
  session(
      on,
      [](durable::engine& e) {
        e.add("none", []() -> task<int> { co_return 1; });
        e.add("scope", [](weir::scope& s) -> task<int> { co_return co_await s.spawn(nap(1h, 2)); });
        e.add("both", [](weir::scope& s, int n) -> task<int> {
          co_return n + co_await s.spawn(nap(1h, 2));
        });
        e.add("void", [](int) -> task<> { co_await weir::sleep(1h); });
      },
      [](durable::engine& e) -> task<> {
        auto none = co_await e.start<int>("none", {.id = "1"});
        auto scope = co_await e.start<int>("scope", {.id = "2"});
        auto both = co_await e.start<int>("both", {.id = "3"}, 5);
        auto nothing = co_await e.start<void>("void", {.id = "4"}, 5);
        EXPECT_EQ(co_await none.result(), 1);
        EXPECT_EQ(co_await scope.result(), 2);
        EXPECT_EQ(co_await both.result(), 7);
        co_await nothing.result();
      });
}

TEST(durable_handler, calls_tasks_in_tasks_a_hundred_deep) {
  struct nest {
    static task<int> down(int n) {
      if (n == 0) co_return co_await give("bottom", 1);
      co_return co_await down(n - 1) + 1;
    }
  };
  survives([](int) -> task<std::string> { co_return std::to_string(co_await nest::down(100)); },
           "101");
}

TEST(durable_handler, carries_the_error_of_a_nested_task_out) {
  auto handler = [](int) -> task<std::string> {
    auto inner = []() -> task<int> { throw test_support::boom(7); };
    co_await give("before", 0);
    co_return std::to_string(co_await inner());
  };
  survives(handler, "failed: boom 7");
}

TEST(durable_child, futures_of_children_give_the_same_again_and_again) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto f = s.spawn(give_after(1h, "f", 2));
          const int a = co_await f;
          const int b = co_await f;
          co_return row(a, b, f.done());
        });
      },
      "2,2,1");
}

TEST(durable_child, two_run_beside_each_other_and_the_second_may_end_first) {
  survives(
      [](int) -> task<std::string> {
        std::vector<int> order;
        auto runs = [&](weir::duration d, int n) -> task<> {
          co_await weir::sleep(d);
          order.push_back(n);
          (void)co_await give("ran " + std::to_string(n), n);
        };
        co_await weir::all(runs(2h, 1), runs(1h, 2));
        co_return text(order);
      },
      "2,1");
}

TEST(durable_child, that_nobody_awaits_is_joined_at_the_end_of_the_handler) {
  // on-main-exit: the root scope joins ordinary children.
  survives(
      [](weir::scope& s, int) -> task<std::string> {
        s.spawn(give_after(5h, "child", 0));
        co_await give("main", 0);
        co_return "main";
      },
      "main", at_once);
}

TEST(durable_child, of_the_root_scope_may_outlive_the_body_by_days_and_lives) {
  auto handler = [](weir::scope& s, int) -> task<std::string> {
    s.spawn(give_after(48h, "child", 0));
    co_return "main";
  };
  const stage on;
  EXPECT_EQ(life([&] {
              session_of(on, handler, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                co_await weir::sleep(1h);
                EXPECT_TRUE(e.get("r")->state != durable::run_state::completed);
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 1h), "main"); });
  EXPECT_EQ(times("child"), 1);
}

TEST(durable_child, whose_failure_nobody_sees_fails_the_run) {
  // Raised at the end of its scope.
  survives(
      [](weir::scope& s, int) -> task<std::string> {
        s.spawn(fail_after(2h, "broken"));
        co_await give("main", 0);
        co_return "main";
      },
      "failed: broken");
}

TEST(durable_child, an_error_of_the_body_cancels_the_children_with_their_cleanup) {
  survives(
      [](weir::scope& s, int) -> task<std::string> {
        s.spawn([]() -> task<> {
          co_await weir::with_scope([](weir::scope& inner) -> task<> {
            inner.defer([]() -> task<> { (void)co_await give("undo", 0); });
            co_await weir::sleep(1000h);
          });
        });
        co_await weir::sleep(1h);
        throw weir::terminal_error("body");
      },
      "failed: body");
}

TEST(durable_child, a_background_one_ends_with_the_handler) {
  survives(
      [](weir::scope& s, int) -> task<std::string> {
        int beats = 0;
        auto beat = [&]() -> task<> {
          for (;;) {
            co_await weir::sleep(1h);
            ++beats;
          }
        };
        s.background(beat);
        co_await weir::sleep(150min);
        co_await give("main", 0);
        co_return std::to_string(beats);
      },
      "2", at_once);
}

TEST(durable_child, begins_in_the_order_of_spawning_after_its_parent_gave_up_its_turn) {
  survives(
      [](int) -> task<std::string> {
        std::string order;
        co_return co_await in_scope([&](weir::scope& s) -> task<std::string> {
          auto says = [&](char c) -> task<> {
            order += c;
            co_return;
          };
          auto a = s.spawn([&] { return says('a'); });
          auto b = s.spawn([&] { return says('b'); });
          order += 'p';
          co_await b;
          co_await give("after", 0);
          co_return order;
        });
      },
      "pab");
}

TEST(durable_child, a_producer_wakes_its_consumers_with_one_value) {
  survives(
      [](int) -> task<std::string> {
        weir::oneshot<int> o;
        auto produces = [&]() -> task<> { o.send(co_await give_after(1h, "produce", 5)); };
        auto consumes = [&](int plus) -> task<int> { co_return co_await o.receive() + plus; };
        auto [a, b, c, d] = co_await weir::all(consumes(1), produces(), consumes(2), consumes(3));
        (void)b;
        co_await give("after", 0);
        co_return row(a, c, d);
      },
      "6,7,8");
}

TEST(durable_child, fan_out_then_fan_in) {
  survives(
      [](int) -> task<std::string> {
        std::vector<task<int>> all;
        for (int i = 0; i < 8; ++i) {
          all.push_back(give_after(1min * (1 + i * 3 % 8), "part " + std::to_string(i), i));
        }
        const auto parts = co_await weir::all(std::move(all));
        co_return text(parts);
      },
      "0,1,2,3,4,5,6,7");
}

TEST(durable_child, children_that_spawn_children_give_counted_values) {
  struct family {
    static task<int> member(int level) {
      if (level == 0) co_return co_await nap(1min, 1);
      co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
        std::vector<weir::child<int>> children;
        for (int i = 0; i < 3; ++i) children.push_back(s.spawn(member(level - 1)));
        int sum = 0;
        for (auto& child : children) sum += co_await child;
        co_return sum;
      });
    }
  };
  survives(
      [](int) -> task<std::string> {
        const int leaves = co_await family::member(3);
        co_await give("after", 0);
        co_return std::to_string(leaves);
      },
      "27");
}

TEST(durable_child, one_that_throws_in_an_isolating_scope_leaves_its_siblings_alone) {
  survives(
      [](int) -> task<std::string> {
        auto body = [](weir::scope& s) -> task<std::string> {
          auto bad = s.spawn(fail_after(1h, "broken"));
          auto good = s.spawn(give_after(2h, "good", 1));
          const int v = co_await good;
          const std::string heard = co_await value_or(weir::future<int>(bad), "broken");
          co_return heard + std::to_string(v);
        };
        co_return co_await weir::with_scope({.failure = weir::failure::isolate}, body);
      },
      "!broken1");
}

TEST(durable_child, awaiting_one_that_has_ended_does_not_give_up_the_turn_for_the_journal) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto quick = s.spawn(test_support::ready(1));
          co_await weir::sleep(1h);
          const bool done = quick.done();
          const int v = co_await quick;
          co_await give("after", 0);
          co_return row(done, v);
        });
      },
      "1,1");
}

TEST(durable_child, many_race_each_other_from_different_fibers_on_one_source) {
  // B: adversarial.test, many simultaneous AwaitAnys.
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(1h, "shared", 3));
          std::vector<task<int>> all;
          for (int i = 0; i < 20; ++i) {
            all.push_back([](int n) -> task<int> {
              const auto won = co_await weir::race(promised("shared"), weir::sleep(1h * (2 + n)));
              co_return static_cast<int>(won.index());
            }(i));
          }
          const auto won = co_await weir::all(std::move(all));
          co_await give("after", 0);
          int sum = 0;
          for (const int w : won) sum += w;
          co_return std::to_string(won.size()) + " " + std::to_string(sum);
        });
      },
      "20 0");
}

TEST(durable_child, a_race_won_at_once_is_followed_by_journaled_waits) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto done = s.spawn(test_support::ready(1));
          co_await weir::yield();
          const int won = co_await weir::race(done, nap(1h, 2));
          const int a = co_await give_after(1h, "a", 3);
          const int b = co_await give_after(1h, "b", 4);
          co_return row(won, a, b);
        });
      },
      "1,3,4");
}
