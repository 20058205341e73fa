// SPDX-License-Identifier: MIT
// Errors: how the failures of a scope are gathered, error_group and its splitting, descriptions
// with their await chains, outcomes, suppressed errors, and the codes of category "weir".
#include "support/test_support.hpp"

#include <memory>
#include <optional>
#include <type_traits>

using namespace test_support;
using weir::task;

namespace {

int throw_line = 0, await_line = 0, spawn_line = 0;

task<> pump_water() {
  throw_line = __LINE__ + 1;
  co_await weir::sleep(1ms);
  throw boom(1);
}

task<> fill_tank() {
  await_line = __LINE__ + 1;
  co_await pump_water();
}

template <class E>
std::exception_ptr made(int number) {
  return std::make_exception_ptr(E(number));
}

std::exception_ptr grouped(std::vector<std::exception_ptr> errors) {
  return std::make_exception_ptr(weir::error_group(std::move(errors)));
}

/// [[boom 1, bang 2], bang 3]
weir::error_group sample_tree() {
  std::vector<std::exception_ptr> inner{made<boom>(1), made<bang>(2)};
  std::vector<std::exception_ptr> outer{grouped(std::move(inner)), made<bang>(3)};
  return weir::error_group(std::move(outer));
}

/// A group that holds one leaf and the next group, `depth` times.
std::exception_ptr comb(int depth) {
  std::exception_ptr tree = made<boom>(0);
  for (int i = 1; i <= depth; ++i) tree = grouped({made<boom>(i), tree});
  return tree;
}

std::size_t what_size(const std::exception_ptr& error) { return what_of(error).size(); }

long lines_of(const std::string& text) {
  return static_cast<long>(std::count(text.begin(), text.end(), '\n'));
}

/// The numbers of the booms of a group, in order; other errors are -1.
std::vector<int> numbers(const std::vector<std::exception_ptr>& errors) {
  std::vector<int> result;
  for (const auto& e : errors) result.push_back(boom_of(e));
  return result;
}

struct heavy : std::runtime_error {
  explicit heavy(std::shared_ptr<int> p) : std::runtime_error("heavy"), payload(std::move(p)) {}
  std::shared_ptr<int> payload;
};

template <class O>
concept matches_two_ways =
    requires(O o) { o.match([](int) { return 1; }, [](const std::exception_ptr&) { return 2; }); };
template <class O>
concept matches_three_ways = requires(O o) {
  o.match([](int) { return 1; }, [](const std::exception_ptr&) { return 2; },
          [](const weir::cancel_reason&) { return 3; });
};

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(error,
                          one_failing_child_is_rethrown_unchanged_or_is_the_only_leaf_of_a_group) {
  std::optional<weir::future<int>> child;
  auto body = [&](weir::scope& s) -> task<> {
    child = s.spawn(fails_after(1ms, 1));
    co_return;
  };
  auto first = co_await weir::settle(weir::with_scope(body));
  EXPECT_TRUE(first.is_error());
  EXPECT_TRUE(first.is_error() && boom_of(first.error()) == 1);
  EXPECT_TRUE(first.is_error() && first.error() == child->peek()->error());
  std::size_t leaves = 0;
  try {
    co_await weir::with_scope({.errors = weir::errors::all}, body);
  } catch (const weir::error_group& group) {
    leaves = group.errors().size();
    EXPECT_EQ(numbers(group.errors()), (std::vector<int>{1}));
  }
  EXPECT_EQ(leaves, 1u);
}
FIBER_TEST_IN_EVERY_ORDER(error, all_failures_are_in_the_group_in_order_of_completion) {
  std::vector<int> seen;
  try {
    co_await weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                              [&](weir::scope& s) -> task<> {
                                s.spawn(fails_after(30ms, 3));
                                s.spawn(fails_after(10ms, 1));
                                s.spawn(after(5ms, 0));
                                s.spawn(fails_after(20ms, 2));
                                co_return;
                              });
  } catch (const weir::error_group& group) {
    seen = numbers(group.errors());
  }
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}

// Completion at one instant, in the order of spawning
// In the order of production only: the group is in the order of completion.
TEST(error, failures_at_one_instant_are_grouped_in_the_order_of_spawning) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> task<> {
    std::vector<int> seen;
    try {
      co_await weir::with_scope(
          {.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
          [&](weir::scope& s) -> task<> {
            for (int i = 1; i <= 5; ++i) s.spawn(fails_after(10ms, i));
            co_return;
          });
    } catch (const weir::error_group& group) {
      seen = numbers(group.errors());
    }
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 5}));
  });
}
FIBER_TEST_IN_EVERY_ORDER(error, the_body_and_a_child_both_fail_and_both_are_present) {
  std::vector<int> seen;
  try {
    co_await weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                              [&](weir::scope& s) -> task<> {
                                s.spawn(fails_after(10ms, 1));
                                co_await weir::sleep(5ms);
                                throw boom(2);
                              });
  } catch (const weir::error_group& group) {
    seen = numbers(group.errors());
  }
  EXPECT_EQ(seen, (std::vector<int>{2, 1}));
}
FIBER_TEST_IN_EVERY_ORDER(error, cancelled_siblings_are_no_leaves_of_the_group) {
  std::vector<int> seen;
  try {
    co_await weir::with_scope({.errors = weir::errors::all}, [&](weir::scope& s) -> task<> {
      s.spawn(after(1h, 1));
      s.spawn(fails_after(1ms, 7));
      s.spawn(after(1h, 2));
      co_await weir::sleep(1h);
    });
  } catch (const weir::error_group& group) {
    seen = numbers(group.flatten());
  }
  EXPECT_EQ(seen, (std::vector<int>{7}));
}
FIBER_TEST_IN_EVERY_ORDER(error, a_scope_in_which_everything_was_only_cancelled_is_cancelled) {
  auto o = co_await weir::settle(
      weir::with_scope({.errors = weir::errors::all}, [&](weir::scope& s) -> task<> {
        s.spawn(after(1h, 1));
        co_await weir::sleep(1ms);
        s.cancel("stop");
        co_await weir::sleep(1h);
      }));
  EXPECT_TRUE(o.is_cancelled());
}
FIBER_TEST_IN_EVERY_ORDER(error, nested_scopes_give_nested_groups_of_the_same_shape) {
  auto inner = []() -> task<> {
    co_await weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                              [](weir::scope& s) -> task<> {
                                s.spawn(fails_after(1ms, 1));
                                s.spawn(fails_after(2ms, 2));
                                co_return;
                              });
  };
  std::vector<std::exception_ptr> top;
  try {
    co_await weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                              [&](weir::scope& s) -> task<> {
                                s.spawn(inner);
                                s.spawn(fails_after(5ms, 3));
                                co_return;
                              });
  } catch (const weir::error_group& group) {
    top = group.errors();
  }
  EXPECT_EQ(numbers(top), (std::vector<int>{-1, 3}));
  std::vector<int> nested;
  try {
    if (!top.empty()) std::rethrow_exception(top.front());
  } catch (const weir::error_group& group) {
    nested = numbers(group.errors());
  }
  EXPECT_EQ(nested, (std::vector<int>{1, 2}));
}

// `split` takes a predicate.
TEST(error, split_is_recursive_and_keeps_the_shape_of_the_tree) {
  int asked = 0;
  auto [matching, rest] = sample_tree().split([&](const std::exception_ptr& leaf) {
    ++asked;
    EXPECT_FALSE(holds<weir::error_group>(leaf));
    return holds<boom>(leaf);
  });
  EXPECT_EQ(asked, 3);
  ASSERT_TRUE(matching.has_value());
  ASSERT_TRUE(rest.has_value());
  ASSERT_EQ(matching->errors().size(), 1u);
  EXPECT_TRUE(holds<weir::error_group>(matching->errors()[0]));
  EXPECT_EQ(numbers(matching->flatten()), (std::vector<int>{1}));
  ASSERT_EQ(rest->errors().size(), 2u);
  EXPECT_TRUE(holds<weir::error_group>(rest->errors()[0]));
  EXPECT_TRUE(holds<bang>(rest->errors()[1]));
  EXPECT_EQ(rest->flatten().size(), 2u);
}
TEST(error, split_gives_an_empty_optional_for_a_side_without_leaves) {
  weir::error_group tree = sample_tree();
  auto [every, none] = tree.split([](const std::exception_ptr&) { return true; });
  EXPECT_TRUE(every && every->flatten().size() == 3);
  EXPECT_FALSE(none.has_value());
  auto [nothing, all] = tree.split([](const std::exception_ptr&) { return false; });
  EXPECT_FALSE(nothing.has_value());
  EXPECT_TRUE(all && all->flatten().size() == 3);
}

// `subgroup` takes a type.
TEST(error, subgroup_keeps_only_errors_of_a_type_and_is_empty_without_any) {
  weir::error_group tree = sample_tree();
  auto bangs = tree.subgroup<bang>();
  ASSERT_TRUE(bangs.has_value());
  EXPECT_EQ(bangs->errors().size(), 2u);
  EXPECT_EQ(bangs->flatten().size(), 2u);
  EXPECT_TRUE(tree.subgroup<std::exception>().has_value());
  EXPECT_FALSE(tree.subgroup<int>().has_value());
  EXPECT_FALSE(tree.subgroup<weir::timeout_error>().has_value());
}

// Leaves have no paths.
TEST(error, flatten_lists_the_leaves_depth_first) {
  std::vector<std::exception_ptr> leaves = sample_tree().flatten();
  ASSERT_EQ(leaves.size(), 3u);
  EXPECT_EQ(what_of(leaves[0]), "boom 1");
  EXPECT_EQ(what_of(leaves[1]), "bang 2");
  EXPECT_EQ(what_of(leaves[2]), "bang 3");
}

// The text of a group names the first and the last leaf, however many there are
TEST(error, what_stays_short_however_many_leaves_there_are_and_however_deep) {
  std::size_t small = what_size(comb(500)), large = what_size(comb(1000));
  EXPECT_LT(large, small + 10);
  std::string text = what_of(comb(20));
  EXPECT_TRUE(contains(text, "boom 0"));
  EXPECT_TRUE(contains(text, "boom 20"));
}
TEST(error, a_chain_of_groups_with_one_child_each_is_described_in_one_line) {
  std::exception_ptr chain = made<boom>(5);
  for (int i = 0; i < 50; ++i) chain = grouped({chain});
  std::string text = weir::describe(chain);
  EXPECT_TRUE(contains(text, "boom 5"));
  EXPECT_EQ(lines_of(text), lines_of(weir::describe(grouped({made<boom>(5)}))));
}

TEST(error, a_group_10000_deep_can_be_flattened_split_printed_and_destroyed) {
  std::exception_ptr tree = comb(10'000);
  EXPECT_FALSE(weir::describe(tree).empty());
  try {
    std::rethrow_exception(tree);
  } catch (const weir::error_group& group) {
    EXPECT_EQ(group.flatten().size(), 10'001u);
    auto [odd, even] = group.split([](const auto& leaf) { return boom_of(leaf) % 2 == 1; });
    EXPECT_TRUE(odd && odd->flatten().size() == 5'000);
    EXPECT_TRUE(even && even->flatten().size() == 5'001);
  }
}

FIBER_TEST_IN_EVERY_ORDER(error, errors_first_gives_the_first_and_suppresses_the_later_ones) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  auto o = co_await weir::settle(
      weir::with_scope({.failure = weir::failure::wait_for_all}, [](weir::scope& s) -> task<> {
        for (int i = 3; i >= 1; --i) s.spawn(fails_after(i * 10ms, i));
        co_return;
      }));
  EXPECT_TRUE(o.is_error());
  EXPECT_TRUE(o.is_error() && boom_of(o.error()) == 1);
  EXPECT_EQ(numbers(o.suppressed()), (std::vector<int>{2, 3}));
  EXPECT_EQ(counted(events, "suppressed"), 2);
}
FIBER_TEST_IN_EVERY_ORDER(error, an_error_during_unwinding_is_suppressed_and_the_primary_one_kept) {
  auto o = co_await weir::settle(weir::with_scope([](weir::scope& s) -> task<> {
    s.spawn([]() -> task<> { (void)co_await weir::shield(fails_after(20ms, 2)); });
    s.spawn(fails_after(10ms, 1));
    co_return;
  }));
  EXPECT_TRUE(o.is_error());
  EXPECT_TRUE(o.is_error() && boom_of(o.error()) == 1);
  EXPECT_EQ(numbers(o.suppressed()), (std::vector<int>{2}));
}
TEST(error, an_outcome_must_be_matched_in_all_three_ways) {
  static_assert(matches_three_ways<weir::outcome<int>>);
  static_assert(!matches_two_ways<weir::outcome<int>>);
  auto which = [](const auto& o) {
    return o.match([](int) { return 1; }, [](const std::exception_ptr&) { return 2; },
                   [](const weir::cancel_reason&) { return 3; });
  };
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    auto value = co_await weir::settle(ready(4));
    auto error = co_await weir::settle(fails_after(1ms, 1));
    auto cancelled = co_await weir::settle(weir::with_scope([](weir::scope& s) -> task<int> {
      s.cancel("stop");
      co_await weir::checkpoint();
      co_return 1;
    }));
    EXPECT_EQ(which(value), 1);
    EXPECT_EQ(which(error), 2);
    EXPECT_EQ(which(cancelled), 3);
    EXPECT_TRUE(value.is_value() && !value.is_error() && !value.is_cancelled());
    EXPECT_EQ(value.value(), 4);
    EXPECT_THROW((void)error.value(), boom);
    EXPECT_THROW((void)cancelled.value(), weir::cancelled_error);
    EXPECT_EQ(cancelled.reason().message, "stop");
    auto nothing = co_await weir::settle(weir::sleep(1ms));
    int n = nothing.match([] { return 1; }, [](const std::exception_ptr&) { return 2; },
                          [](const weir::cancel_reason&) { return 3; });
    EXPECT_EQ(n, 1);
  });
}
FIBER_TEST(error, rethrowing_a_stored_error_does_not_make_its_description_grow) {
  co_await weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
    auto child = s.spawn(fails_after(1ms, 1));
    std::string once;
    for (int i = 0; i < 100; ++i) {
      try {
        (void)co_await child;
      } catch (const boom&) {
      }
      if (i == 0) once = weir::describe(child.peek()->error());
    }
    EXPECT_FALSE(once.empty());
    EXPECT_EQ(weir::describe(child.peek()->error()), once);
  });
}
TEST(error, after_it_is_handled_nobody_holds_the_error_any_more) {
  auto token = std::make_shared<int>(1);
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    long inside = 0;
    try {
      co_await weir::with_scope({.errors = weir::errors::all}, [&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          co_await weir::yield();
          throw heavy(token);
        });
        co_return;
      });
    } catch (const weir::error_group&) {
      inside = token.use_count();
    }
    EXPECT_GT(inside, 1);
    EXPECT_EQ(token.use_count(), 1);
  });
}

FIBER_TEST(error, a_description_names_where_it_was_thrown_awaited_and_spawned) {
  auto o = co_await weir::settle(weir::with_scope([](weir::scope& s) -> task<> {
    spawn_line = __LINE__ + 1;
    s.spawn(fill_tank(), {.name = "plumber"});
    co_return;
  }));
  EXPECT_TRUE(o.is_error());
  std::string text = o.is_error() ? weir::describe(o.error()) : std::string();
  EXPECT_TRUE(contains(text, "boom 1")) << text;
  EXPECT_TRUE(contains(text, "pump_water")) << text;
  EXPECT_TRUE(contains(text, "fill_tank")) << text;
  EXPECT_TRUE(contains(text, at_line(throw_line))) << text;
  EXPECT_TRUE(contains(text, at_line(await_line))) << text;
  EXPECT_TRUE(contains(text, at_line(spawn_line))) << text;
  EXPECT_LT(text.find(at_line(throw_line)), text.find(at_line(await_line))) << text;
}
TEST(error, anything_that_can_be_thrown_is_kept_and_described) {
  weir::sim::run({.seed = 1}, []() -> task<> {
    int caught = 0;
    try {
      co_await weir::with_scope([](weir::scope& s) -> task<> {
        s.spawn([]() -> task<> {
          co_await weir::yield();
          throw 42;
        });
        co_return;
      });
    } catch (int number) {
      caught = number;
    }
    EXPECT_EQ(caught, 42);
  });
  EXPECT_FALSE(weir::describe(std::make_exception_ptr(42)).empty());
  std::string tree = weir::describe(std::make_exception_ptr(sample_tree()));
  for (const char* leaf : {"boom 1", "bang 2", "bang 3"}) EXPECT_TRUE(contains(tree, leaf)) << tree;
  EXPECT_GE(lines_of(tree), 2) << tree;
}

TEST(error, every_error_of_weir_is_a_system_error_of_category_weir) {
  static_assert(std::is_base_of_v<std::system_error, weir::error>);
  static_assert(std::is_base_of_v<weir::error, weir::timeout_error>);
  static_assert(std::is_base_of_v<weir::error, weir::cancelled_error>);
  static_assert(std::is_base_of_v<weir::error, weir::error_group>);
  static_assert(std::is_error_code_enum_v<weir::errc>);
  using weir::errc;
  std::vector<errc> codes{
      errc::nested_run,      errc::deadlock,         errc::no_current_fiber,
      errc::wrong_loop,      errc::scope_closed,     errc::scope_full,
      errc::never_started,   errc::already_started,  errc::already_taken,
      errc::already_waited,  errc::empty_input,      errc::empty_job,
      errc::timeout,         errc::cancelled,        errc::group,
      errc::abandoned,       errc::loop_gone,        errc::would_deadlock,
      errc::overloaded,      errc::invalid_argument, errc::governor_full,
      errc::governor_closed,
  };
  std::vector<std::string> messages;
  for (errc code : codes) {
    std::error_code as_code = code;
    EXPECT_EQ(std::string_view(as_code.category().name()), "weir");
    EXPECT_TRUE(as_code) << as_code.message();
    EXPECT_FALSE(as_code.message().empty());
    messages.push_back(as_code.message());
  }
  std::sort(messages.begin(), messages.end());
  EXPECT_EQ(std::adjacent_find(messages.begin(), messages.end()), messages.end());
  EXPECT_EQ(sample_tree().code(), errc::group);
}
