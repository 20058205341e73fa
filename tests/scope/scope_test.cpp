// SPDX-License-Identifier: MIT
// The lifetime of scopes and their children: what a scope waits for, what it refuses, what it
// forgets, and what a dump of it shows.
#include <functional>
#include <sstream>

#include "scope_support.hpp"

using namespace weir_test;

namespace {

weir::local<int> handed_down_level{1};

weir::task<> innermost_frame() { co_await weir::sleep(1h); }
weir::task<> frame_in_the_middle() { co_await innermost_frame(); }
weir::task<> outermost_frame() { co_await frame_in_the_middle(); }

std::string dump_text() {
  std::ostringstream out;
  weir::dump(out);
  return out.str();
}

/// Throws when it is copied, so a spawn that is given an lvalue of it cannot succeed.
struct cannot_be_copied {
  cannot_be_copied() = default;
  cannot_be_copied(const cannot_be_copied&) { throw boom(1); }
  cannot_be_copied(cannot_be_copied&&) noexcept = default;
  weir::task<> operator()() const { co_return; }
};

}  // namespace
TEST(scope, the_value_of_the_body_leaves_run_unchanged) {
  auto value = weir::sim::run({.seed = 1}, []() -> weir::task<std::unique_ptr<int>> {
    co_return co_await weir::with_scope([](weir::scope&) -> weir::task<std::unique_ptr<int>> {
      co_return std::make_unique<int>(42);
    });
  });
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 42);
}
TEST(scope, an_error_of_the_root_leaves_run_as_the_bare_error) {
  auto error = thrown_by([] {
    return weir::sim::run({.seed = 1}, []() -> weir::task<int> {
      co_return co_await weir::with_scope(
          [](weir::scope&) -> weir::task<int> { co_return co_await fails_after(1ms, 7); });
    });
  });
  EXPECT_EQ(boom_of(error), 7);
}
TEST(scope, a_scope_whose_body_ended_first_waits_for_every_child) {
  for_each_order([](weir::sim::world& w) {
    int finished = 0;
    w.run([&]() -> weir::task<> {
      const auto start = weir::now();
      const int value = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
        for (int i = 1; i <= 5; ++i) {
          s.spawn([&finished, i]() -> weir::task<> {
            co_await weir::sleep(i * 10ms);
            ++finished;
          });
        }
        co_return 3;
      });
      EXPECT_EQ(value, 3);
      EXPECT_EQ(finished, 5);
      EXPECT_EQ(weir::now() - start, 50ms);
    });
  });
}
TEST(scope, a_child_may_be_spawned_after_the_body_has_awaited) {
  for_each_order([](weir::sim::world& w) {
    int result = 0;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        co_await weir::sleep(10ms);
        s.spawn([&]() -> weir::task<> { result = co_await after(10ms, 5); });
        EXPECT_EQ(s.size(), 1u);
      });
      EXPECT_EQ(result, 5);
    });
  });
}

// A sibling that yields for ever gets at most one turn while an empty scope is joined.
// In the order of production, where an await that need not wait keeps its turn.
TEST(scope, an_empty_scope_is_joined_at_once) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> weir::task<> {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      int turns = 0;
      auto ticker = s.spawn([&]() -> weir::task<> {
        while (true) {
          ++turns;
          co_await weir::yield();
        }
      });
      co_await weir::yield();
      const int before = turns;
      co_await weir::with_scope([](weir::scope& empty) -> weir::task<> { co_await empty.join(); });
      co_await weir::with_scope([](weir::scope&) -> weir::task<> { co_return; });
      EXPECT_LE(turns - before, 2);
      ticker.cancel();
      co_await s.join();
    });
  });
}
TEST(scope, a_joined_scope_refuses_to_spawn_and_never_calls_the_callable) {
  for_each_order([](weir::sim::world& w) {
    bool ran = false;
    std::error_code after_join;
    std::error_code in_defer;
    auto held = std::make_shared<int>(1);
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto callable = [held, &ran]() -> weir::task<> {
          ran = true;
          co_return;
        };
        auto refused = [&s, callable] { s.spawn(callable); };
        s.defer([&in_defer, refused] { in_defer = code_thrown_by(refused); });
        s.spawn(sleep_for(1ms));
        co_await s.join();
        after_join = code_thrown_by(refused);
      });
    });
    EXPECT_EQ(after_join, weir::errc::scope_closed);
    EXPECT_EQ(in_defer, weir::errc::scope_closed);
    EXPECT_FALSE(ran);
    EXPECT_EQ(held.use_count(), 1);
  });
}
TEST(scope, a_spawn_on_a_cancelled_scope_destroys_what_it_was_given_at_once) {
  for_each_order([](weir::sim::world& w) {
    bool ran = false;
    auto held = std::make_shared<int>(1);
    std::optional<weir::future<void>> refused;
    w.run([&]() -> weir::task<> {
      const int value = co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
        s.cancel("no more");
        const long fibers = live_fibers();
        {
          auto callable = [held, &ran]() -> weir::task<> {
            ran = true;
            co_return;
          };
          refused = s.spawn(std::move(callable));
        }
        EXPECT_EQ(held.use_count(), 1);
        auto frame = [&ran](std::shared_ptr<int>) -> weir::task<> {
          ran = true;
          co_return;
        };
        s.spawn(frame(held));
        EXPECT_EQ(held.use_count(), 1);
        EXPECT_EQ(live_fibers(), fibers);
        EXPECT_EQ(s.size(), 0u);
        EXPECT_TRUE(refused->done());
        co_return 4;
      });
      EXPECT_EQ(value, 4);
    });
    EXPECT_FALSE(ran);
    ASSERT_NE(refused->peek(), nullptr);
    ASSERT_TRUE(refused->peek()->is_cancelled());
    EXPECT_EQ(message_of(refused->peek()->reason()), "no more");
  });
}
FIBER_TEST_IN_EVERY_ORDER(scope, join_waits_for_siblings_that_children_spawn_meanwhile) {
  int finished = 0;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    const auto start = weir::now();
    s.spawn([&]() -> weir::task<> {
      co_await weir::sleep(10ms);
      s.spawn([&]() -> weir::task<> {
        co_await weir::sleep(10ms);
        ++finished;
        s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(10ms);
          ++finished;
        });
      });
    });
    co_await s.join();
    EXPECT_EQ(finished, 2);
    EXPECT_EQ(weir::now() - start, 30ms);
    EXPECT_EQ(s.size(), 0u);
  });
}
TEST(scope, a_child_that_a_grandchild_spawns_after_the_body_ended_is_joined) {
  for_each_order([](weir::sim::world& w) {
    bool last_finished = false;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        s.spawn([&]() -> weir::task<> {
          co_await weir::with_scope([&](weir::scope& inner) -> weir::task<> {
            inner.spawn([&]() -> weir::task<> {
              co_await weir::sleep(10ms);
              s.spawn([&]() -> weir::task<> {
                co_await weir::sleep(10ms);
                last_finished = true;
              });
            });
            co_return;
          });
        });
        co_return;
      });
      EXPECT_TRUE(last_finished);
    });
  });
}
FIBER_TEST_IN_EVERY_ORDER(
    scope, a_child_runs_under_the_scope_it_is_spawned_into_and_not_under_its_spawner) {
  int seen_level = 0;
  bool had_deadline = true;
  bool finished = false;
  co_await weir::with_scope([&](weir::scope& outer) -> weir::task<> {
    auto handed_down = [&]() -> weir::task<> {
      outer.spawn([&]() -> weir::task<> {
        seen_level = handed_down_level.get();
        had_deadline = weir::this_context().deadline().has_value();
        co_await weir::sleep(50ms);
        finished = true;
      });
      EXPECT_EQ(handed_down_level.get(), 2);
      co_await weir::sleep(1h);
    };
    auto timed = [&]() -> weir::task<> { co_await weir::with_timeout(10ms, handed_down); };
    auto ended = co_await weir::settle(weir::with_local(handed_down_level, 2, timed));
    EXPECT_TRUE(ended.is_error());
    EXPECT_FALSE(finished);
  });
  EXPECT_EQ(seen_level, 1);
  EXPECT_FALSE(had_deadline);
  EXPECT_TRUE(finished);
}
FIBER_TEST(scope, a_spawn_that_throws_leaves_the_scope_as_it_was) {
  const int sum = co_await weir::with_scope([](weir::scope& s) -> weir::task<int> {
    s.spawn(sleep_for(1ms));
    const auto size = s.size();
    const long fibers = live_fibers();
    cannot_be_copied callable;
    EXPECT_EQ(boom_of(thrown_by([&] { s.spawn(callable); })), 1);
    EXPECT_EQ(s.size(), size);
    EXPECT_EQ(live_fibers(), fibers);
    auto usable = s.spawn(after(1ms, 6));
    co_return co_await usable;
  });
  EXPECT_EQ(sum, 6);
}

// A callable is called in the child's fiber, so what it throws is the child's error.
FIBER_TEST_IN_EVERY_ORDER(scope,
                          a_callable_that_throws_when_called_fails_its_child_and_not_the_spawn) {
  int seen = 0;
  co_await weir::with_scope({.failure = weir::failure::isolate},
                            [&](weir::scope& s) -> weir::task<> {
                              auto f = s.spawn([]() -> weir::task<> { throw boom(4); });
                              EXPECT_FALSE(f.done());
                              try {
                                co_await f;
                              } catch (const boom& e) {
                                seen = e.n;
                              }
                            });
  EXPECT_EQ(seen, 4);
}

FIBER_TEST_IN_EVERY_ORDER(scope, spawn_never_runs_the_child_inline) {
  bool ran = false;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn([&]() -> weir::task<> {
      ran = true;
      co_return;
    });
    EXPECT_FALSE(ran);
    EXPECT_EQ(s.size(), 1u);
    co_await s.join();
    EXPECT_TRUE(ran);
  });
}

// Every consumer gets the same outcome; the page has no one-shot mode.
TEST(scope, many_fibers_await_one_child_and_get_the_same_outcome) {
  for_each_order([](weir::sim::world& w) {
    std::vector<const std::string*> seen;
    int errors = 0;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope({.failure = weir::failure::isolate},
                                [&](weir::scope& s) -> weir::task<> {
                                  auto good = s.spawn([]() -> weir::task<std::string> {
                                    co_await weir::sleep(5ms);
                                    co_return std::string(100, 'x');
                                  });
                                  auto bad = s.spawn(fails_after(5ms, 3));
                                  for (int i = 0; i < 4; ++i) {
                                    s.spawn([&]() -> weir::task<> {
                                      const std::string& text = co_await good;
                                      seen.push_back(&text);
                                      try {
                                        co_await bad;
                                      } catch (const boom& e) {
                                        errors += e.n;
                                      }
                                    });
                                  }
                                  co_await s.join();
                                  EXPECT_EQ(seen.size(), 4u);
                                  for (const std::string* text : seen)
                                    EXPECT_EQ(text, &good.peek()->value());
                                  EXPECT_EQ(errors, 12);
                                });
    });
  });
}
FIBER_TEST_IN_EVERY_ORDER(scope, dropping_a_child_handle_neither_cancels_nor_detaches_the_child) {
  bool finished = false;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    {
      auto dropped = s.spawn([&]() -> weir::task<> {
        co_await weir::sleep(10ms);
        finished = true;
      });
      EXPECT_FALSE(dropped.done());
    }
    EXPECT_EQ(s.size(), 1u);
    co_return;
  });
  EXPECT_TRUE(finished);
}

// There is no age: time stamps are taken only while the inspector is armed.
TEST(scope, a_dump_shows_names_waits_and_every_frame_of_a_parked_child) {
  std::string text;
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    co_await weir::with_scope({.name = "warehouse"}, [&](weir::scope& s) -> weir::task<> {
      auto named = s.spawn(outermost_frame(), {.name = "forklift"});
      s.spawn(
          [&]() -> weir::task<> {
            auto ended = co_await weir::settle([&]() -> weir::task<> { co_await named; });
            EXPECT_FALSE(ended.is_value());
          },
          {.name = "foreman"});
      co_await weir::sleep(1ms);
      EXPECT_EQ(std::string(s.name()), "warehouse");
      text = dump_text();
      named.cancel();
      co_await s.join();
    });
  });
  for (const char* part : {"warehouse", "forklift", "foreman", "sleep", "future", "innermost_frame",
                           "frame_in_the_middle", "outermost_frame", "scope_test.cpp:"}) {
    EXPECT_TRUE(contains(text, part)) << "no '" << part << "' in\n" << text;
  }
  EXPECT_LT(text.find("warehouse"), text.find("forklift")) << text;
}
TEST(scope, a_child_without_a_name_is_called_after_its_function) {
  std::string text;
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      auto unnamed = s.spawn(innermost_frame());
      co_await weir::sleep(1ms);
      text = dump_text();
      unnamed.cancel();
    });
  });
  EXPECT_TRUE(contains(text, "innermost_frame")) << text;
}
TEST(scope, max_children_is_never_exceeded_and_a_finished_child_frees_its_place) {
  for_each_order([](weir::sim::world& w) {
    int running = 0;
    int most = 0;
    int started = 0;
    int refused = 0;
    w.run([&]() -> weir::task<> {
      auto work = [&]() -> weir::task<> {
        most = std::max(most, ++running);
        ++started;
        co_await weir::sleep(10ms);
        --running;
      };
      co_await weir::with_scope({.max_children = 3}, [&](weir::scope& s) -> weir::task<> {
        s.background([]() -> weir::task<> { co_await weir::sleep(1000h); });
        while (started < 12) {
          auto accepted = s.try_spawn(work);
          EXPECT_LE(s.size(), 3u);
          if (accepted) continue;
          ++refused;
          EXPECT_EQ(s.size(), 3u);
          EXPECT_EQ(code_thrown_by([&] { s.spawn(work); }), weir::errc::scope_full);
          co_await weir::sleep(1ms);
        }
      });
      EXPECT_GE(started, 12);
      EXPECT_EQ(most, 3);
      EXPECT_GT(refused, 0);
    });
  });
}

// Neither the body nor a service counts, and 0 is a limit and not its absence.
FIBER_TEST(scope, a_limit_of_zero_children_refuses_the_first_one) {
  co_await weir::with_scope({.max_children = 0}, [](weir::scope& s) -> weir::task<> {
    EXPECT_FALSE(s.try_spawn(ready(1)).has_value());
    EXPECT_EQ(code_thrown_by([&] { s.spawn(ready(1)); }), weir::errc::scope_full);
    co_await weir::checkpoint();
  });
}
FIBER_TEST(scope, a_failing_child_frees_its_place) {
  int failed = 0;
  co_await weir::with_scope({.failure = weir::failure::isolate, .max_children = 1},
                            [&](weir::scope& s) -> weir::task<> {
                              for (int i = 1; i <= 100; ++i) {
                                auto f = s.spawn(fails_after(1ms, i));
                                try {
                                  co_await f;
                                } catch (const boom& e) {
                                  failed += e.n == i;
                                }
                              }
                            });
  EXPECT_EQ(failed, 100);
}
FIBER_TEST(scope, an_error_that_is_no_std_exception_is_kept_and_grouped) {
  auto throw_int = []() -> weir::task<> {
    co_await weir::sleep(1ms);
    throw 42;
  };
  int caught = 0;
  try {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      s.spawn(throw_int);
      co_return;
    });
  } catch (int n) {
    caught = n;
  }
  EXPECT_EQ(caught, 42);
  std::vector<std::exception_ptr> leaves;
  try {
    co_await weir::with_scope({.errors = weir::errors::all}, [&](weir::scope& s) -> weir::task<> {
      s.spawn(throw_int);
      co_return;
    });
  } catch (const weir::error_group& g) {
    leaves = g.flatten();
  }
  EXPECT_EQ(leaves.size(), 1u);
  EXPECT_TRUE(!leaves.empty() && holds<int>(leaves.front()));
}
