// SPDX-License-Identifier: MIT
// dump: the tree of scopes and fibers with their names, what each waits on, and where.
#include <sstream>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

int lift_line = 0, load_line = 0;

task<> lift_crate() {
  lift_line = __LINE__ + 1;
  co_await weir::sleep(1h);
}

task<> load_truck() {
  load_line = __LINE__ + 1;
  co_await lift_crate();
}

std::string dumped() {
  std::ostringstream out;
  weir::dump(out);
  return out.str();
}

void expect_parts(const std::string& text, const text_log& parts) {
  for (const std::string& part : parts)
    EXPECT_TRUE(contains(text, part)) << part << " is not in:\n" << text;
}

}  // namespace
TEST(dump, it_shows_scopes_and_fibers_by_name_with_what_each_waits_on) {
  std::string text;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    weir::counting_governor g(0, {.name = "ramp"});
    (void)co_await weir::settle(
        weir::with_scope({.name = "warehouse"}, [&](weir::scope& s) -> task<> {
          auto truck = s.spawn(load_truck(), {.name = "forklift"});
          s.spawn([&]() -> task<> { co_await truck; }, {.name = "foreman"});
          s.spawn([&]() -> task<> { (void)co_await g.acquire(); }, {.name = "driver"});
          co_await weir::sleep(1ms);
          text = dumped();
          s.cancel("enough");
          co_await weir::checkpoint();
        }));
  });
  expect_parts(text, {"warehouse", "forklift", "foreman", "driver", "sleep", "future", "ramp"});
  EXPECT_LT(text.find("warehouse"), text.find("forklift")) << text;
}
TEST(dump, it_shows_the_chain_of_awaiting_tasks_with_functions_and_lines) {
  std::string text;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto truck = s.spawn(load_truck(), {.name = "forklift"});
      co_await weir::sleep(1ms);
      text = dumped();
      truck.cancel();
    });
  });
  expect_parts(text, {"lift_crate", "load_truck", at_line(lift_line), at_line(load_line)});
}
TEST(dump, a_child_without_a_name_is_called_by_its_function) {
  std::string text;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto truck = s.spawn(load_truck());
      co_await weir::sleep(1ms);
      text = dumped();
      truck.cancel();
    });
  });
  expect_parts(text, {"load_truck"});
}

TEST(dump, nested_scopes_are_shown_inside_their_owners) {
  std::string text;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    co_await weir::with_scope({.name = "harbour"}, [&](weir::scope& s) -> task<> {
      auto ship = s.spawn(
          []() -> task<> {
            co_await weir::with_scope({.name = "hold"}, [](weir::scope& inner) -> task<> {
              inner.spawn(lift_crate(), {.name = "stevedore"});
              co_await inner.join();
            });
          },
          {.name = "ship"});
      co_await weir::sleep(1ms);
      text = dumped();
      ship.cancel();
    });
  });
  expect_parts(text, {"harbour", "ship", "hold", "stevedore"});
  EXPECT_LT(text.find("harbour"), text.find("hold")) << text;
  EXPECT_LT(text.find("hold"), text.find("stevedore")) << text;
}

TEST(dump, a_name_made_at_run_time_is_copied) {
  std::string text;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::string name = "a name that is longer than any small buffer of a string";
      auto child = s.spawn(lift_crate(), {.name = name});
      name.assign(name.size(), '#');
      co_await weir::sleep(1ms);
      text = dumped();
      child.cancel();
    });
  });
  expect_parts(text, {"a name that is longer than any small buffer of a string"});
}

TEST(dump, without_a_loop_it_shows_no_fiber) {
  EXPECT_FALSE(contains(dumped(), "forklift"));
  EXPECT_FALSE(contains(dumped(), "sleep"));
}

FIBER_TEST(dump, live_counts_what_exists_and_nothing_afterwards) {
  auto before = weir::live();
  EXPECT_EQ(static_cast<long>(before.loops), 1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 10; ++i) s.spawn(after(1h, i));
    co_await weir::sleep(1ms);
    auto during = weir::live();
    EXPECT_EQ(static_cast<long>(during.fibers), static_cast<long>(before.fibers) + 10);
    EXPECT_EQ(static_cast<long>(during.timers), static_cast<long>(before.timers) + 10);
    EXPECT_GE(static_cast<long>(during.scopes), static_cast<long>(before.scopes) + 1);
    s.cancel();
  });
  auto afterwards = weir::live();
  EXPECT_EQ(static_cast<long>(afterwards.fibers), static_cast<long>(before.fibers));
  EXPECT_EQ(static_cast<long>(afterwards.timers), static_cast<long>(before.timers));
  EXPECT_EQ(static_cast<long>(afterwards.scopes), static_cast<long>(before.scopes));
}
