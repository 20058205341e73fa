// SPDX-License-Identifier: MIT
// Clocks and random numbers in a run: a replay sees the same.
#include <set>

#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

std::string all_of_them() {
  std::string seen = std::to_string(weir::now().time_since_epoch().count());
  seen += " " + std::to_string(weir::wall_now().time_since_epoch().count());
  seen += " " + std::to_string(weir::random());
  seen += " " + weir::uuid();
  return seen;
}

}  // namespace

TEST(durable_chance, clocks_random_numbers_and_uuids_are_the_same_on_replay) {
  auto handler = [](int) -> task<std::string> {
    const std::string before = all_of_them();
    co_await weir::sleep(3h);
    const std::string after = all_of_them();
    co_await weir::step("look", [&] {
      note("saw " + before + " " + after);
      effect("look");
    });
    co_return before + " " + after;
  };
  const stage on;
  life_that_dies_in("look", [&] { (void)ending(on, handler); });
  life_that_dies_in("look", [&] { (void)ending(on, handler, 50h); });
  whole_life([&] { note("saw " + ending(on, handler, 99h)); });
  const lines saw = noted("saw ");
  ASSERT_EQ(saw.size(), 4u);
  for (const std::string& one : saw) EXPECT_EQ(one, saw[0]);
}

TEST(durable_chance, what_was_seen_before_a_step_is_durable_before_the_step_runs) {
  // behaviours 2.2: recorded values and earlier results must be durable before a step starts.
  auto handler = [](int) -> task<std::string> {
    const std::string id = weir::uuid();
    co_await weir::step("use", [&] {
      note("used " + id);
      effect("use");
    });
    co_return id;
  };
  const stage on;
  life_that_dies_in("use", [&] { (void)ending(on, handler); });
  whole_life([&] { (void)ending(on, handler); });
  const lines used = noted("used ");
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0], used[1]);
}

TEST(durable_chance, the_clock_of_a_run_never_goes_back) {
  auto handler = [](int) -> task<std::string> {
    std::vector<weir::time_point> seen;
    for (int i = 0; i < 4; ++i) {
      seen.push_back(weir::now());
      co_await give("step " + std::to_string(i), 0);
      seen.push_back(weir::now());
      co_await weir::sleep(1h);
    }
    const bool in_order = std::is_sorted(seen.begin(), seen.end());
    co_return in_order&& seen.back() - seen.front() >= 3h ? "forward" : "back";
  };
  survives(handler, "forward");
}

TEST(durable_chance, wall_time_is_that_of_the_simulation) {
  auto handler = [](int) -> task<std::string> {
    const auto before = weir::wall_now();
    co_await weir::sleep(36h);
    co_return before == day0&& weir::wall_now() == day0 + 36h ? "right" : "wrong";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "right");
}

TEST(durable_chance, every_draw_is_another_one_in_a_run_and_between_runs) {
  auto handler = [](int) -> task<std::string> {
    std::set<std::string> seen;
    for (int i = 0; i < 200; ++i) {
      seen.insert(std::to_string(weir::random()));
      seen.insert(weir::uuid());
    }
    co_return std::to_string(seen.size()) + " " + *seen.begin();
  };
  const stage on;
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("h", {.id = "a"}, 1);
    auto b = co_await e.start<std::string>("h", {.id = "b"}, 1);
    const std::string of_a = co_await a.result();
    const std::string of_b = co_await b.result();
    EXPECT_TRUE(of_a.starts_with("400 ")) << of_a;
    EXPECT_TRUE(of_b.starts_with("400 ")) << of_b;
    EXPECT_NE(of_a, of_b);
  });
}

TEST(durable_chance, a_uuid_looks_like_one) {
  auto handler = [](int) -> task<std::string> { co_return weir::uuid(); };
  const stage on;
  const std::string id = ending(on, handler);
  ASSERT_EQ(id.size(), 36u) << id;
  for (const std::size_t at : {8u, 13u, 18u, 23u}) EXPECT_EQ(id[at], '-') << id;
  EXPECT_EQ(id[14], '4') << id;
}

TEST(durable_chance, policies_in_a_run_draw_the_same_delays_again) {
  // Jitter comes from the run's random numbers; a replay that drew others would be blocked.
  survives(
      [](int) -> task<std::string> {
        int tries = 0;
        auto flaky = weir::op([&]() -> task<int> {
                       const int n = ++tries;
                       (void)co_await give("try " + std::to_string(n), 0);
                       if (n < 4) throw test_support::boom(n);
                       co_return n;
                     }) |
                     weir::retry({.attempts = 4, .base = 1h, .ceiling = 10h});
        co_return std::to_string(co_await flaky());
      },
      "4");
}

TEST(durable_chance, fibers_may_draw_in_any_order) {
  survives(
      [](int) -> task<std::string> {
        auto draws = [](weir::duration d) -> task<std::uint64_t> {
          const std::uint64_t first = weir::random();
          co_await weir::sleep(d);
          co_return first ^ weir::random();
        };
        auto [a, b] = co_await weir::all(draws(2h), draws(1h));
        const std::string seen = std::to_string(a) + "/" + std::to_string(b);
        const std::string recorded = co_await weir::step("record", [&] { return seen; });
        co_await give("after", 0);
        co_return recorded == seen ? "same" : "other";
      },
      "same");
}
