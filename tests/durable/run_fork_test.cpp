// SPDX-License-Identifier: MIT
// The promises of fork: exactly the first commands of the handler's own fiber are kept; the origin
// is left alone; a fork is there as a whole or not at all.
#include "durable/support/crashes.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

std::string life_mark;  // goes into what steps return

task<std::string> four(int n) {
  std::string out = std::to_string(n);
  for (int i = 0; i < 4; ++i) {
    const std::string name = "s" + std::to_string(i);
    out += co_await weir::step(name, [&] {
      effect(name);
      return life_mark;
    });
  }
  co_return out;
}

task<std::string> ending_of_id(durable::engine& e, std::string id) {
  auto run = co_await e.start<std::string>("h", {.id = id}, 77);
  co_return co_await ending_of(run);
}

template <class F>
task<std::error_code> code_of_fork(F f) {
  const auto error = co_await test_support::attempt(f);
  co_return test_support::code_of(error);
}

}  // namespace

TEST(durable_fork, keeps_exactly_the_first_commands_and_the_input_and_leaves_its_origin_alone) {
  const stage on;
  life_mark = "x";
  session_of(on, four, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 5);
    EXPECT_EQ(co_await ending_of_id(e, "r"), "5xxxx");
  });
  life_mark = "y";
  session_of(on, four, [](durable::engine& e) -> task<> {
    for (int k = 0; k <= 4; ++k) {
      const std::string id = "f" + std::to_string(k);
      EXPECT_EQ(co_await e.fork("r", k, {.id = id}), id);
      const auto kept = static_cast<std::size_t>(k);
      EXPECT_EQ(co_await ending_of_id(e, id),
                "5" + std::string(kept, 'x') + std::string(4 - kept, 'y'));
    }
    const std::string own = co_await e.fork("r", 2);
    EXPECT_FALSE(own.empty());
    EXPECT_EQ(co_await ending_of_id(e, own), "5xxyy");
    const std::string again = co_await e.fork("f1", 3);  // of a fork
    EXPECT_EQ(co_await ending_of_id(e, again), "5xyyy");
    EXPECT_EQ(co_await ending_of_id(e, "r"), "5xxxx");
  });
  life_mark = "z";
  session_of(on, four, [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await ending_of_id(e, "f3"), "5xxxy");
    EXPECT_EQ(e.list().size(), 8u);
  });
}

TEST(durable_fork, that_cannot_be_is_refused_and_leaves_nothing) {
  const stage on;
  session_of(on, four, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 5);
    (void)co_await ending_of_id(e, "r");
    EXPECT_EQ(co_await code_of_fork([&] { return e.fork("r", 5); }), errc::invalid_argument);
    EXPECT_EQ(co_await code_of_fork([&] { return e.fork("r", -1); }), errc::invalid_argument);
    EXPECT_EQ(co_await code_of_fork([&] { return e.fork("nobody", 0); }), errc::invalid_argument);
    const durable::fork_options used{.id = "r"};
    EXPECT_EQ(co_await code_of_fork([&] { return e.fork("r", 1, used); }), errc::id_in_use);
    const auto error = co_await test_support::attempt([&] { return e.fork("r", 9); });
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), "has issued 4 commands"))
        << test_support::what_of(error);
    EXPECT_EQ(e.list().size(), 1u);
  });
  auto nothing = [](durable::engine&) {};
  session(on, nothing, [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await code_of_fork([&] { return e.fork("r", 1); }), errc::unknown_handler);
  });
}

TEST(durable_fork, of_a_run_that_waits_keeps_what_its_other_fibers_did_before) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto child = []() -> task<int> {
      const int a = co_await give("child a", 1);
      co_await weir::sleep(1h);
      co_return a + co_await give("child b", 1);
    };
    auto root = []() -> task<int> {
      co_await weir::sleep(1min);
      const int a = co_await give("root", 10);
      co_return a + co_await weir::signal<int>("go").wait();
    };
    auto [a, b] = co_await weir::all(child(), root());
    co_return row(a, b);
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::sleep(10min);
    const std::string forked = co_await e.fork("r", 0);
    co_await weir::sleep(1min);
    EXPECT_TRUE(co_await e.signal("r", "go", 5));
    EXPECT_TRUE(co_await e.signal(forked, "go", 7));
    EXPECT_EQ(co_await run.result(), "2,15");
    EXPECT_EQ(co_await ending_of_id(e, forked), "2,17");
  });
  EXPECT_EQ(times("child b"), 2);
}

TEST(durable_fork, of_a_blocked_run_continues_with_the_highest_version) {
  const stage on;
  life_mark = "x";
  life_that_dies_in("s2", [&] { (void)ending(on, four); });
  whole_life([&] {
    auto setup = [](durable::engine& e) {
      e.add("h",
            [](int n) -> task<std::string> {  // version 2 has other commands from the third on
              std::string out = std::to_string(n);
              for (const char* name : {"s0", "s1", "new"}) {
                out += co_await weir::step(name, [&] { return effect(name), std::string("n"); });
              }
              co_return out;
            },
            {.version = 2});
    };
    session(on, setup, [](durable::engine& e) -> task<> {
      co_await weir::sleep(1s);
      EXPECT_EQ(e.get("r")->state, run_state::blocked);
      EXPECT_EQ(co_await e.fork("r", 2, {.id = "f"}), "f");
      EXPECT_EQ(co_await ending_of_id(e, "f"), "1xxn");
      EXPECT_EQ(e.get("f")->version, 2);
      EXPECT_EQ(e.get("r")->state, run_state::blocked);
    });
  });
  EXPECT_EQ(times("s0"), 1);
  EXPECT_EQ(times("s1"), 1);
  EXPECT_EQ(times("new"), 1);
}

TEST(durable_fork, has_the_ids_of_awakeables_that_were_handed_out) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto a = weir::awakeable<std::string>("a");
    const std::string id = a.id();
    // The id is part of a recorded input, so another one would not match.
    (void)co_await weir::call<std::string>("child", id);
    note("id " + id);
    co_return co_await a.wait();
  };
  auto child = [](std::string s) -> task<std::string> { co_return s; };
  session(on, with_child(handler, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    const std::string early = co_await e.fork("r", 1);
    const std::string waits = co_await e.fork("r", 2);
    co_await weir::sleep(1s);
    EXPECT_TRUE(co_await e.resolve(id, "told"));
    EXPECT_EQ(co_await run.result(), "told");
    EXPECT_EQ(e.get(early)->state, run_state::running);
    EXPECT_EQ(e.get(waits)->state, run_state::running);
    const std::string whole = co_await e.fork("r", 2);  // with the answer
    EXPECT_EQ(co_await ending_of_id(e, whole), "told");
    const lines ids = noted("id ");
    EXPECT_EQ(std::count(ids.begin(), ids.end(), id), static_cast<long>(ids.size()));
  });
}

// A power failure at any moment: the fork is complete, or it is not there and its id is free.
TEST(durable_fork, is_there_as_a_whole_or_not_at_all_after_a_crash) {
  const stage on;
  int there = 0;
  int missing = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    sim::world w({.seed = seed, .start_time = day0});
    w.disk().set({.torn = 0.5, .reorder = 0.5});
    life_mark = "x";
    w.run(with_open_engine(on_disk(w), as_h(four), [](durable::engine& e) -> task<> {
      (void)co_await e.start<std::string>("h", {.id = "r"}, 5);
      (void)co_await ending_of_id(e, "r");
    }));
    w.run([&]() -> task<> {
      co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
        auto forks = [](durable::engine& e) -> task<> {
          co_await e.fork("r", 4, {.id = "f"});
          co_await weir::sleep(1000h);
        };
        auto lives = [&] {
          return weir::on(w.loop("process"), with_open_engine(on_disk(w), as_h(four), forks));
        };
        auto process = s.spawn(weir::settle(lives));
        for (std::uint64_t i = 0; i < seed * 3; ++i) co_await weir::yield();
        w.crash("process");
        (void)co_await process;
      });
    });
    life_mark = "y";
    w.run(with_open_engine(on_disk(w), as_h(four), [&](durable::engine& e) -> task<> {
      const auto found = e.get("f");
      ++(found ? there : missing);
      if (!found) (void)co_await e.fork("r", 4, {.id = "f"});
      EXPECT_EQ(co_await ending_of_id(e, "f"), "5xxxx");
      EXPECT_EQ(e.list().size(), 2u);
    }));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(there, 0);
  EXPECT_GT(missing, 0);
}
