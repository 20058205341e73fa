// SPDX-License-Identifier: MIT
// sim::world::crash: a loop ends as if its process had died.
#include <memory>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

std::error_code crash_error(sim::world& w, std::string_view name) {
  return code_of(thrown_by([&] { w.crash(name); }));
}

/// Waits until a function that was posted to `to` has run there.
task<> visited(weir::loop_ref to) {
  bool there = false;
  to.post([&] { there = true; });
  while (!there) co_await weir::sleep(1ns);
}

}  // namespace

TEST(crash, what_was_posted_to_the_loop_never_runs_and_is_destroyed) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    auto a = w.loop("a"), b = w.loop("b");
    auto token = std::make_shared<int>(1);
    bool ran = false;
    w.run([&]() -> task<> {
      for (int i = 0; i < 3; ++i) a.post([&, token] { ran = true; });
      w.crash("a");
      EXPECT_EQ(token.use_count(), 1);
      co_await visited(b);
      co_await weir::sleep(1h);
    });
    EXPECT_FALSE(ran);
  });
}

TEST(crash, the_loop_is_not_alive_and_refuses_messages) {
  sim::world w({.seed = 1});
  auto a = w.loop("a"), b = w.loop("b");
  w.run([&]() -> task<> {
    co_await visited(a);
    w.crash("a");
    EXPECT_FALSE(a.alive());
    EXPECT_TRUE(b.alive());
    auto token = std::make_shared<int>(1);
    auto message = [token] {};
    EXPECT_FALSE(a.post(std::move(message)));
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_TRUE(b.post([] {}));
  });
  EXPECT_FALSE(a.alive());
}

TEST(crash, the_name_then_gives_a_fresh_loop) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    auto old = w.loop("a");
    w.run([&]() -> task<> {
      co_await visited(old);
      w.crash("a");
      auto fresh = w.loop("a");
      EXPECT_FALSE(fresh == old);
      EXPECT_EQ(w.loop("a"), fresh);
      EXPECT_TRUE(fresh.alive());
      EXPECT_FALSE(old.alive());
      co_await visited(fresh);
      EXPECT_FALSE(old.post([] {}));
    });
  });
}

TEST(crash, a_loop_may_crash_again_and_again) {
  sim::world w({.seed = 1, .strategy = sim::random});
  std::vector<weir::loop_ref> known;
  w.run([&]() -> task<> {
    for (int i = 0; i < 50; ++i) {
      auto fresh = w.loop("a");
      for (const auto& old : known) EXPECT_FALSE(old == fresh);
      known.push_back(fresh);
      co_await visited(fresh);
      w.crash("a");
    }
  });
}

TEST(crash, what_the_loop_had_sent_before_still_arrives) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    auto a = w.loop("a"), b = w.loop("b");
    w.run([&]() -> task<> {
      bool sent = false, arrived = false;
      a.post([&] {
        b.post([&] { arrived = true; });
        sent = true;
      });
      while (!sent) co_await weir::yield();
      w.crash("a");
      co_await weir::sleep(1ns);  // time waits for messages
      EXPECT_TRUE(arrived);
    });
  });
}

TEST(crash, between_two_runs_it_is_possible_too) {
  sim::world w({.seed = 1});
  auto a = w.loop("a");
  bool ran = false;
  a.post([&] { ran = true; });
  w.crash("a");
  EXPECT_FALSE(a.alive());
  w.run([&]() -> task<> { co_await visited(w.loop("a")); });
  EXPECT_FALSE(ran);
}

TEST(crash, one_loop_may_crash_another) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    auto a = w.loop("a"), b = w.loop("b");
    w.run([&]() -> task<> {
      std::exception_ptr error;
      bool done = false;
      a.post([&] {
        error = thrown_by([&] { w.crash("b"); });
        done = true;
      });
      while (!done) co_await weir::sleep(1ns);
      EXPECT_EQ(error, nullptr) << what_of(error);
      EXPECT_FALSE(b.alive());
      EXPECT_TRUE(a.alive());
    });
  });
}

TEST(crash, neither_the_running_loop_nor_main_can_be_crashed) {
  sim::world w({.seed = 1});
  auto a = w.loop("a");
  w.run([&]() -> task<> {
    EXPECT_EQ(crash_error(w, "main"), weir::errc::invalid_argument);
    std::error_code own, main;
    bool done = false;
    a.post([&] {
      own = crash_error(w, "a");
      main = crash_error(w, "main");
      done = true;
    });
    while (!done) co_await weir::sleep(1ns);
    EXPECT_EQ(own, weir::errc::invalid_argument);
    EXPECT_EQ(main, weir::errc::invalid_argument);
    EXPECT_TRUE(a.alive());
    co_await visited(a);
  });
  EXPECT_EQ(crash_error(w, "main"), weir::errc::invalid_argument);
}

TEST(crash, a_run_with_crashes_repeats_like_any_other) {
  auto op = [](sim::world& w) -> task<> {
    std::string log;
    auto a = w.loop("a"), b = w.loop("b");
    for (char number : {'1', '2', '3'}) a.post([&, number] { log += number; });
    bool crashed = false;
    b.post([&] {
      w.crash("a");
      crashed = true;
    });
    while (!crashed) co_await weir::yield();
    co_await visited(w.loop("a"));
    if (log.size() == 2) throw std::runtime_error("half: " + log);
  };
  auto report = sim::explore({.runs = 1000, .check_every = 1}, op);
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(contains(report.message(), "half: 12")) << report;
  auto again = thrown_by([&] { sim::replay(report.trace(), op); });
  EXPECT_EQ(what_of(again), "half: 12");
}
