// SPDX-License-Identifier: MIT
// Misuse gives errors with stable codes and not undefined behaviour; what cannot be answered with
// an error, a destructor that throws during unwinding, ends the program and says where.
#include <atomic>
#include <functional>
#include <thread>
#include <type_traits>

#include "scope_support.hpp"

using namespace weir_test;

namespace {

using callable = std::function<weir::task<>()>;
using function_pointer = weir::task<> (*)();

/// Throws from its destructor if it is destroyed by a cancellation.
struct throws_when_unwound {
  ~throws_when_unwound() noexcept(false) {
    if (weir::unwinding() != nullptr) throw boom(13);
  }
};

weir::task<> unwound_without_a_catch() {
  throws_when_unwound bomb;
  co_await weir::sleep(1000h);
}

weir::task<> unwound_inside_a_try() {
  bool caught = false;
  try {
    throws_when_unwound bomb;
    co_await weir::sleep(1000h);
  } catch (const boom&) {
    caught = true;
  }
  if (caught) co_await weir::sleep(1000h);
}

weir::task<> unwound_inside_a_try_that_returns() {
  try {
    throws_when_unwound bomb;
    co_await weir::sleep(1000h);
  } catch (...) {
  }
}

void cancel_it(weir::task<> (*doomed)()) {
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    co_await weir::with_scope({.name = "minefield"}, [&](weir::scope& s) -> weir::task<> {
      auto child = s.spawn(doomed(), {.name = "doomed"});
      co_await weir::sleep(1ms);
      child.cancel();
      co_await s.join();
    });
  });
}

/// Runs `f` on a thread of its own and gives the code of what it throws.
template <class F>
std::error_code code_on_another_thread(F f) {
  std::error_code code;
  std::thread([&] { code = code_thrown_by(f); }).join();
  return code;
}

/// Awaits `op`, an op of any kind, and gives the code of its error.
template <class Make>
weir::task<std::error_code> code_of_awaiting(Make make) {
  try {
    co_await make();
  } catch (const weir::error& e) {
    co_return e.code();
  }
  co_return std::error_code{};
}

}  // namespace
TEST(misuse, a_run_inside_a_running_loop_is_refused_and_the_outer_loop_goes_on) {
  bool ran = false;
  bool went_on = false;
  weir::run([&]() -> weir::task<> {
    auto inner = [&]() -> weir::task<int> {
      ran = true;
      co_return 1;
    };
    EXPECT_EQ(code_thrown_by([&] { return weir::run(inner); }), weir::errc::nested_run);
    EXPECT_EQ(code_thrown_by([&] { return weir::run({.name = "inner"}, inner); }),
              weir::errc::nested_run);
    EXPECT_EQ(code_thrown_by([&] { return weir::sim::run({.seed = 1}, inner); }),
              weir::errc::nested_run);
    co_await weir::yield();
    went_on = true;
  });
  EXPECT_FALSE(ran);
  EXPECT_TRUE(went_on);
  EXPECT_EQ(weir::run(ready(2)), 2);
}

TEST(misuse, free_functions_outside_a_fiber_say_no_current_fiber) {
  const auto code = make_error_code(weir::errc::no_current_fiber);
  EXPECT_EQ(code_thrown_by([] { (void)weir::now(); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::wall_now(); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::random(); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::uuid(); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::sleep(1ms); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::sleep(0ms); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::sleep_until(weir::time_point{}); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::yield(); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::checkpoint(); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::this_scope(); }), code);
  EXPECT_EQ(code_thrown_by([] { (void)weir::this_context(); }), code);
}

TEST(misuse, free_functions_on_a_thread_beside_a_running_loop_say_no_current_fiber) {
  weir::run([]() -> weir::task<> {
    EXPECT_EQ(code_on_another_thread([] { (void)weir::now(); }), weir::errc::no_current_fiber);
    EXPECT_EQ(code_on_another_thread([] { (void)weir::yield(); }), weir::errc::no_current_fiber);
    co_await weir::checkpoint();
  });
}

TEST(misuse, a_scope_refuses_to_be_used_from_another_thread) {
  bool ran = false;
  auto held = std::make_shared<int>(1);
  weir::run({.name = "home"}, [&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      auto work = [held, &ran]() -> weir::task<> {
        ran = true;
        co_return;
      };
      const auto code = make_error_code(weir::errc::wrong_loop);
      EXPECT_EQ(code_on_another_thread([&] { s.spawn(work); }), code);
      EXPECT_EQ(code_on_another_thread([&] { (void)s.try_spawn(work); }), code);
      EXPECT_EQ(code_on_another_thread([&] { s.background(work); }), code);
      EXPECT_EQ(code_on_another_thread([&] { s.cancel("no"); }), code);
      EXPECT_EQ(code_on_another_thread([&] { s.defer([] {}); }), code);
      EXPECT_FALSE(s.cancel_requested());
      EXPECT_EQ(s.size(), 0u);
      co_await s.join();
    });
  });
  EXPECT_FALSE(ran);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(misuse, a_future_refuses_to_be_used_from_another_thread) {
  weir::run({.name = "home"}, []() -> weir::task<> {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      auto child = s.spawn(after(1ms, 3));
      const auto code = make_error_code(weir::errc::wrong_loop);
      EXPECT_EQ(code_on_another_thread([&] { (void)child.done(); }), code);
      EXPECT_EQ(code_on_another_thread([&] { (void)child.peek(); }), code);
      EXPECT_EQ(code_on_another_thread([&] { child.cancel(); }), code);
      const int value = co_await child;
      EXPECT_EQ(value, 3);
    });
  });
}

TEST(misuse, awaiting_a_future_of_another_loop_names_both_loops) {
  std::string what;
  std::error_code code;
  weir::run({.name = "home-loop"}, [&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      auto child = s.spawn(after(1ms, 3));
      weir::future<int> foreign = child;
      std::thread([&] {
        weir::run({.name = "other-loop"}, [&]() -> weir::task<> {
          try {
            co_await foreign;
          } catch (const weir::error& e) {
            code = e.code();
            what = e.what();
          }
        });
      }).join();
      const int value = co_await child;
      EXPECT_EQ(value, 3);
    });
  });
  EXPECT_EQ(code, weir::errc::wrong_loop);
  EXPECT_TRUE(contains(what, "home-loop")) << what;
  EXPECT_TRUE(contains(what, "other-loop")) << what;
}

TEST(misuse, spawning_on_a_scope_of_another_loop_names_both_loops) {
  std::string what;
  weir::run({.name = "home-loop"}, [&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      std::thread([&] {
        weir::run({.name = "other-loop"}, [&]() -> weir::task<> {
          what = what_of(thrown_by([&] { s.spawn(ready(1)); }));
          co_return;
        });
      }).join();
      co_return;
    });
  });
  EXPECT_TRUE(contains(what, "home-loop")) << what;
  EXPECT_TRUE(contains(what, "other-loop")) << what;
}

SCOPE_TEST_IN_EVERY_ORDER(misuse, a_result_is_taken_once) {
  weir::future<std::string> result = s.spawn([]() -> weir::task<std::string> {
    co_await weir::yield();
    co_return std::string(100, 'x');
  });
  weir::future<std::string> copy = result;
  weir::future<std::string> moved = result;
  const std::string text = co_await result.take();
  EXPECT_EQ(text, std::string(100, 'x'));
  const auto code = make_error_code(weir::errc::already_taken);
  auto take = [&]() -> weir::task<std::string> { co_return co_await result.take(); };
  const auto second_take = co_await code_of_awaiting(take);
  EXPECT_EQ(second_take, code);
  auto look = [&]() -> weir::task<> { (void)co_await copy; };
  const auto second_look = co_await code_of_awaiting(look);
  EXPECT_EQ(second_look, code);
  auto move = [&]() -> weir::task<> { (void)co_await std::move(moved); };
  const auto second_move = co_await code_of_awaiting(move);
  EXPECT_EQ(second_move, code);
}

TEST(misuse, two_takers_that_wait_at_once_get_one_value_and_one_error) {
  for_each_order([](weir::sim::world& w) {
    int values = 0;
    int refused = 0;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto result = s.spawn(after(5ms, 3));
        auto take = [&]() -> weir::task<> {
          auto take_it = [&]() -> weir::task<> { (void)co_await result.take(); };
          auto ended = co_await weir::settle(take_it);
          values += ended.is_value();
          refused += ended.is_error() && code_of(ended.error()) == weir::errc::already_taken;
        };
        s.spawn(take);
        s.spawn(take);
        co_await s.join();
      });
    });
    EXPECT_EQ(values, 1);
    EXPECT_EQ(refused, 1);
  });
}

TEST(misuse, join_and_idle_from_a_child_would_deadlock) {
  for_each_order([](weir::sim::world& w) {
    std::error_code by_join;
    std::error_code by_idle;
    std::error_code from_below;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto join = [&]() -> weir::task<> { co_await s.join(); };
        auto idle = [&]() -> weir::task<> { co_await s.idle(); };
        s.spawn([&]() -> weir::task<> {
          by_join = co_await code_of_awaiting(join);
          by_idle = co_await code_of_awaiting(idle);
          co_await weir::with_scope(
              [&](weir::scope&) -> weir::task<> { from_below = co_await code_of_awaiting(join); });
        });
        co_await s.join();
      });
    });
    EXPECT_EQ(by_join, weir::errc::would_deadlock);
    EXPECT_EQ(by_idle, weir::errc::would_deadlock);
    EXPECT_EQ(from_below, weir::errc::would_deadlock);
  });
}

TEST(misuse, an_empty_callable_is_an_empty_job) {
  const auto code = make_error_code(weir::errc::empty_job);
  EXPECT_EQ(code_thrown_by([] { weir::run(callable{}); }), code);
  EXPECT_EQ(code_thrown_by([] { weir::run(function_pointer{nullptr}); }), code);
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      EXPECT_EQ(code_thrown_by([&] { s.spawn(callable{}); }), code);
      EXPECT_EQ(code_thrown_by([&] { s.spawn(function_pointer{nullptr}); }), code);
      EXPECT_EQ(code_thrown_by([&] { (void)s.try_spawn(callable{}); }), code);
      EXPECT_EQ(code_thrown_by([&] { s.background(callable{}); }), code);
      EXPECT_EQ(s.size(), 0u);
      auto shielded = [] { return weir::shield(callable{}); };
      const auto by_shield = co_await code_of_awaiting(shielded);
      EXPECT_EQ(by_shield, code);
      auto timed = [] { return weir::with_timeout(1s, callable{}); };
      const auto by_timeout = co_await code_of_awaiting(timed);
      EXPECT_EQ(by_timeout, code);
      weir::cancel_source source;
      auto tokened = [&] { return weir::with_token(source.token(), callable{}); };
      const auto by_token = co_await code_of_awaiting(tokened);
      EXPECT_EQ(by_token, code);
    });
  });
}

TEST(misuse, a_negative_count_is_an_invalid_argument_and_the_body_never_runs) {
  bool ran = false;
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    auto make = [&] {
      return weir::with_scope({.max_children = -1}, [&](weir::scope&) -> weir::task<> {
        ran = true;
        co_return;
      });
    };
    const auto code = co_await code_of_awaiting(make);
    EXPECT_EQ(code, weir::errc::invalid_argument);
  });
  EXPECT_FALSE(ran);
}

TEST(misuse, options_are_trivially_destructible_aggregates) {
  static_assert(std::is_aggregate_v<weir::run_options>);
  static_assert(std::is_aggregate_v<weir::scope_options>);
  static_assert(std::is_aggregate_v<weir::spawn_options>);
  static_assert(std::is_aggregate_v<weir::sim::options>);
  EXPECT_TRUE(std::is_trivially_destructible_v<weir::run_options>);
  EXPECT_TRUE(std::is_trivially_destructible_v<weir::scope_options>);
  EXPECT_TRUE(std::is_trivially_destructible_v<weir::spawn_options>);
  EXPECT_TRUE(std::is_trivially_destructible_v<weir::sim::options>);
}
TEST(misuse, fibers_that_wait_for_each_other_are_a_deadlock_that_names_them) {
  std::string what;
  std::error_code code;
  try {
    weir::run([]() -> weir::task<> {
      std::optional<weir::future<void>> first;
      std::optional<weir::future<void>> second;
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        first = s.spawn([&]() -> weir::task<> { co_await *second; }, {.name = "philosopher-1"});
        second = s.spawn([&]() -> weir::task<> { co_await *first; }, {.name = "philosopher-2"});
        co_await s.join();
      });
    });
  } catch (const weir::error& e) {
    code = e.code();
    what = e.what();
  }
  EXPECT_EQ(code, weir::errc::deadlock);
  EXPECT_TRUE(contains(what, "philosopher-1")) << what;
  EXPECT_TRUE(contains(what, "philosopher-2")) << what;
}

TEST(misuse, the_message_of_a_refusal_names_the_scope) {
  std::string full;
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    co_await weir::with_scope({.name = "lifeboat", .max_children = 0},
                              [&](weir::scope& s) -> weir::task<> {
                                full = what_of(thrown_by([&] { s.spawn(ready(1)); }));
                                co_return;
                              });
  });
  EXPECT_TRUE(contains(full, "lifeboat")) << full;
}

TEST(misuse_DeathTest, a_destructor_that_throws_while_its_fiber_is_cancelled_ends_the_program) {
  EXPECT_DEATH(cancel_it(unwound_without_a_catch), "destructor threw while 'doomed'");
}

TEST(misuse_DeathTest, the_end_by_a_throwing_destructor_comes_with_the_dump) {
  EXPECT_DEATH(cancel_it(unwound_without_a_catch), "minefield");
}

TEST(misuse_DeathTest, a_catch_block_cannot_revive_a_fiber_whose_destructor_threw) {
  EXPECT_DEATH(cancel_it(unwound_inside_a_try), "destructor threw while 'doomed'");
  EXPECT_DEATH(cancel_it(unwound_inside_a_try_that_returns), "destructor threw while 'doomed'");
}
