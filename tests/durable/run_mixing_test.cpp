// SPDX-License-Identifier: MIT
// Combinators of combinators and children of children, over a journal.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

/// A tree of `all`: leaves are journaled sleeps of various lengths, the last ones are steps.
task<int> tree_of_all(int depth, int number) {
  if (depth == 0) {
    if (number % 8 == 7) co_return co_await give("leaf " + std::to_string(number), number);
    co_return co_await nap(std::chrono::minutes(1 + number * 7 % 13), number);
  }
  auto [a, b] = co_await weir::all(tree_of_all(depth - 1, number * 2),
                                   tree_of_all(depth - 1, number * 2 + 1));
  co_return a + b;
}

/// A tree of `race` with three branches; the leaf of the shortest sleep wins.
task<int> tree_of_races(int depth, int number) {
  if (depth == 0) co_return co_await nap(std::chrono::minutes(1 + (number * 11 + 5) % 27), number);
  const int first = number * 3;
  co_return co_await weir::race(tasks(tree_of_races(depth - 1, first),
                                      tree_of_races(depth - 1, first + 1),
                                      tree_of_races(depth - 1, first + 2)));
}

task<int> alternating(int depth, int number) {
  if (depth == 0) co_return co_await nap(std::chrono::minutes(1 + number * 5 % 17), number);
  if (depth % 2 == 0) {
    auto [a, b] = co_await weir::all(alternating(depth - 1, number * 2),
                                     alternating(depth - 1, number * 2 + 1));
    co_return a + b;
  }
  co_return co_await weir::race(
      tasks(alternating(depth - 1, number * 2), alternating(depth - 1, number * 2 + 1)));
}

task<int> chain(int depth) {
  if (depth == 0) co_return co_await give("deepest", 1);
  co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
    auto child = s.spawn(chain(depth - 1));
    co_return co_await child + 1;
  });
}

}  // namespace

TEST(durable_mixing, alternating_sources_in_one_all_keep_their_order) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(1h, "a", 1));
          s.spawn(resolve_after(4h, "c", 3));
          auto b = s.spawn(give_after(3h, "b", 2));
          auto d = s.spawn(nap(2h, 4));
          auto [v, w, x, y] = co_await weir::all(promised("a"), b, promised("c"), d);
          co_return row(v, w, x, y);
        });
      },
      "1,2,3,4");
}

TEST(durable_mixing, alternating_sources_in_one_race_are_won_by_a_child) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          s.spawn(resolve_after(2h, "a", 1));
          auto b = s.spawn(nap(1h, 2));
          s.spawn(resolve_after(4h, "c", 3));
          const int won = co_await weir::race(promised("a"), b, promised("c"));
          co_await give("after", 0);
          co_return std::to_string(won);
        });
      },
      "2");
}

TEST(durable_mixing, a_future_of_the_parent_is_read_by_several_children) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto source = s.spawn(give_after(1h, "source", 7));
          weir::future<int> shared = source;
          auto reads = [&](int plus) -> task<int> { co_return co_await shared + plus; };
          auto [a, b, c] = co_await weir::all(reads(1), reads(2), reads(3));
          co_await give("after", 0);
          co_return row(a, b, c, co_await shared);
        });
      },
      "8,9,10,7");
}

TEST(durable_mixing, a_child_hands_a_future_of_its_own_work_to_its_parent) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto inner = [&]() -> task<weir::future<int>> {
            auto child = s.spawn(give_after(2h, "inner", 5));
            co_return weir::future<int>(child);
          };
          auto outer = s.spawn(inner);
          weir::future<int> handed = co_await outer;
          co_await give("handed", 0);
          co_return std::to_string(co_await handed);
        });
      },
      "5");
}

TEST(durable_mixing, all_of_races) {
  survives(
      [](int) -> task<std::string> {
        auto [a, b, c] = co_await weir::all(weir::race(tasks(nap(2h, 1), nap(1h, 2))),
                                            weir::race(tasks(nap(3h, 3), nap(4h, 4))),
                                            weir::race(tasks(test_support::ready(5), nap(1h, 6))));
        co_await give("after", 0);
        co_return row(a, b, c);
      },
      "2,3,5");
}

TEST(durable_mixing, race_of_alls) {
  survives(
      [](int) -> task<std::string> {
        auto sum = [](weir::duration a, weir::duration b, int value) -> task<int> {
          auto [x, y] = co_await weir::all(nap(a, value), nap(b, value));
          co_return x + y;
        };
        const int won = co_await weir::race(tasks(sum(1h, 5h, 1), sum(2h, 3h, 2), sum(4h, 4h, 3)));
        co_await give("after", 0);
        co_return std::to_string(won);
      },
      "4");
}

TEST(durable_mixing, race_of_races_of_races) {
  survives(
      [](int) -> task<std::string> {
        const int won = co_await tree_of_races(3, 0);
        co_await give("after " + std::to_string(won), 0);
        co_return std::to_string(won);
      },
      "2");  // (2 * 11 + 5) % 27 == 0 is the shortest of the 27
}

TEST(durable_mixing, a_matrix_of_alls) {
  survives(
      [](int) -> task<std::string> {
        std::vector<task<std::vector<int>>> rows;
        for (int r = 0; r < 3; ++r) {
          std::vector<task<int>> cells;
          for (int c = 0; c < 3; ++c) cells.push_back(nap(1h * (1 + (r + c) % 3), r * 3 + c));
          rows.push_back([](std::vector<task<int>> v) -> task<std::vector<int>> {
            co_return co_await weir::all(std::move(v));
          }(std::move(cells)));
        }
        const auto all = co_await weir::all(std::move(rows));
        co_await give("after", 0);
        std::string shown;
        for (const auto& one : all) shown += text(one) + " ";
        co_return shown;
      },
      "0,1,2 3,4,5 6,7,8 ");
}

TEST(durable_mixing, a_balanced_tree_of_alls_with_32_leaves) {
  survives([](int) -> task<std::string> { co_return std::to_string(co_await tree_of_all(5, 1)); },
           std::to_string((32 + 63) * 32 / 2), at_once_and_late, steps::concurrent);
}

TEST(durable_mixing, alternating_levels_of_all_and_race_give_the_same_again) {
  auto handler = [](int) -> task<std::string> {
    const int v = co_await alternating(4, 1);
    co_await give("after", 0);
    co_return std::to_string(v);
  };
  std::string straight;
  {
    const stage on;
    straight = ending(on, handler);
  }
  survives(handler, straight);
}

TEST(durable_mixing, a_chain_of_children_thirty_deep) {
  survives([](int) -> task<std::string> { co_return std::to_string(co_await chain(30)); }, "31");
}

TEST(durable_mixing, one_future_awaited_directly_and_inside_an_all) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto f = s.spawn(give_after(1h, "f", 3));
          const int direct = co_await f;
          auto [again, other] = co_await weir::all(f, give("other", 4));
          co_return row(direct, again, other, co_await f);
        });
      },
      "3,3,4,3");
}

TEST(durable_mixing, race_of_a_slow_all_and_a_quick_step) {
  survives(
      [](int) -> task<std::string> {
        auto slow = []() -> task<int> {
          auto [a, b] = co_await weir::all(nap(5h, 1), nap(6h, 2));
          co_return a + b;
        };
        const int won = co_await weir::race(tasks(slow(), give_after(1h, "quick", 9)));
        co_await give("after", 0);
        co_return std::to_string(won);
      },
      "9", at_once);
}

TEST(durable_mixing, a_pipeline_of_children_into_all_into_race) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          auto first = s.spawn(give_after(1h, "first", 1));
          auto second = s.spawn([&]() -> task<int> { co_return co_await first + 1; });
          auto both = s.spawn([&]() -> task<int> {
            auto [a, b] = co_await weir::all(first, second);
            co_return a * 10 + b;
          });
          const int won = co_await weir::race(both, s.spawn(nap(2h, 0)));
          co_await give("after", 0);
          co_return std::to_string(won);
        });
      },
      "12");
}

TEST(durable_mixing, workers_of_a_pool_each_with_an_all_of_their_own) {
  survives(
      [](int) -> task<std::string> {
        auto worker = [](int n) -> task<int> {
          auto [a, b] = co_await weir::all(nap(1min * (5 - n), n),
                                           give("worker " + std::to_string(n), n * 10));
          co_return a + b;
        };
        std::vector<task<int>> all;
        for (int n = 0; n < 4; ++n) all.push_back(worker(n));
        const auto sums = co_await weir::all(std::move(all));
        co_return text(sums);
      },
      "0,11,22,33", at_once_and_late, steps::concurrent);
}

TEST(durable_mixing, promises_resolved_in_any_order_under_a_deep_all) {
  survives(
      [](int) -> task<std::string> {
        co_return co_await in_scope([](weir::scope& s) -> task<std::string> {
          for (int i = 0; i < 6; ++i) {
            s.spawn(resolve_after(1min * (1 + i * 5 % 6), "p" + std::to_string(i), i));
          }
          auto pair = [](int i) -> task<int> {
            auto [a, b] = co_await weir::all(promised("p" + std::to_string(i)),
                                             promised("p" + std::to_string(i + 1)));
            co_return a * 10 + b;
          };
          auto [a, b, c] = co_await weir::all(pair(0), pair(2), pair(4));
          co_await give("after", 0);
          co_return row(a, b, c);
        });
      },
      "1,23,45");
}
