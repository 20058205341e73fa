// SPDX-License-Identifier: MIT
// The promise: weir::step_key() in the body of a step is the same for every attempt and after every
// crash, and different for every other step of every run. `.attempts = unbounded` is allowed.
#include <set>

#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

void note_key(const std::string& what) { note(what + " " + weir::step_key()); }

}  // namespace

TEST(durable_step_key, is_the_same_after_every_crash) {
  auto handler = [](int) -> task<std::string> {
    co_await give("before", 0);
    co_await weir::step("pay", [] {
      note_key("key");
      effect("pay");
    });
    co_await give("after", 0);
    co_return "done";
  };
  const stage on;
  life_that_dies_in("pay", [&] { (void)ending(on, handler); });
  life_that_dies_in("pay", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "done"); });
  const lines keys = noted("key ");
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 1u);
  EXPECT_FALSE(keys[0].empty());
}

TEST(durable_step_key, is_the_same_for_every_attempt) {
  auto handler = [](int) -> task<std::string> {
    auto flaky = []() -> task<> {
      note_key("key");
      co_await weir::sleep(1s);
      note_key("key");
      if (noted("key ").size() < 6) throw std::runtime_error("not yet");
    };
    co_await weir::step("pay", flaky, {.retry = {.attempts = 5}});
    co_return "done";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "done");
  const lines keys = noted("key ");
  ASSERT_EQ(keys.size(), 6u);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 1u);
}

TEST(durable_step_key, is_different_for_every_other_step_of_every_run) {
  auto handler = [](int) -> task<std::string> {
    auto pays = []() -> task<> { co_await weir::step("pay", [] { note_key("key"); }); };
    co_await pays();
    co_await pays();
    co_await weir::step_once("pay", [] { note_key("key"); });
    co_await weir::all(pays(), pays());
    co_return "done";
  };
  std::set<std::string> keys;
  for (int journal = 0; journal < 2; ++journal) {  // the same run ids in both
    const stage on;
    auto use = [](durable::engine& e) -> task<> {
      for (const std::string id : {"a", "a.1", "b"}) {
        auto run = co_await e.start<std::string>("h", {.id = id}, 1);
        EXPECT_EQ(co_await run.result(), "done");
      }
    };
    sim::run({.seed = static_cast<std::uint64_t>(journal + 1), .start_time = day0},
             with_open_engine(options_for(on), as_h(handler), use));
    const lines noted_keys = noted("key ");
    EXPECT_EQ(noted_keys.size(), 15u);
    keys.insert(noted_keys.begin(), noted_keys.end());
  }
  EXPECT_EQ(keys.size(), 30u);
}

TEST(durable_step_key, is_known_to_the_children_of_a_body) {
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> task<bool> {
      const std::string key = weir::step_key();
      auto child = []() -> task<std::string> {
        co_await weir::yield();
        co_return weir::step_key();
      };
      auto [a, b] = co_await weir::all(child(), child());
      co_return (a == key) && (b == key);
    };
    co_return co_await weir::step("pay", body) ? "same" : "other";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "same");
}

TEST(durable_step_key, outside_of_a_step_is_an_error_that_says_where) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    const auto error = test_support::thrown_by([] { return weir::step_key(); });
    EXPECT_EQ(test_support::code_of(error), errc::not_durable);
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), "step_key_test.cpp:"))
        << test_support::what_of(error);
    co_return "done";
  };
  EXPECT_EQ(ending(on, handler), "done");
  const auto error = test_support::thrown_by([] { return weir::step_key(); });
  EXPECT_EQ(test_support::code_of(error), errc::not_durable);
}

TEST(durable_step_key, of_a_step_outside_of_runs_is_the_same_for_its_attempts_only) {
  std::vector<std::string> keys;
  sim::run({.seed = 1}, [&]() -> task<> {
    for (int i = 0; i < 2; ++i) {
      auto body = [&] {
        keys.push_back(weir::step_key());
        keys.push_back(weir::step_key());
        if (keys.size() % 4 != 0) throw std::runtime_error("again");
        return 5;
      };
      EXPECT_EQ(co_await weir::step("pay", body), 5);
    }
  }());
  ASSERT_EQ(keys.size(), 8u);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.begin() + 4).size(), 1u);
  EXPECT_EQ(std::set<std::string>(keys.begin() + 4, keys.end()).size(), 1u);
  EXPECT_NE(keys[0], keys[4]);
}

TEST(durable_step, may_be_tried_again_without_bound) {
  // More often than any number that `.attempts` may be, and over a crash.
  constexpr long tries = 1100;
  auto handler = [](int) -> task<std::string> {
    auto flaky = [&] {
      note("try");
      if (plan.in == "try" && times("try") == tries / 2) ::_exit(crashed);
      if (times("try") < tries) throw std::runtime_error("not yet");
    };
    const weir::step_options patient{.retry = {.attempts = weir::unbounded, .ceiling = 1s}};
    co_await weir::step("flaky", flaky, patient);
    co_return "done";
  };
  const stage on;
  EXPECT_EQ(life([&] {
              plan = {.in = "try"};
              (void)ending(on, handler);
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, handler), "done"); });
  EXPECT_EQ(times("try"), tries);
}
