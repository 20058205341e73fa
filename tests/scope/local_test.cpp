// SPDX-License-Identifier: MIT
// Locals, contexts, this_scope and this_context: which value, name, id and reason is seen where.
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

weir::local<int> level{1};
weir::local<std::string> user_name{std::string("nobody")};

task<int> level_here() { co_return level.get(); }

task<int> level_later(weir::duration d) {
  co_await weir::sleep(d);
  co_return level.get();
}

}  // namespace

FIBER_TEST(local, it_has_its_default_until_a_value_is_bound) {
  EXPECT_EQ(level.get(), 1);
  int inside = co_await weir::with_local(level, 5, level_here());
  EXPECT_EQ(inside, 5);
  EXPECT_EQ(level.get(), 1);
}

FIBER_TEST_IN_EVERY_ORDER(local, bindings_nest_and_end_on_value_error_and_cancellation) {
  co_await weir::with_local(level, 2, [&]() -> task<> {
    int three = co_await weir::with_local(level, 3, level_later(1ms));
    EXPECT_EQ(three, 3);
    EXPECT_EQ(level.get(), 2);
    auto failed = co_await error_of(weir::with_local(level, 4, fails_after(1ms, 1)));
    EXPECT_EQ(boom_of(failed), 1);
    EXPECT_EQ(level.get(), 2);
    auto timed =
        co_await error_of(weir::with_timeout(1ms, weir::with_local(level, 5, after(1h, 1))));
    EXPECT_TRUE(holds<weir::timeout_error>(timed));
    EXPECT_EQ(level.get(), 2);
  });
  EXPECT_EQ(level.get(), 1);
}

FIBER_TEST(local, several_are_independent_and_hold_any_type) {
  EXPECT_EQ(user_name.get(), "nobody");
  std::string name = "a name that does not fit into the string itself";
  co_await weir::with_local(user_name, name, [&]() -> task<> {
    co_await weir::with_local(level, 9, [&]() -> task<> {
      EXPECT_EQ(user_name.get(), name);
      EXPECT_EQ(level.get(), 9);
      co_return;
    });
  });
  EXPECT_EQ(user_name.get(), "nobody");
}
FIBER_TEST_IN_EVERY_ORDER(local, a_child_takes_those_of_the_scope_it_is_spawned_into) {
  int inherited = 0, foreign = 0;
  co_await weir::with_scope([&](weir::scope& plain) -> task<> {
    co_await weir::with_local(level, 7, [&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto child = s.spawn(level_later(1ms));
        inherited = co_await child;
      });
      auto other = plain.spawn(level_later(1ms));
      foreign = co_await other;
    });
  });
  EXPECT_EQ(inherited, 7);
  EXPECT_EQ(foreign, 1);
}
SCOPE_TEST_IN_EVERY_ORDER(local, one_bound_around_a_child_is_seen_by_that_child_only) {
  auto bound = s.spawn(weir::with_local(level, 6, level_later(5ms)));
  auto other = s.spawn(level_later(5ms));
  int six = co_await bound;
  int one = co_await other;
  EXPECT_EQ(six, 6);
  EXPECT_EQ(one, 1);
}

FIBER_TEST_IN_EVERY_ORDER(local, the_arms_of_combinators_and_wrapped_ops_see_the_callers) {
  co_await weir::with_local(level, 8, [&]() -> task<> {
    auto both = co_await weir::all(level_here(), level_later(1ms));
    EXPECT_EQ(std::get<0>(both) + std::get<1>(both), 16);
    int raced = co_await weir::race(level_later(1ms), level_later(2ms));
    int timed = co_await weir::with_timeout(1s, level_later(1ms));
    int shielded = co_await weir::shield(level_later(1ms));
    auto settled = co_await weir::settle(level_later(1ms));
    EXPECT_EQ(raced, 8);
    EXPECT_EQ(timed, 8);
    EXPECT_EQ(shielded, 8);
    EXPECT_EQ(settled.value(), 8);
  });
}

FIBER_TEST_IN_EVERY_ORDER(local, defers_and_destructors_of_a_cancelled_fiber_still_see_it) {
  int in_defer = 0, in_destructor = 0;
  struct probe {
    int& seen;
    ~probe() { seen = level.get(); }
  };
  co_await weir::with_local(level, 4, [&]() -> task<> {
    (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
      s.defer([&]() -> task<> {
        co_await weir::sleep(1ms);
        in_defer = level.get();
      });
      probe p{in_destructor};
      s.cancel("stop");
      co_await weir::checkpoint();
    }));
  });
  EXPECT_EQ(in_defer, 4);
  EXPECT_EQ(in_destructor, 4);
}

TEST(this_scope, it_is_the_innermost_scope_and_is_read_only) {
  static_assert(std::is_same_v<decltype(weir::this_scope()), const weir::scope&>);
  weir::sim::run({.seed = 1}, []() -> task<> {
    auto root = weir::this_scope().id();
    co_await weir::with_scope({.name = "harbour"}, [&](weir::scope& s) -> task<> {
      EXPECT_EQ(&weir::this_scope(), &s);
      EXPECT_EQ(std::string(weir::this_scope().name()), "harbour");
      EXPECT_NE(s.id(), root);
      auto child = s.spawn([&]() -> task<bool> {
        co_await weir::sleep(1ms);
        co_return weir::this_scope().id() == s.id();
      });
      bool in_child = co_await child;
      EXPECT_TRUE(in_child);
      s.cancel("closing");
      EXPECT_EQ(weir::this_scope().reason()->message, "closing");
    });
    EXPECT_EQ(weir::this_scope().id(), root);
    EXPECT_EQ(weir::this_scope().reason(), nullptr);
  });
}

FIBER_TEST(this_context, inside_settle_with_timeout_and_shield_it_is_the_ops_own) {
  const weir::context* outside = &weir::this_context();
  int others = 0;
  bool same = true;
  auto op = [&](weir::context& c) -> task<> {
    same = same && &c == &weir::this_context();
    others += &c != outside;
    co_await weir::sleep(1ms);
    same = same && &c == &weir::this_context();
  };
  (void)co_await weir::settle(op);
  co_await weir::with_timeout(1s, op);
  co_await weir::shield(op);
  EXPECT_EQ(others, 3);
  EXPECT_TRUE(same);
  EXPECT_EQ(&weir::this_context(), outside);
}

FIBER_TEST_IN_EVERY_ORDER(context, it_says_that_a_cancellation_is_requested_and_why) {
  bool before = true, after_it = false;
  std::string message;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn([&](weir::context& c) -> task<> {
      before = c.cancel_requested() || c.reason() != nullptr;
      co_await weir::shield(weir::sleep(10ms));
      after_it = c.cancel_requested();
      if (c.reason()) message = c.reason()->message;
    });
    co_await weir::sleep(5ms);
    child.cancel("enough");
  });
  EXPECT_FALSE(before);
  EXPECT_TRUE(after_it);
  EXPECT_EQ(message, "enough");
}

SCOPE_TEST(context, it_has_the_name_of_its_operation_and_the_id_of_its_scope) {
  std::string name;
  bool same_scope = false;
  auto op = [&](weir::context& c) -> task<> {
    name = std::string(c.name());
    same_scope = c.scope_id() == s.id();
    co_return;
  };
  co_await s.spawn(op, {.name = "ferry"});
  EXPECT_EQ(name, "ferry");
  EXPECT_TRUE(same_scope);
}
FIBER_TEST_IN_EVERY_ORDER(context, its_stop_token_is_asked_to_stop_when_the_op_is_cancelled) {
  std::optional<std::stop_token> token;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn([&](weir::context& c) -> task<> {
      token = c.stop_token();
      EXPECT_FALSE(token->stop_requested());
      co_await weir::shield(weir::sleep(10ms));
      EXPECT_TRUE(token->stop_requested());
    });
    co_await weir::sleep(5ms);
    child.cancel("enough");
  });
  EXPECT_TRUE(token && token->stop_requested());
}
