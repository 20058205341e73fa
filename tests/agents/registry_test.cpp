// SPDX-License-Identifier: MIT
// registry: agents by name, and when a name is free again.
#include "agent_support.hpp"

using namespace weir_test;

FIBER_TEST_IN_EVERY_ORDER(registry, finds_what_was_added_and_nothing_else) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {.name = "till"}, 5);
    EXPECT_FALSE(weir::registry::find<counter>("till").has_value());
    weir::registry::add(c);
    auto found = weir::registry::find<counter>("till");
    EXPECT_TRUE(found.has_value());
    if (found) {
      EXPECT_EQ(co_await found->call(&counter::get), 5);
    }
    EXPECT_FALSE(weir::registry::find<counter>("other").has_value());
    EXPECT_FALSE(weir::registry::find<counter>("til").has_value());
    EXPECT_FALSE(weir::registry::find<scribe>("till").has_value());  // another kind of agent
  });
  EXPECT_FALSE(weir::registry::find<counter>("till").has_value());
}

SCOPE_TEST_IN_EVERY_ORDER(registry, refuses_a_name_that_is_taken_and_says_which) {
  auto first = weir::spawn_agent<counter>(s, {.name = "till"}, 1);
  auto second = weir::spawn_agent<counter>(s, {.name = "till"}, 2);
  text_log log;
  auto other = weir::spawn_agent<scribe>(s, {.name = "till"}, &log, "x");
  weir::registry::add(first);
  const auto add = [](auto ref) {
    return thrown_by([&] { return (weir::registry::add(ref), 0); });
  };
  EXPECT_EQ(code_of(add(second)), errc::name_taken);
  EXPECT_EQ(code_of(add(other)), errc::name_taken);
  EXPECT_TRUE(contains(what_of(add(second)), "till"));
  auto found = weir::registry::find<counter>("till");
  if (found) {
    EXPECT_EQ(co_await found->call(&counter::get), 1);
  }
  co_await other.stop();
}
SCOPE_TEST_IN_EVERY_ORDER(registry, a_name_is_free_again_before_anybody_hears_of_the_end) {
  auto first = weir::spawn_agent<counter>(s, {.name = "till"}, 1);
  auto second = weir::spawn_agent<counter>(s, {.name = "till"}, 2);
  auto third = weir::spawn_agent<counter>(s, {.name = "till"}, 3);
  weir::registry::add(first);
  auto heir = s.spawn([&]() -> task<> {
    (void)co_await first.monitor();
    EXPECT_FALSE(weir::registry::find<counter>("till").has_value());
    weir::registry::add(second);
  });
  co_await settled();
  first.stop();
  co_await heir;
  co_await second.stop();
  weir::registry::add(third);
  co_await third.stop();
  EXPECT_FALSE(weir::registry::find<counter>("till").has_value());
}

FIBER_TEST_IN_EVERY_ORDER(registry, whoever_gets_the_error_of_a_crash_finds_the_name_free) {
  bool checked = false;
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      auto c = weir::spawn_agent<counter>(s, {.name = "till"});
      weir::registry::add(c);
      c.cast(&counter::fail_after, 2ms, 1);
      callers.spawn([&, c]() -> task<> {
        const std::error_code code = co_await code_of_call(c, &counter::get);
        EXPECT_EQ(code, errc::agent_crashed);
        EXPECT_FALSE(weir::registry::find<counter>("till").has_value());
        checked = true;
      });
      co_await weir::sleep(1h);
    };
    EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
    EXPECT_FALSE(weir::registry::find<counter>("till").has_value());
    co_await callers.join();
  });
  EXPECT_TRUE(checked);
}

SCOPE_TEST(registry, many_names_come_and_go) {
  std::vector<agent_ref<counter>> all;
  for (int i = 0; i < 500; ++i) {
    weir::agent_options options;
    const std::string name = "n" + std::to_string(i);
    options.name = name;
    all.push_back(weir::spawn_agent<counter>(s, options, i));
    weir::registry::add(all.back());
  }
  for (std::size_t i = 0; i < all.size(); i += 2) co_await all[i].stop();
  for (int i = 0; i < 500; ++i) {
    auto found = weir::registry::find<counter>("n" + std::to_string(i));
    EXPECT_EQ(found.has_value(), i % 2 == 1) << i;
    if (found) {
      EXPECT_EQ(co_await found->call(&counter::get), i);
    }
  }
}
