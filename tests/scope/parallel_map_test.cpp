// SPDX-License-Identifier: MIT
// parallel_map: results in input order, never more than the limit at once, and failing fast.
#include <memory>
#include <random>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

/// How many are inside at once, and the most that ever were.
struct gauge {
  int now = 0, most = 0, entered = 0;
};

class inside {
 public:
  explicit inside(gauge& g) : g_(g) {
    ++g_.entered;
    g_.most = std::max(g_.most, ++g_.now);
  }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  ~inside() { --g_.now; }

 private:
  gauge& g_;
};

std::vector<int> upto(int n) {
  std::vector<int> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace
TEST(parallel_map, results_are_in_input_order_and_the_limit_is_never_exceeded) {
  for_each_order([](weir::sim::world& w) {
    gauge g;
    w.run([&]() -> task<> {
      std::mt19937 random(static_cast<unsigned>(weir::random()));
      int limit = static_cast<int>(random() % 5) + 1;
      std::vector<int> numbers = upto(20);
      auto square = [&](int x) -> task<int> {
        inside here(g);
        co_await weir::sleep(static_cast<int>(random() % 10 + 1) * 1ms);
        co_return x* x;
      };
      std::vector<int> squares = co_await weir::parallel_map(numbers, square, limit);
      EXPECT_EQ(squares.size(), 20u);
      for (std::size_t i = 0; i < squares.size(); ++i)
        EXPECT_EQ(squares[i], static_cast<int>(i * i));
      EXPECT_EQ(g.most, limit);
      EXPECT_EQ(g.entered, 20);
      EXPECT_EQ(g.now, 0);
    });
  });
}
FIBER_TEST_IN_EVERY_ORDER(parallel_map, a_free_place_is_filled_at_once) {
  auto t0 = weir::now();
  std::vector<int> durations{30, 10, 10, 10};
  auto work = [](int d) -> task<int> {
    co_await weir::sleep(d * 1ms);
    co_return d;
  };
  auto out = co_await weir::parallel_map(durations, work, 2);
  EXPECT_EQ(out, durations);
  EXPECT_EQ(weir::now() - t0, 30ms);
}

TEST(parallel_map, a_limit_of_one_is_serial_and_in_order) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto work = [&](int x) -> task<int> {
        log.push_back("<" + std::to_string(x));
        co_await weir::sleep((5 - x) * 1ms);
        log.push_back(std::to_string(x) + ">");
        co_return x;
      };
      (void)co_await weir::parallel_map(upto(3), work, 1);
    });
    EXPECT_EQ(joined(log), "<0,0>,<1,1>,<2,2>");
  });
}
TEST(parallel_map, the_first_failure_cancels_the_running_ones_and_starts_no_more) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    gauge g;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      auto work = [&](int x) -> task<int> {
        inside here(g);
        if (x == 1) co_return co_await fails_after(5ms, 9);
        co_return co_await slow_to_stop(log, std::to_string(x));
      };
      auto error = co_await error_of(weir::parallel_map(upto(100), work, 3));
      EXPECT_EQ(boom_of(error), 9);
      EXPECT_EQ(weir::now() - t0, 35ms);
    });
    EXPECT_EQ(g.entered, 3);
    EXPECT_EQ(g.now, 0);
    EXPECT_EQ(log.size(), 2u);
  });
}

FIBER_TEST(parallel_map, of_an_empty_range_is_empty) {
  int calls = 0;
  auto work = [&](int x) -> task<int> {
    ++calls;
    co_return x;
  };
  auto out = co_await weir::parallel_map(std::vector<int>(), work, 3);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(calls, 0);
}

FIBER_TEST(parallel_map, move_only_results_and_strings_are_moved_through) {
  std::vector<std::string> names(3);
  names[0] = "a name that does not fit into the string itself";
  auto boxed = [](const std::string& name) -> task<std::unique_ptr<std::string>> {
    co_await weir::sleep(1ms);
    co_return std::make_unique<std::string>(name);
  };
  auto out = co_await weir::parallel_map(names, boxed, 2);
  EXPECT_EQ(out.size(), 3u);
  EXPECT_TRUE(!out.empty() && out[0] && *out[0] == names[0]);
}

FIBER_TEST(parallel_map, a_negative_limit_is_refused_without_a_call) {
  int calls = 0;
  auto work = [&](int x) -> task<int> {
    ++calls;
    co_return x;
  };
  auto error = co_await attempt([&] { return weir::parallel_map(upto(3), work, -1); });
  EXPECT_EQ(code_of(error), weir::errc::invalid_argument);
  EXPECT_EQ(calls, 0);
}

TEST(parallel_map, a_cancelled_caller_cancels_and_joins_the_running_ones) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      auto work = [&](int x) { return slow_to_stop(log, std::to_string(x)); };
      auto error =
          co_await error_of(weir::with_timeout(10ms, weir::parallel_map(upto(10), work, 2)));
      EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
      EXPECT_EQ(weir::now() - t0, 40ms);
    });
    std::sort(log.begin(), log.end());
    EXPECT_EQ(joined(log), "0 stopped,1 stopped");
  });
}

FIBER_TEST_IN_EVERY_ORDER(parallel_map,
                          a_governor_is_taken_as_the_limit_and_gets_its_permits_back) {
  gauge g;
  weir::counting_governor limit(3);
  auto held = co_await limit.acquire();
  auto work = [&](int x) -> task<int> {
    inside here(g);
    co_await weir::sleep(1ms);
    co_return x;
  };
  auto out = co_await weir::parallel_map(upto(10), work, limit);
  EXPECT_EQ(out, upto(10));
  EXPECT_EQ(g.most, 2);
  EXPECT_EQ(static_cast<long>(limit.active()), 1);
}

// The last place becomes free, and before the caller gets it, it is cancelled: the last call never
// begins, so there is nothing to return.
TEST(parallel_map, a_caller_that_is_cancelled_before_its_last_call_has_no_result) {
  for_each_order([](weir::sim::world& w) {
    w.run([]() -> task<> {
      weir::cancel_source source;
      int calls = 0;
      auto work = [&](int x) -> task<int> {
        ++calls;
        if (x == 1) source.cancel("by one of the calls");
        co_return x;
      };
      auto all = weir::parallel_map(upto(3), work, 2);
      auto end = co_await weir::settle(weir::with_token(source.token(), std::move(all)));
      if (!end.is_value()) co_return;
      EXPECT_EQ(calls, 3);
      EXPECT_EQ(end.value(), upto(3));
    });
  });
}

FIBER_TEST_IN_EVERY_ORDER(parallel_map, an_overdue_defer_is_ended_instead_of_getting_a_result) {
  bool begun = false;
  bool returned = false;
  auto body = [&](weir::scope& s) -> task<> {
    s.defer([&]() -> task<> {
      begun = true;
      co_await weir::parallel_map(upto(3), [](int x) { return x; }, 2);
      returned = true;
    });
    s.defer([]() -> task<> { co_await weir::sleep(1h); });
    co_return;
  };
  auto error = co_await error_of(weir::with_scope({.grace = 1ms}, body));
  EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  EXPECT_TRUE(begun);
  EXPECT_FALSE(returned);
}
