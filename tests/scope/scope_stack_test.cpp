// SPDX-License-Identifier: MIT
// Bounded stack: nothing that weir does grows the machine stack with the length or depth of what
// the program does. Every test runs on a thread with 256 KB of stack, 1 MB under a sanitizer.
#include <sstream>

#include "scope_support.hpp"
#include "support/small_stack.hpp"

using namespace weir_test;
using test_support::on_a_small_stack;

namespace {

constexpr int sequential_awaits = 1'000'000;
constexpr int recursion_depth = 200'000;
constexpr int failing_depth = test_support::sanitized ? 10'000 : 200'000;  // an exception per level
constexpr int chained_fibers = 100'000;
constexpr int nested_scopes = 10'000;
constexpr int nested_groups = 10'000;

class counted_frame {
 public:
  explicit counted_frame(long& alive) : alive_(alive) { ++alive_; }
  counted_frame(const counted_frame&) = delete;
  counted_frame& operator=(const counted_frame&) = delete;
  ~counted_frame() { --alive_; }

 private:
  long& alive_;
};

enum class at_the_bottom { finish, fail, stay };

weir::task<int> recurse(int depth, at_the_bottom what, long& alive) {
  counted_frame frame(alive);
  if (depth == 0) {
    if (what == at_the_bottom::fail) throw boom(1);
    if (what == at_the_bottom::stay) co_await weir::sleep(1000h);
    co_return 0;
  }
  const int below = co_await recurse(depth - 1, what, alive);
  co_return below + 1;
}

/// The same after a real suspension at the bottom: every frame then completes on the way up.
weir::task<int> recurse_and_park(int depth) {
  if (depth == 0) {
    co_await weir::sleep(1ms);
    co_return 0;
  }
  const int below = co_await recurse_and_park(depth - 1);
  co_return below + 1;
}

/// The same where every call is a fiber.
weir::task<int> recurse_in_fibers(int depth, at_the_bottom what, long& alive) {
  counted_frame frame(alive);
  if (depth == 0) {
    if (what == at_the_bottom::fail) throw boom(1);
    if (what == at_the_bottom::stay) co_await weir::sleep(1000h);
    co_return 0;
  }
  const auto [below] = co_await weir::all(recurse_in_fibers(depth - 1, what, alive));
  co_return below + 1;
}

/// The same with parallel_map.
weir::task<int> recurse_by_map(int depth, at_the_bottom what, long& alive) {
  counted_frame frame(alive);
  if (depth == 0) {
    if (what == at_the_bottom::fail) throw boom(1);
    if (what == at_the_bottom::stay) co_await weir::sleep(1000h);
    co_return 0;
  }
  const std::vector<int> one{depth - 1};
  const auto call = [&](int below) { return recurse_by_map(below, what, alive); };
  const auto below = co_await weir::parallel_map(one, call, 1);
  co_return below.front() + 1;
}

weir::task<int> nest_scopes(int depth, std::optional<weir::future<void>>* deepest, long& alive) {
  counted_frame frame(alive);
  const int below = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
    if (depth == 1) {
      if (deepest == nullptr) co_return 0;
      *deepest = s.spawn(sleep_for(1000h));
      co_await weir::sleep(1000h);
    }
    const int inner = co_await nest_scopes(depth - 1, deepest, alive);
    co_return inner;
  });
  co_return below + 1;
}

weir::task<> nest_failing_scopes(int depth) {
  co_await weir::with_scope({.errors = weir::errors::all}, [&](weir::scope&) -> weir::task<> {
    if (depth == 1) throw boom(7);
    co_await nest_failing_scopes(depth - 1);
  });
}

std::exception_ptr nest_groups(int depth) {
  auto error = std::make_exception_ptr(boom(7));
  for (int i = 0; i < depth; ++i) {
    std::vector<std::exception_ptr> one;
    one.push_back(std::move(error));
    error = std::make_exception_ptr(weir::error_group(std::move(one)));
  }
  return error;
}

int depth_of(std::exception_ptr error) {
  for (int depth = 0;; ++depth) {
    try {
      std::rethrow_exception(error);
    } catch (const weir::error_group& group) {
      if (group.errors().size() != 1) return -1;
      error = std::exception_ptr(group.errors().front());
    } catch (...) {
      return depth;
    }
  }
}

/// The ways in which the last fiber of a chain ends, and with it the whole chain.
enum class chain_ends { value, error, cancelled };

/// Fiber i awaits the future of fiber i - 1; fiber 0 parks and then ends in the given way.
weir::task<int> chain(weir::scope& s, chain_ends how,
                      std::vector<std::optional<weir::future<int>>>& links) {
  auto first = s.spawn([&]() -> weir::task<int> {
    co_await weir::sleep(1ms);
    if (how == chain_ends::error) throw boom(7);
    if (how == chain_ends::cancelled) co_await weir::sleep(1000h);
    co_return 0;
  });
  links[0] = first;
  for (std::size_t i = 1; i < links.size(); ++i) {
    links[i] = s.spawn([&links, i]() -> weir::task<int> {
      const int before = co_await *links[i - 1];
      co_return before + 1;
    });
  }
  co_await weir::sleep(2ms);
  if (how == chain_ends::cancelled) first.cancel("at the far end");
  const int length = co_await *links.back();
  co_return length;
}

}  // namespace

TEST(scope_stack, a_million_sequential_awaits_of_ready_tasks) {
  on_a_small_stack([] {
    const long sum = weir::run([]() -> weir::task<long> {
      long total = 0;
      for (int i = 0; i < sequential_awaits; ++i) total += co_await ready(1);
      co_return total;
    });
    EXPECT_EQ(sum, sequential_awaits);
  });
}

TEST(scope_stack, a_million_sequential_awaits_of_a_done_future) {
  on_a_small_stack([] {
    const long sum = weir::run([]() -> weir::task<long> {
      const long in_scope = co_await weir::with_scope([](weir::scope& s) -> weir::task<long> {
        auto done = s.spawn(ready(1));
        long total = 0;
        for (int i = 0; i < sequential_awaits; ++i) total += co_await done;
        co_return total;
      });
      co_return in_scope;
    });
    EXPECT_EQ(sum, sequential_awaits);
  });
}
TEST(scope_stack, fibers_that_recurse_by_all_200000_deep_finish) {
  on_a_small_stack([] {
    long alive = 0;
    auto dive = [&] { return recurse_in_fibers(recursion_depth, at_the_bottom::finish, alive); };
    EXPECT_EQ(weir::run(dive), recursion_depth);
    EXPECT_EQ(alive, 0);
  });
}

TEST(scope_stack, fibers_that_recurse_by_all_200000_deep_are_unwound) {
  on_a_small_stack([] {
    long alive = 0;
    auto dive = [&]() -> weir::task<> {
      auto limited =
          weir::with_timeout(1ms, recurse_in_fibers(recursion_depth, at_the_bottom::stay, alive));
      const auto out = co_await weir::settle(std::move(limited));
      EXPECT_TRUE(out.is_error());
    };
    weir::run(dive);
    EXPECT_EQ(alive, 0);
  });
}

TEST(scope_stack, an_error_passes_200000_fibers_of_all) {
  on_a_small_stack([] {
    long alive = 0;
    auto dive = [&] { return recurse_in_fibers(failing_depth, at_the_bottom::fail, alive); };
    EXPECT_EQ(boom_of(thrown_by([&] { return weir::run(dive); })), 1);
    EXPECT_EQ(alive, 0);
  });
}

TEST(scope_stack, calls_of_parallel_map_200000_deep_finish_are_unwound_or_fail) {
  on_a_small_stack([] {
    long alive = 0;
    auto dive = [&] { return recurse_by_map(recursion_depth, at_the_bottom::finish, alive); };
    EXPECT_EQ(weir::run(dive), recursion_depth);
    auto limited = [&] {
      auto deep = recurse_by_map(recursion_depth, at_the_bottom::stay, alive);
      return weir::with_timeout(1ms, std::move(deep));
    };
    EXPECT_TRUE(holds<weir::timeout_error>(thrown_by([&] { return weir::run(limited); })));
    auto fails = [&] { return recurse_by_map(failing_depth / 10, at_the_bottom::fail, alive); };
    EXPECT_EQ(boom_of(thrown_by([&] { return weir::run(fails); })), 1);
    EXPECT_EQ(alive, 0);
  });
}

TEST(scope_stack, tasks_that_recurse_200000_deep_finish) {
  on_a_small_stack([] {
    long alive = 0;
    auto dive = [&]() -> weir::task<int> {
      return recurse(recursion_depth, at_the_bottom::finish, alive);
    };
    EXPECT_EQ(weir::run(dive), recursion_depth);
    EXPECT_EQ(alive, 0);
  });
}

TEST(scope_stack, tasks_that_recurse_200000_deep_finish_after_the_deepest_one_has_parked) {
  on_a_small_stack([] {
    auto dive = [] { return recurse_and_park(recursion_depth); };
    EXPECT_EQ(weir::sim::run({.seed = 1}, dive), recursion_depth);
  });
}

TEST(scope_stack, an_error_passes_200000_frames) {
  on_a_small_stack([] {
    long alive = 0;
    auto dive = [&] { return recurse(recursion_depth, at_the_bottom::fail, alive); };
    EXPECT_EQ(boom_of(thrown_by([&] { return weir::run(dive); })), 1);
    EXPECT_EQ(alive, 0);
  });
}

TEST(scope_stack, tasks_that_recurse_200000_deep_are_cancelled_there) {
  on_a_small_stack([] {
    weir::sim::run({.seed = 1}, []() -> weir::task<> {
      long alive = 0;
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto child = s.spawn(recurse(recursion_depth, at_the_bottom::stay, alive));
        co_await weir::sleep(1ms);
        EXPECT_EQ(alive, recursion_depth + 1);
        child.cancel("at the bottom");
        co_await s.idle();
        EXPECT_TRUE(child.peek()->is_cancelled());
        EXPECT_EQ(alive, 0);
      });
    });
  });
}

TEST(scope_stack, a_chain_of_100000_fibers_each_awaiting_the_next_passes_a_value_on) {
  on_a_small_stack([] {
    weir::sim::run({.seed = 1}, []() -> weir::task<> {
      std::vector<std::optional<weir::future<int>>> links(chained_fibers);
      const int length = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
        const int sum = co_await chain(s, chain_ends::value, links);
        co_return sum;
      });
      EXPECT_EQ(length, chained_fibers - 1);
    });
  });
}

TEST(scope_stack, a_chain_of_100000_fibers_passes_an_error_or_a_cancellation_on) {
  for (auto how : {chain_ends::error, chain_ends::cancelled}) {
    on_a_small_stack([how] {
      weir::sim::run({.seed = 1}, [how]() -> weir::task<> {
        std::vector<std::optional<weir::future<int>>> links(chained_fibers);
        auto ended = co_await weir::settle(weir::with_scope(
            {.failure = weir::failure::isolate}, [&](weir::scope& s) -> weir::task<int> {
              const int sum = co_await chain(s, how, links);
              co_return sum;
            }));
        EXPECT_TRUE(ended.is_error());
        const bool as_expected = how == chain_ends::error
                                     ? boom_of(ended.error()) == 7
                                     : code_of(ended.error()) == weir::errc::cancelled;
        EXPECT_TRUE(as_expected) << what_of(ended.error());
      });
    });
  }
}

TEST(scope_stack, a_chain_of_100000_fibers_is_cancelled_as_a_whole) {
  on_a_small_stack([] {
    weir::sim::run({.seed = 1}, []() -> weir::task<> {
      std::vector<std::optional<weir::future<int>>> links(chained_fibers);
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(1ms);
          s.cancel();
        });
        auto never = [&]() -> weir::task<int> {
          co_await weir::sleep(1000h);
          co_return 0;
        };
        links[0] = s.spawn(never);
        for (std::size_t i = 1; i < links.size(); ++i) {
          links[i] = s.spawn([&links, i]() -> weir::task<int> {
            const int before = co_await *links[i - 1];
            co_return before;
          });
        }
        co_await *links.back();
      }));
      EXPECT_TRUE(ended.is_cancelled());
      for (const auto& link : links) {
        if (link->peek() == nullptr || !link->peek()->is_cancelled()) {
          ADD_FAILURE() << "a fiber of the chain was not cancelled";
          break;
        }
      }
    });
  });
}
TEST(scope_stack, scopes_nested_10000_deep_finish) {
  on_a_small_stack([] {
    long alive = 0;
    auto dive = [&] { return nest_scopes(nested_scopes, nullptr, alive); };
    EXPECT_EQ(weir::run(dive), nested_scopes);
    EXPECT_EQ(alive, 0);
  });
}

// The reason of the deepest child has one hop for each scope, and is told and destroyed.
TEST(scope_stack, scopes_nested_10000_deep_are_cancelled_from_the_top_with_the_whole_chain) {
  on_a_small_stack([] {
    std::optional<weir::future<void>> deepest;
    weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
      long alive = 0;
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.spawn(nest_scopes(nested_scopes, &deepest, alive));
        co_await weir::sleep(1ms);
        EXPECT_EQ(alive, nested_scopes);
        s.cancel("from the top");
        co_await weir::sleep(1000h);
      }));
      EXPECT_TRUE(ended.is_cancelled());
      EXPECT_EQ(alive, 0);
      std::ostringstream out;
      weir::why(out, *deepest);
      EXPECT_TRUE(contains(out.str(), "from the top"));
    });
    ASSERT_TRUE(deepest->peek() != nullptr && deepest->peek()->is_cancelled());
    {
      const auto chain_of_reasons = deepest->peek()->reason().chain();
      EXPECT_EQ(chain_of_reasons.size(), static_cast<std::size_t>(nested_scopes) + 1);
      EXPECT_EQ(message_of(chain_of_reasons.front()), "from the top");
      EXPECT_EQ(chain_of_reasons.back().kind, cancel_kind::parent);
    }
    deepest.reset();
  });
}

TEST(scope_stack, error_groups_of_scopes_nested_10000_deep_are_built_and_destroyed) {
  on_a_small_stack([] {
    auto error = thrown_by(
        [] { weir::run([]() -> weir::task<> { co_await nest_failing_scopes(nested_groups); }); });
    EXPECT_EQ(depth_of(error), nested_groups);
    error = nullptr;
  });
}
TEST(scope_stack, error_groups_nested_10000_deep_are_described_split_and_destroyed) {
  on_a_small_stack([] {
    auto error = nest_groups(nested_groups);
    EXPECT_EQ(depth_of(error), nested_groups);
    EXPECT_TRUE(contains(weir::describe(error), "boom 7"));
    EXPECT_FALSE(what_of(error).empty());
    try {
      std::rethrow_exception(error);
    } catch (const weir::error_group& group) {
      const auto is_boom = [](const std::exception_ptr& leaf) { return boom_of(leaf) == 7; };
      const auto [matching, rest] = group.split(is_boom);
      EXPECT_TRUE(matching.has_value() && !rest.has_value());
      const int depth = matching ? depth_of(std::make_exception_ptr(*matching)) : 0;
      EXPECT_EQ(depth, nested_groups);
      const auto sub = group.subgroup<boom>();
      EXPECT_TRUE(sub.has_value());
      const auto none = group.subgroup<std::bad_alloc>();
      EXPECT_FALSE(none.has_value());
      EXPECT_EQ(booms_of(group.flatten()), std::vector<int>{7});
    }
    error = nullptr;
  });
}
