// SPDX-License-Identifier: MIT
// Steps: run at least once, recorded exactly once.
#include <map>
#include <optional>
#include <variant>

#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

struct parcel {
  std::string to;
  int grams = 0;
  std::vector<std::string> notes;
  bool operator==(const parcel&) const = default;
};

WEIR_DESCRIBE(parcel, to, grams, notes);

int pid() { return static_cast<int>(::getpid()); }

}  // namespace

TEST(durable_step, gives_what_its_body_gives_and_crashes_between_and_in_steps_change_nothing) {
  survives(
      [](int n) -> task<std::string> {
        const int a = co_await give("a", n + 1);
        const int b = co_await give("b", a * 10);
        const int c = co_await give("c", b + 3);
        co_return row(a, b, c);
      },
      "2,20,23");
}

TEST(durable_step, that_was_recorded_gives_the_old_result_in_the_next_life) {
  auto handler = [](int) -> task<std::string> {
    const int first = co_await weir::step("first", [] {
      effect("first");
      return pid();
    });
    co_await weir::step("second", [&] {
      note("saw " + std::to_string(first));
      effect("second");
    });
    co_return "done";
  };
  const stage on;
  life_that_dies_in("second", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "done"); });
  const lines saw = noted("saw ");
  ASSERT_EQ(saw.size(), 2u);
  EXPECT_EQ(saw[0], saw[1]);
  EXPECT_EQ(times("first"), 1);
}

TEST(durable_step, that_a_crash_cut_short_gives_the_result_of_its_next_run) {
  auto handler = [](int) -> task<std::string> {
    co_return co_await weir::step("only", [] {
      note("by " + std::to_string(pid()));
      effect("only");
      return std::to_string(pid());
    });
  };
  const stage on;
  life_that_dies_in("only", [&] { (void)ending(on, handler); });
  whole_life([&] { note("end " + ending(on, handler)); });
  const lines by = noted("by ");
  ASSERT_EQ(by.size(), 2u);
  EXPECT_NE(by[0], by[1]);
  EXPECT_EQ(noted("end "), lines{by[1]});
}

TEST(durable_step, has_a_body_that_is_plain_or_a_task_and_may_give_nothing) {
  survives(
      [](int) -> task<std::string> {
        co_await weir::step("void", [] { effect("void"); });
        auto body = [&]() -> task<int> {
          effect("task");
          co_await weir::sleep(1s);
          co_return 7;
        };
        const int seven = co_await weir::step("task", body);
        auto nothing = [&]() -> task<> {
          effect("void task");
          co_return;
        };
        co_await weir::step("void task", nothing);
        co_return std::to_string(seven);
      },
      "7");
}

TEST(durable_step, of_a_plain_function_runs_the_defers_it_registers_before_it_ends) {
  auto handler = [](int) -> task<std::string> {
    const int seven = co_await weir::step("plain", [] {
      weir::this_context().defer([]() -> task<> {
        co_await weir::sleep(1s);
        note("cleaned up");
      });
      return 7;
    });
    co_return std::to_string(seven) + (times("cleaned up") == 1 ? " after it" : " before it");
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "7 after it");
}

TEST(durable_step, of_a_plain_function_fails_if_its_defer_does_and_is_tried_again) {
  auto handler = [](int) -> task<std::string> {
    co_return co_await weir::step("plain", [] {
      note("called");
      weir::this_context().defer([] {
        if (times("called") < 3) throw std::runtime_error("not clean yet");
      });
      return std::string("clean");
    });
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "clean");
  EXPECT_EQ(times("called"), 3);
}

TEST(durable_step, of_a_plain_function_is_a_fiber_with_the_name_of_the_step) {
  auto handler = [](int) -> task<std::string> {
    co_return co_await weir::step("the name", [] {
      return std::string(weir::this_context().name()) +
             (weir::this_context().cancel_requested() ? " cancelled" : "");
    });
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "the name");
}

TEST(durable_step, of_a_plain_function_that_fails_is_called_once_for_each_attempt) {
  auto handler = [](int) -> task<std::string> {
    const weir::step_options thrice{.retry = {.attempts = 3}};
    const auto fails = [] { throw std::runtime_error("call " + std::to_string(times("call"))); };
    try {
      co_await weir::step(
          "fails",
          [&] {
            note("call");
            fails();
          },
          thrice);
    } catch (const weir::terminal_error& e) {
      co_return e.what();
    }
    co_return "no error";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "call 3");
  EXPECT_EQ(times("call"), 3);
}

TEST(durable_step, may_give_values_of_every_common_type) {
  auto handler = [](int) -> task<std::string> {
    const std::string raw("\0\n\"\\\xff\xc3\xa9", 7);
    const parcel sent{"Oslo", 250, {"fragile", raw}};
    auto i = co_await weir::step("i", [] { return std::int64_t{-9'007'199'254'740'993}; });
    auto u = co_await weir::step("u", [] { return ~std::uint64_t{0}; });
    auto d = co_await weir::step("d", [] { return 0.1 + 0.2; });
    auto b = co_await weir::step("b", [] { return true; });
    auto s = co_await weir::step("s", [&] { return raw; });
    auto o = co_await weir::step("o", [] { return std::optional<int>(); });
    auto m = co_await weir::step("m", [] { return std::map<std::string, int>{{"", 1}}; });
    auto v = co_await weir::step("v", [] { return std::variant<int, std::string>("3"); });
    auto t = co_await weir::step("t", [] { return std::chrono::milliseconds(-7); });
    auto p = co_await weir::step("p", [&] { return sent; });
    const bool same = i == -9'007'199'254'740'993 && u == ~std::uint64_t{0} && d == 0.1 + 0.2 &&
                      b && s == raw && !o && m.size() == 1 && v.index() == 1 && t == -7ms &&
                      p == sent;
    co_await give(same ? "same" : "different", 0);
    co_return same ? "same" : "different";
  };
  survives(handler, "same");
}

TEST(durable_step, may_give_large_values) {
  // behaviours: beyond min(64 KiB, segment_bytes / 4) a payload is kept beside the log.
  survives(
      [](int) -> task<std::string> {
        std::size_t sum = 0;
        for (const std::size_t size : {100u, 16u * 1024u, 70'000u, 300'000u}) {
          const std::string big =
              co_await weir::step("big", [&] { return std::string(size, 'x'); });
          sum += big.size();
          co_await give("after " + std::to_string(size), 0);
        }
        co_return std::to_string(sum);
      },
      std::to_string(100 + 16 * 1024 + 70'000 + 300'000));
}

TEST(durable_step, there_may_be_more_of_than_fit_into_a_segment) {
  auto handler = [](int) -> task<std::string> {
    int sum = 0;
    for (int i = 0; i < 2000; ++i) {
      sum += co_await weir::step("one of many", [&] {
        if (i == 1999) effect("last");
        return i;
      });
    }
    co_return std::to_string(sum);
  };
  const stage on;
  life_that_dies_in("last", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "1999000"); });
  EXPECT_EQ(times("last"), 2);
}

TEST(durable_step, sleeps_and_reads_the_clock_plainly_in_its_body) {
  // "sleep, with_timeout, now, wall_now, random, uuid, policies ... are plain there"
  auto handler = [](int) -> task<std::string> {
    auto body = [&]() -> task<std::string> {
      const auto born = weir::wall_now();
      co_await weir::sleep(1h);
      const bool one_hour = weir::wall_now() - born == 1h;
      bool late = false;
      try {
        co_await weir::with_timeout(1min, weir::sleep(1h));
      } catch (const weir::timeout_error&) {
        late = true;
      }
      note("random " + std::to_string(weir::random()) + weir::uuid());
      effect("body");
      co_return one_hour&& late&& weir::now() > weir::time_point() ? "plain" : "odd";
    };
    co_return co_await weir::step("body", body);
  };
  const stage on;
  life_that_dies_in("body", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler, 10h), "plain"); });
  EXPECT_EQ(noted("random ").size(), 2u);
}

TEST(durable_step, uses_threads_and_policies_in_its_body) {
  auto handler = [](int) -> task<std::string> {
    int tries = 0;
    auto body = [&]() -> task<int> {
      auto flaky = weir::op([&]() -> task<int> {
                     if (++tries < 3) throw test_support::boom(tries);
                     co_return co_await weir::blocking([] { return 5; });
                   }) |
                   weir::retry({.attempts = 3, .base = 1ms});
      co_return co_await flaky();
    };
    const int five = co_await weir::step("body", body);
    co_return std::to_string(five) + " after " + std::to_string(tries);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "5 after 3");
}

TEST(durable_step, may_spawn_in_its_body_and_joins_what_it_spawned) {
  survives(
      [](int) -> task<std::string> {
        auto body = [&]() -> task<int> {
          effect("body");
          co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
            auto a = s.spawn(nap(2s, 20));
            auto b = s.spawn(nap(1s, 3));
            co_return co_await a + co_await b;
          });
        };
        co_return std::to_string(co_await weir::step("body", body));
      },
      "23");
}

TEST(durable_step, may_run_beside_others_and_each_is_recorded_when_it_ends) {
  auto handler = [](int) -> task<std::string> {
    auto slow = [&]() -> task<int> {
      effect("slow begins");
      co_await weir::sleep(2h);
      effect("slow ends");
      co_return 1;
    };
    auto quick = [&]() -> task<int> {
      effect("quick begins");
      co_await weir::sleep(1h);
      effect("quick ends");
      co_return 2;
    };
    auto [a, b] = co_await weir::all(weir::step("slow", slow), weir::step("quick", quick));
    co_return row(a, b);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "1,2");
  // They begin in the order of the calls.
  EXPECT_EQ(ledger(), (lines{"slow begins", "quick begins", "quick ends", "slow ends"}));
  survives(handler, "1,2", at_once_and_late, steps::concurrent);
}

TEST(durable_step, that_ended_beside_a_longer_one_is_not_run_again) {
  auto handler = [](int) -> task<std::string> {
    auto slow = [&]() -> task<int> {
      co_await weir::sleep(2h);
      effect("slow ends");
      co_return 1;
    };
    auto [a, b] = co_await weir::all(weir::step("slow", slow), give("quick", 2));
    co_return row(a, b);
  };
  const stage on;
  life_that_dies_in("slow ends", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler, 50h), "1,2"); });
  EXPECT_EQ(times("quick"), 1);
  EXPECT_EQ(times("slow ends"), 2);
}

// -------------------------------------------------------------------------------- outside of a run

FIBER_TEST(durable_step, outside_of_a_run_just_runs_its_body) {
  EXPECT_EQ(co_await weir::step("plain", [] { return 1; }), 1);
  auto body = [&]() -> task<int> {
    co_await weir::sleep(1h);
    co_return 2;
  };
  EXPECT_EQ(co_await weir::step("task", body), 2);
  int runs = 0;
  co_await weir::step("void", [&] { ++runs; });
  EXPECT_EQ(co_await weir::step_once("once", [&] { return ++runs; }), 2);
  // Not even another step is refused there: nothing is journaled.
  auto outer = [&]() -> task<int> { co_return co_await weir::step("inner", [] { return 3; }); };
  EXPECT_EQ(co_await weir::step("outer", outer), 3);
}

FIBER_TEST(durable_step, outside_of_a_run_has_the_same_policy) {
  int tries = 0;
  auto flaky = [&]() -> int {
    if (++tries < 3) throw test_support::boom(tries);
    return tries;
  };
  EXPECT_EQ(co_await weir::step("flaky", flaky, {.retry = {.attempts = 3, .base = 1ms}}), 3);
  tries = 0;
  auto declined = [&]() -> int {
    ++tries;
    throw weir::terminal_error("declined");
  };
  auto error = co_await test_support::attempt([&] { return weir::step("declined", declined); });
  EXPECT_TRUE(test_support::holds<weir::terminal_error>(error));
  EXPECT_TRUE(test_support::contains(test_support::what_of(error), "declined"));
  EXPECT_EQ(tries, 1);
}
