// SPDX-License-Identifier: MIT
// Tests that run in a fiber, in one order or in many.
//
// FIBER_TEST and SCOPE_TEST are TESTs whose body is a coroutine in a simulated world `w`, in the
// order of production; in a SCOPE_TEST it is the body of a scope `s`. With _IN_EVERY_ORDER the body
// runs in many orders. for_each_order is for whatever must hold in every order: the adversary looks
// for one in which it does not, and a failure says how to repeat the shortest that it found.
// for_each_seed is for tests of the simulation itself, which need the options.
#pragma once

#include <weir/sim.hpp>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <source_location>
#include <stdexcept>
#include <string>

#include "support/sanitizers.hpp"

namespace weir_test {

/// What one run of a test body added to the test: its first failure, with the place.
class failed_check : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

/// A test body as a program of sim::explore: a failed EXPECT or ASSERT, which would fail the test
/// at once, fails the run instead, so that the run is shrunk and reported.
template <class F>
class checked_body final : public weir::detail::program {
 public:
  explicit checked_body(F& body) noexcept : body_(body) {}

  void run(weir::sim::world& in) override {
    ::testing::TestPartResultArray found;
    try {
      const ::testing::ScopedFakeTestPartResultReporter caught(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &found);
      body_(in);
    } catch (...) {
      if (first_failure(found).empty()) throw;
    }
    if (const std::string text = first_failure(found); !text.empty()) throw failed_check(text);
  }

 private:
  static std::string first_failure(const ::testing::TestPartResultArray& found) {
    for (int i = 0; i < found.size(); ++i) {
      const ::testing::TestPartResult& part = found.GetTestPartResult(i);
      if (!part.failed()) continue;
      return std::string(part.file_name() == nullptr ? "?" : part.file_name()) + ":" +
             std::to_string(part.line_number()) + ": " + part.message();
    }
    return {};
  }

  F& body_;
};

struct exploration {
  weir::sim::strategy strategy;
  std::int64_t runs;
};

/// dfs(1) is every order with at most one preemption, if they are not too many. A run under ASan
/// takes four times as long and looks for less: what is wrong with the memory, not with the order.
inline constexpr int fewer = WEIR_TEST_ASAN ? 3 : 1;
inline constexpr exploration explorations[] = {{weir::sim::fifo, 1},
                                               {weir::sim::random, 200 / fewer},
                                               {weir::sim::pct(2), 100 / fewer},
                                               {weir::sim::pct(3), 100 / fewer},
                                               {weir::sim::dfs(1), 250 / fewer}};

/// Calls `body(weir::sim::world&)`, which runs something in that world and checks it, for many
/// orders of what happens. A failure comes with its trace; `WEIR_TEST_TRACE='weir-trace 1 ...'` and
/// the same command repeat it, for a debugger.
template <class F>
void for_each_order(F&& body, std::source_location site = std::source_location::current()) {
  if (const char* trace = std::getenv("WEIR_TEST_TRACE")) {
    weir::sim::world again = weir::detail::make_replay(weir::sim::trace::parse(trace));
    return body(again);
  }
  checked_body<F> program(body);
  for (const exploration& e : explorations) {
    const weir::sim::report found =
        weir::detail::explore({.runs = e.runs, .strategy = e.strategy, .seed = 1}, program);
    if (found.ok()) continue;
    ADD_FAILURE_AT(site.file_name(), static_cast<int>(site.line()))
        << found << "or WEIR_TEST_TRACE='" << found.trace() << "' and the same command\n";
    return;
  }
}

/// Runs a program, a callable that makes a task, in many orders. What must hold in each of them is
/// checked inside.
template <class F>
void in_every_order(F&& program, std::source_location site = std::source_location::current()) {
  for_each_order([&](weir::sim::world& w) { w.run(program); }, site);
}

/// Calls `body(weir::sim::world&)` once, in the order of production.
template <class F>
void in_one_world(F&& body) {
  weir::sim::world w({.seed = 1, .strategy = weir::sim::fifo});
  body(w);
}

/// Runs it in the order of production only, for what does not depend on the order.
template <class F>
void in_order(F&& program) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, program);
}

inline constexpr std::uint64_t seeds = 200;

/// Calls `f(weir::sim::options)` for `fifo` and for `random` with the seeds 1 to 200; a failure
/// names the strategy and the seed.
template <class F>
void for_each_seed(F&& f) {
  {
    SCOPED_TRACE("fifo");
    weir::sim::options options{};
    options.seed = 1;
    options.strategy = weir::sim::fifo;
    f(options);
  }
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("random, seed " + std::to_string(seed));
    weir::sim::options options{};
    options.seed = seed;
    options.strategy = weir::sim::random;
    f(options);
  }
}

}  // namespace weir_test

using weir_test::for_each_order;
using weir_test::for_each_seed;

// The body follows the macro, as with TEST; `w` and `s` are its parameters.
#define WEIR_FIBER_TEST(run_it, suite, name)                                                      \
  static weir::task<> fiber_test_##suite##_##name([[maybe_unused]] weir::sim::world& w);          \
  TEST(suite, name) {                                                                             \
    weir_test::run_it(                                                                            \
        [](weir::sim::world& in) { in.run([&in] { return fiber_test_##suite##_##name(in); }); }); \
  }                                                                                               \
  static weir::task<> fiber_test_##suite##_##name([[maybe_unused]] weir::sim::world& w)
#define WEIR_SCOPE_TEST(run_it, suite, name)                                              \
  static weir::task<> scope_test_##suite##_##name([[maybe_unused]] weir::sim::world& w,   \
                                                  weir::scope& s);                        \
  TEST(suite, name) {                                                                     \
    weir_test::run_it([](weir::sim::world& in) {                                          \
      in.run([&in]() -> weir::task<> {                                                    \
        auto body = [&in](weir::scope& s) { return scope_test_##suite##_##name(in, s); }; \
        co_await weir::with_scope(body);                                                  \
      });                                                                                 \
    });                                                                                   \
  }                                                                                       \
  static weir::task<> scope_test_##suite##_##name([[maybe_unused]] weir::sim::world& w,   \
                                                  weir::scope& s)
#define FIBER_TEST(suite, name) WEIR_FIBER_TEST(in_one_world, suite, name)
#define SCOPE_TEST(suite, name) WEIR_SCOPE_TEST(in_one_world, suite, name)
#define FIBER_TEST_IN_EVERY_ORDER(suite, name) WEIR_FIBER_TEST(for_each_order, suite, name)
#define SCOPE_TEST_IN_EVERY_ORDER(suite, name) WEIR_SCOPE_TEST(for_each_order, suite, name)
