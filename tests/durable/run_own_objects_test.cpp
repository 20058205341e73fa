// SPDX-License-Identifier: MIT
// Objects that any thread may use, made by a durable run: the run may use them, and a replay finds
// them in the same state; steps, other runs and the host may not use them.
#include "durable/foreign_objects_support.hpp"

#include <memory>
#include <vector>

using namespace weir_test;

namespace {

template <class F>
std::string called_own(F f) {
  return refusal(thrown_by(f), "run_own_objects_test.cpp:");
}

template <class F>
task<std::string> awaited_own(F f) {
  std::exception_ptr error;
  try {
    (void)co_await f();
  } catch (...) {
    error = std::current_exception();
  }
  co_return refusal(error, "run_own_objects_test.cpp:");
}

/// The handler ends with the same when it is replayed after each of its first hours.
template <class H>
void expect_same_when_replayed(H handler, const std::string& want) {
  simulated([&]() -> task<> {
    EXPECT_EQ(co_await result_of(handler), want);
    EXPECT_EQ(co_await result_over(handler, 30min), want);
    EXPECT_EQ(co_await result_over(handler, 1h, 1h, 1h), want);
  });
}

task<int> fails(int n) {
  co_await weir::sleep(1h);
  throw boom(n);
}

}  // namespace

TEST(durable_own, a_breaker_opens_and_closes_by_the_clock_of_the_run) {
  auto handler = []() -> task<std::string> {
    weir::circuit_breaker cb({.minimum_calls = 2, .window = 10h, .open_for = 2h});
    text_log all;
    for (int i = 0; i < 4; ++i) {
      auto work = [i] { return fails(i); };
      const auto error = co_await error_of(weir::op(work) | weir::breaker(cb));
      all.push_back(std::to_string(boom_of(error)) + (error != nullptr ? "!" : ""));
    }
    all.push_back(cb.state() == weir::circuit_state::open ? "open" : "not open");
    co_await weir::sleep(3h);
    auto works = []() -> task<int> { co_return 5; };
    all.push_back(std::to_string(co_await (weir::op(works) | weir::breaker(cb))));
    cb.isolate();
    all.push_back(cb.state() == weir::circuit_state::isolated ? "isolated" : "not isolated");
    cb.reset();
    co_return joined(all);
  };
  expect_same_when_replayed(handler, "0!,1!,-1!,-1!,open,5,isolated");
}

TEST(durable_own, a_budget_bounds_the_retries_of_the_run) {
  auto handler = []() -> task<std::string> {
    weir::retry_budget budget({.ratio = 0, .min_per_second = 0.001, .window = 2000s});
    int attempts = 0;
    for (int i = 0; i < 2; ++i) {
      auto work = [&] { return ++attempts, fails(i); };
      const weir::retry_options again{.attempts = 5, .budget = &budget};
      (void)co_await error_of(weir::op(work) | weir::retry(again));
    }
    co_return std::to_string(attempts);
  };
  simulated([&]() -> task<> {
    const std::string straight = co_await result_of(handler);
    EXPECT_EQ(co_await result_over(handler, 30min), straight);
    EXPECT_EQ(co_await result_over(handler, 1h, 1h, 1h), straight);
  });
}

TEST(durable_own, the_pauses_of_retries_are_the_same_when_replayed) {
  simulated([]() -> task<> {
    std::vector<std::string> seen;  // in every life
    auto handler = [&]() -> task<std::string> {
      const auto begun = weir::now();
      int attempts = 0;
      auto work = [&]() -> task<int> {
        if (++attempts < 6) throw boom(1);
        co_return 1;
      };
      const weir::retry_options again{.attempts = 9, .base = 1min};
      co_await (weir::op(work) | weir::retry(again));
      seen.push_back(std::to_string((weir::now() - begun).count()));
      co_await weir::sleep(1000h);
      co_return seen.back();
    };
    const std::string end = co_await result_over(handler, 900h, 50h);
    EXPECT_EQ(joined(seen), end + "," + end + "," + end);
  });
}

TEST(durable_own, a_shared_governor_serves_its_fibers_in_order) {
  auto handler = []() -> task<std::string> {
    weir::shared_governor g(1, {.name = "mine"});
    text_log all;
    auto work = [&](int n) -> task<> {
      const weir::permit held = co_await g.acquire();
      all.push_back("<" + std::to_string(n));
      co_await weir::sleep(1h);
      all.push_back(">" + std::to_string(n));
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 3; ++i) s.spawn(work(i));
      co_await weir::sleep(1min);
      all.push_back(std::to_string(g.waiting()) + " wait");
      const auto late = co_await error_of(g.acquire_for(1min));
      all.push_back(holds<weir::timeout_error>(late) ? "timeout" : "no timeout");
      EXPECT_EQ(g.try_acquire(), std::nullopt);
    });
    all.push_back(std::to_string(g.available()));
    co_return joined(all);
  };
  expect_same_when_replayed(handler, "<0,2 wait,timeout,>0,<1,>1,<2,>2,1");
}

TEST(durable_own, fibers_that_wait_for_a_shared_governor_of_the_run_are_a_deadlock) {
  simulated([]() -> task<> {
    auto handler = []() -> task<std::string> {
      weir::shared_governor g(1, {.name = "mine"});
      const weir::permit held = co_await g.acquire();
      const weir::permit never = co_await g.acquire();
      co_return "never";
    };
    const auto error = co_await error_of(result_of(handler));
    EXPECT_EQ(code_of(error), errc::deadlock) << what_of(error);
    EXPECT_TRUE(contains(what_of(error), "governor 'mine'")) << what_of(error);
  });
}

TEST(durable_own, a_token_cancels_what_runs_under_it) {
  auto handler = []() -> task<std::string> {
    weir::cancel_source source;
    const weir::cancel_token token = source.token();
    text_log all;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto fires = [&]() -> task<> {
        co_await weir::sleep(90min);
        source.cancel("enough");
      };
      s.spawn(fires());
      const auto how = co_await weir::settle(weir::with_token(token, weir::sleep(100h)));
      all.push_back(how.is_cancelled() ? how.reason().message : "not cancelled");
    });
    all.push_back(token.cancel_requested() ? "fired" : "not fired");
    co_await weir::sleep(1h);
    const auto again = co_await weir::settle(weir::with_token(token, weir::sleep(100h)));
    all.push_back(again.is_cancelled() ? "at once" : "not cancelled");
    co_return joined(all);
  };
  expect_same_when_replayed(handler, "enough,fired,at once");
}

TEST(durable_own, policies_with_a_memory_remember_what_the_run_did) {
  auto handler = []() -> task<std::string> {
    const auto hedge = weir::hedge({.after = 100h, .max = 2, .quantile = 0.5, .min_samples = 2});
    const auto bulkhead = weir::bulkhead(1);
    weir::load_governor load({.max = 2});
    weir::adaptive_governor adaptive({.initial = 2});
    int begun = 0;
    auto work = [&](weir::duration d) -> task<int> {
      ++begun;
      co_await weir::sleep(d);
      co_return 1;
    };
    for (const weir::duration d : {1h, 1h, 5h}) {
      auto one = [&] { return work(d); };
      co_await (weir::op(one) | hedge | bulkhead | weir::bulkhead(load) | weir::bulkhead(adaptive));
    }
    co_return std::to_string(begun) + "," + std::to_string(load.limit());
  };
  expect_same_when_replayed(handler, "4,2");
}

TEST(durable_own, objects_cannot_be_touched_from_a_step) {
  simulated([]() -> task<> {
    auto handler = []() -> task<std::string> {
      weir::circuit_breaker cb({.name = "mine"});
      weir::retry_budget budget;
      weir::shared_governor g(2);
      weir::counting_governor counting(2);
      weir::cancel_source source;
      weir::permit one = co_await g.acquire();
      weir::permit other = co_await counting.acquire();
      int ran = 0;
      auto body = [&]() -> task<std::string> {
        text_log all;
        auto work = [&]() -> task<int> { co_return ++ran; };
        const weir::retry_options again{.attempts = 2, .budget = &budget};
        all.push_back(co_await awaited_own([&] { return weir::op(work) | weir::breaker(cb); }));
        all.push_back(called_own([&] { return cb.state(); }));
        all.push_back(called_own([&] { return cb.isolate(), 0; }));
        all.push_back(co_await awaited_own([&] { return weir::op(work) | weir::retry(again); }));
        all.push_back(co_await awaited_own([&] { return g.acquire(); }));
        all.push_back(called_own([&] { return g.try_acquire(); }));
        all.push_back(called_own([&] { return g.close(), 0; }));
        all.push_back(called_own([&] { return source.cancel(), 0; }));
        all.push_back(called_own([&] { return source.cancel_requested(); }));
        all.push_back(co_await awaited_own([&] { return weir::with_token(source.token(), work); }));
        all.push_back(called_own([&] { return one.release(), 0; }));
        all.push_back(called_own([&] { return other.release(), 0; }));
        co_return joined(all);
      };
      const std::string all = co_await weir::step("touch", body);
      EXPECT_EQ(ran, 0);
      EXPECT_EQ(cb.state(), weir::circuit_state::closed);
      EXPECT_EQ(g.active() + counting.active(), 2);
      EXPECT_FALSE(source.cancel_requested());
      one.release();
      other.release();
      EXPECT_EQ(g.active() + counting.active(), 0);
      co_return all;
    };
    EXPECT_EQ(co_await result_of(handler), joined(text_log(12, "refused")));
  });
}

TEST(durable_own, a_budget_is_not_for_the_attempts_of_a_step) {
  simulated([]() -> task<> {
    weir::retry_budget outside;
    auto handler = [&]() -> task<std::string> {
      weir::retry_budget mine;
      auto body = [] { return 1; };
      const std::string answer =
          called_own([&] { return weir::step("s", body, {.retry = {.budget = &mine}}); });
      co_return answer + "," +
          std::to_string(co_await weir::step("s", body, {.retry = {.budget = &outside}}));
    };
    EXPECT_EQ(co_await result_of(handler), "refused,1");
  });
}

TEST(durable_own, objects_cannot_be_touched_by_others_while_the_run_waits) {
  simulated([]() -> task<> {
    const temporary_directory place;
    weir::circuit_breaker* breaker = nullptr;
    weir::shared_governor* governor = nullptr;
    weir::cancel_source* token = nullptr;
    auto handler = [&](int n) -> task<std::string> {
      if (n == 2) {
        text_log all;
        all.push_back(called_own([&] { return breaker->reset(), 0; }));
        all.push_back(called_own([&] { return governor->try_acquire(); }));
        all.push_back(called_own([&] { return token->cancel(), 0; }));
        co_return joined(all);
      }
      weir::circuit_breaker cb;
      weir::shared_governor g(1);
      weir::cancel_source source;
      breaker = &cb;
      governor = &g;
      token = &source;
      co_await weir::sleep(1h);
      co_return source.cancel_requested() ? "touched" : "untouched";
    };
    auto use = [&](durable::engine& e) -> task<> {
      const int one = 1;
      const int two = 2;
      auto first = co_await e.start<std::string>("h", {.id = "first"}, one);
      co_await weir::sleep(1min);
      EXPECT_EQ(code_of(thrown_by([&] { return breaker->reset(), 0; })), errc::not_journaled);
      EXPECT_EQ(code_of(thrown_by([&] { return governor->try_acquire(); })), errc::not_journaled);
      EXPECT_EQ(code_of(thrown_by([&] { return token->cancel(), 0; })), errc::not_journaled);
      auto second = co_await e.start<std::string>("h", {.id = "second"}, two);
      EXPECT_EQ(co_await second.result(), "refused,refused,refused");
      EXPECT_EQ(co_await first.result(), "untouched");
    };
    co_await life_in(place, handler, use);
  });
}

TEST(durable_own, what_an_earlier_life_of_the_run_has_left_is_not_its_own) {
  simulated([]() -> task<> {
    std::shared_ptr<weir::shared_governor> kept;
    auto handler = [&]() -> task<std::string> {
      if (kept == nullptr) kept = std::make_shared<weir::shared_governor>(1);
      const std::string found = called_own([&] { return kept->try_acquire(); });
      co_await weir::sleep(1h);
      co_return found;
    };
    EXPECT_EQ(co_await result_of(handler), "allowed");
    kept = nullptr;
    EXPECT_EQ(co_await result_over(handler, 1min), "refused");
  });
}
