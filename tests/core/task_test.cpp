// SPDX-License-Identifier: MIT
// task: lazy, move-only, one run, results of every kind of type, and frames that are destroyed
// exactly once on every path.
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

/// A type with no default constructor, copy or assignment.
class strict {
 public:
  explicit strict(int n) : n_(n) {}
  strict(strict&& other) noexcept : n_(std::exchange(other.n_, -1)) {}
  strict& operator=(strict&&) = delete;
  int get() const { return n_; }

 private:
  int n_;
};

struct alignas(16) wide {
  std::array<std::byte, 192> bytes{};
  int n = 0;
};

bool aligned(const wide& w) { return reinterpret_cast<std::uintptr_t>(&w) % 16 == 0; }

/// Gives a value at once, or after a suspension.
template <class Make>
auto give(bool suspend, Make make) -> task<decltype(make())> {
  if (suspend) co_await weir::sleep(1ms);
  co_return make();
}

task<> holds_token(std::shared_ptr<int> token, bool* ran) {
  *ran = true;
  co_await weir::yield();
  (void)token;
}

task<int> sum_to(int n) {
  if (n == 0) co_return 0;
  int rest = co_await sum_to(n - 1);
  co_return rest + n;
}

}  // namespace

TEST(task, it_is_move_only_and_nothing_runs_before_it_is_awaited) {
  static_assert(!std::is_copy_constructible_v<task<int>>);
  static_assert(std::is_move_constructible_v<task<int>>);
  static_assert(std::is_same_v<task<>, task<void>>);
  auto token = std::make_shared<int>(1);
  bool ran = false;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    auto t = holds_token(token, &ran);
    co_await weir::sleep(1ms);
    EXPECT_FALSE(ran);
    auto moved = std::move(t);
    co_await std::move(moved);
    EXPECT_TRUE(ran);
  });
  EXPECT_EQ(token.use_count(), 1);
}

TEST(task, one_that_is_never_awaited_never_runs_and_frees_its_arguments) {
  auto token = std::make_shared<int>(1);
  bool ran = false;
  {
    [[maybe_unused]] auto outside = holds_token(token, &ran);
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    {
      [[maybe_unused]] auto inside = holds_token(token, &ran);
    }
    EXPECT_EQ(token.use_count(), 1);
    co_return;
  });
  EXPECT_FALSE(ran);
}

FIBER_TEST(task, results_of_many_types_arrive_with_and_without_a_suspension) {
  for (int i = 0; i < 2; ++i) {
    bool suspend = i == 1;
    bool flag = co_await give(suspend, [] { return true; });
    EXPECT_TRUE(flag);
    std::string text = co_await give(suspend, [] { return std::string(100, 'x'); });
    EXPECT_EQ(text.size(), 100u);
    auto box = co_await give(suspend, [] { return std::make_unique<int>(3); });
    EXPECT_EQ(*box, 3);
    strict one = co_await give(suspend, [] { return strict(4); });
    EXPECT_EQ(one.get(), 4);
    auto many = co_await give(suspend, [] { return std::array<double, 64>{1.5}; });
    EXPECT_EQ(many[0], 1.5);
    int target = 5;
    auto reference = co_await give(suspend, [&] { return std::ref(target); });
    reference.get() = 6;
    EXPECT_EQ(target, 6);
    auto error = co_await give(suspend, [] { return std::make_exception_ptr(boom(7)); });
    EXPECT_EQ(boom_of(error), 7);  // an error as a value is a value
  }
}

FIBER_TEST(task, results_and_locals_of_the_largest_alignment_are_aligned) {
  auto make = []() -> task<wide> {
    wide local;
    EXPECT_TRUE(aligned(local));
    co_await weir::sleep(1ms);
    EXPECT_TRUE(aligned(local));
    local.n = 9;
    co_return local;
  };
  wide got = co_await make();
  EXPECT_EQ(got.n, 9);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(make);
    const wide& seen = co_await child;
    EXPECT_TRUE(aligned(seen));
    EXPECT_EQ(seen.n, 9);
  });
  auto o = co_await weir::settle(make());
  EXPECT_TRUE(aligned(o.value()));
}

FIBER_TEST(task, children_settle_and_race_pass_types_without_default_constructor) {
  auto make = [](int n) -> task<strict> {
    co_await weir::sleep(n * 1ms);
    co_return strict(n);
  };
  auto o = co_await weir::settle(make(1));
  EXPECT_EQ(o.value().get(), 1);
  strict raced = co_await weir::race(make(2), make(3));
  EXPECT_EQ(raced.get(), 2);
  auto both = co_await weir::all(make(4), make(5));
  EXPECT_EQ(std::get<0>(both).get() * 10 + std::get<1>(both).get(), 45);
  std::vector<task<strict>> ops;
  ops.push_back(make(6));
  ops.push_back(make(7));
  auto many = co_await weir::all(std::move(ops));
  EXPECT_EQ(many.size(), 2u);
  strict timed = co_await weir::with_timeout(1s, make(8));
  EXPECT_EQ(timed.get(), 8);
}

FIBER_TEST(task, an_error_passes_through_every_frame_and_can_be_caught_in_any) {
  text_log log;
  auto inner = [&]() -> task<int> {
    end_note gone(log, "inner");
    co_return co_await fails_after(1ms, 3);
  };
  auto middle = [&]() -> task<int> {
    end_note gone(log, "middle");
    co_return co_await inner();
  };
  int caught = 0;
  try {
    (void)co_await middle();
  } catch (const boom& e) {
    caught = e.n;
  }
  EXPECT_EQ(caught, 3);
  EXPECT_EQ(joined(log), "inner,middle");
  int fine = co_await ready(1);
  EXPECT_EQ(fine, 1);
}

TEST(task, a_parked_frame_that_is_cancelled_is_destroyed_innermost_first) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto inner = [&]() -> task<> {
        end_note gone(log, "inner");
        co_await weir::sleep(1h);
      };
      auto outer = [&]() -> task<> {
        end_note gone(log, "outer");
        try {
          co_await inner();
        } catch (...) {
          log.push_back("CAUGHT");
        }
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto child = s.spawn(outer);
        co_await weir::sleep(1ms);
        child.cancel();
      });
    });
    EXPECT_EQ(joined(log), "inner,outer");
  });
}

FIBER_TEST(task, tasks_can_be_kept_in_containers_and_awaited_later) {
  std::vector<task<int>> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(after(1ms, i));
  int sum = 0;
  for (auto& t : tasks) {
    int value = co_await std::move(t);
    sum += value;
  }
  EXPECT_EQ(sum, 45);
}
FIBER_TEST(task, recursion_is_not_limited_by_the_machine_stack) {
  int sum = co_await sum_to(50'000);
  EXPECT_EQ(sum, 50'000 / 2 * 50'001);
}

TEST(task, a_callable_with_captures_is_kept_alive_for_as_long_as_its_task_runs) {
  auto token = std::make_shared<int>(8);
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    int seen = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      {
        auto callable = [token, &seen]() -> task<> {
          co_await weir::sleep(1ms);
          seen = *token;
        };
        s.spawn(std::move(callable));
      }
      co_await s.join();
      EXPECT_EQ(token.use_count(), 1);
    });
    EXPECT_EQ(seen, 8);
  });
}
