// SPDX-License-Identifier: MIT
// start_every: a periodic job in the background, and the handle that stops it.
#include <sstream>

#include "toolkit_support.hpp"

using namespace weir_test;

static_assert(std::is_move_constructible_v<weir::every_handle>);
static_assert(std::is_move_assignable_v<weir::every_handle>);
static_assert(!std::is_copy_constructible_v<weir::every_handle>);
static_assert(!std::is_default_constructible_v<weir::every_handle>);

namespace {

/// A job that counts its runs, each of which takes `length`.
auto counting(int& runs, weir::duration length = 0ms) {
  return [&runs, length]() -> task<> {
    ++runs;
    if (length > 0ms) co_await weir::sleep(length);
  };
}

/// A job that fails in its run number `last`.
auto failing_in_run(int& runs, int last) {
  return [&runs, last]() -> task<> {
    if (++runs == last) throw boom(last);
    co_return;
  };
}

/// Runs `body` in a scope and says how that ended.
template <class F>
task<std::exception_ptr> error_of_scope(F& body, weir::scope_options options = {}) {
  co_return co_await error_of(weir::with_scope(options, body));
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(start_every, it_runs_in_the_background_until_its_scope_ends) {
  int runs = 0;
  std::optional<weir::every_handle> kept;
  auto body = [&](weir::scope& s) -> task<> {
    kept = weir::start_every(s, 10ms, counting(runs, 5ms));
    EXPECT_EQ(s.size(), 0u);  // not an ordinary child: nobody waits for it
    co_await weir::sleep(38ms);
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 2);
  const auto error = co_await error_of(kept->wait());
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
}

FIBER_TEST_IN_EVERY_ORDER(start_every, the_options_are_those_of_every) {
  int runs = 0;
  auto body = [&](weir::scope& s) -> task<> {
    auto h = weir::start_every(s, 10ms, {.fixed_rate = true}, counting(runs, 9ms));
    co_await weir::sleep(105ms);
    h.stop();
    co_await h.wait();
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 10);
}

FIBER_TEST(start_every, bad_arguments_are_refused_and_nothing_is_started) {
  int runs = 0;
  auto body = [&](weir::scope& s) -> task<> {
    auto job = counting(runs);
    const long fibers = live_fibers();
    auto code = [&](weir::duration interval, auto op) {
      return code_thrown_by([&] { (void)weir::start_every(s, interval, op); });
    };
    EXPECT_EQ(code(0ms, job), errc::invalid_argument);
    EXPECT_EQ(code(-1ms, job), errc::invalid_argument);
    EXPECT_EQ(code(0ms, callable{}), errc::invalid_argument);  // checked first
    EXPECT_EQ(code(1ms, callable{}), errc::empty_job);
    EXPECT_EQ(code(1ms, function_pointer{nullptr}), errc::empty_job);
    EXPECT_EQ(live_fibers(), fibers);
    co_await s.join();
    EXPECT_EQ(code(1ms, job), errc::scope_closed);
    co_await weir::sleep(10ms);
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 0);
}

FIBER_TEST_IN_EVERY_ORDER(start_every, on_a_cancelled_scope_nothing_is_started_and_wait_tells_why) {
  int runs = 0;
  std::optional<weir::every_handle> kept;
  auto token = std::make_shared<int>(1);
  auto body = [&](weir::scope& s) -> task<> {
    s.cancel("too late");
    auto job = [&runs, token]() -> task<> {
      ++runs;
      co_return;
    };
    kept = weir::start_every(s, 1ms, std::move(job));
    EXPECT_EQ(token.use_count(), 1);  // destroyed at once
    kept->stop();
    co_await weir::shield(weir::sleep(10ms));
  };
  (void)co_await error_of_scope(body);
  EXPECT_EQ(runs, 0);
  try {
    co_await kept->wait();
    ADD_FAILURE() << "returned";
  } catch (const weir::cancelled_error& e) {
    EXPECT_EQ(message_of(e.reason()), "too late");
  }
}

FIBER_TEST(start_every, a_dump_names_it_and_says_when_it_runs_next) {
  std::ostringstream out;
  auto body = [&](weir::scope& s) -> task<> {
    int runs = 0;
    auto h = weir::start_every(s, 10ms, counting(runs));
    co_await weir::sleep(4ms);
    weir::dump(out);
    h.stop();
    co_await h.wait();
  };
  co_await weir::with_scope(body);
  EXPECT_TRUE(contains(out.str(), "service 'every'")) << out.str();
  EXPECT_TRUE(contains(out.str(), "waits on every, sleep, 6 ms left")) << out.str();
}

// ------------------------------------------------------------------ stop

FIBER_TEST_IN_EVERY_ORDER(every_handle, stopped_before_the_first_run_the_job_never_runs) {
  for (auto pause : {0ms, 5ms}) {
    int runs = 0;
    auto body = [&](weir::scope& s) -> task<> {
      auto h = weir::start_every(s, 10ms, counting(runs));
      co_await weir::sleep(pause);
      const auto start = weir::now();
      h.stop();
      co_await h.wait();
      EXPECT_EQ(ms_since(start), 0);  // it did not sleep on
    };
    co_await weir::with_scope(body);
    EXPECT_EQ(runs, 0);
  }
}

FIBER_TEST_IN_EVERY_ORDER(every_handle, stopped_between_two_runs_there_is_no_further_run) {
  int runs = 0;
  auto body = [&](weir::scope& s) -> task<> {
    auto h = weir::start_every(s, 10ms, counting(runs));
    co_await weir::sleep(25ms);
    const long timers = live_timers();
    h.stop();
    h.stop();  // does nothing
    EXPECT_EQ(live_timers(), timers - 1);
    co_await weir::sleep(100ms);
    co_await h.wait();
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 2);
}

FIBER_TEST_IN_EVERY_ORDER(every_handle,
                          stopped_in_the_instant_of_a_run_it_does_not_begin_that_run_any_more) {
  int runs = 0;
  int runs_at_stop = 0;
  auto body = [&](weir::scope& s) -> task<> {
    auto h = weir::start_every(s, 10ms, counting(runs));
    co_await weir::sleep(10ms);
    h.stop();
    runs_at_stop = runs;
    co_await h.wait();
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, runs_at_stop);  // no run after stop
}

FIBER_TEST_IN_EVERY_ORDER(every_handle,
                          stopped_during_a_run_that_run_finishes_and_wait_waits_for_it) {
  const auto start = weir::now();
  int runs = 0;
  int finished = 0;
  auto job = [&]() -> task<> {
    ++runs;
    co_await weir::sleep(50ms);
    ++finished;
  };
  auto body = [&](weir::scope& s) -> task<> {
    auto h = weir::start_every(s, 10ms, job);
    co_await weir::sleep(20ms);
    h.stop();
    EXPECT_EQ(ms_since(start), 20);  // stop itself does not wait
    co_await h.wait();
    EXPECT_EQ(ms_since(start), 60);
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(finished, 1);
}

FIBER_TEST_IN_EVERY_ORDER(every_handle, a_job_may_stop_itself) {
  int runs = 0;
  std::optional<weir::every_handle> h;
  auto body = [&](weir::scope& s) -> task<> {
    auto job = [&]() -> task<> {
      if (++runs == 3) h->stop();
      co_return;
    };
    h = weir::start_every(s, 1ms, job);
    co_await h->wait();
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 3);
}

FIBER_TEST_IN_EVERY_ORDER(every_handle, dropped_it_stops_the_job) {
  int runs = 0;
  int others = 0;
  auto body = [&](weir::scope& s) -> task<> {
    {
      auto h = weir::start_every(s, 10ms, counting(runs));
      co_await weir::sleep(15ms);
    }
    auto h = weir::start_every(s, 10ms, counting(others));
    co_await weir::sleep(15ms);
    h = weir::start_every(s, 1h, counting(runs));  // drops the first job, not the second
    auto moved = std::move(h);
    co_await weir::sleep(100ms);
    EXPECT_EQ(code_thrown_by([&] { h.stop(); }), errc::invalid_argument);
    moved.stop();
    co_await moved.wait();
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(others, 1);
}

FIBER_TEST_IN_EVERY_ORDER(every_handle,
                          stopped_it_keeps_its_clean_end_although_the_scope_cuts_the_last_run) {
  int runs = 0;
  std::optional<weir::every_handle> h;
  auto body = [&](weir::scope& s) -> task<> {
    h = weir::start_every(s, 10ms, counting(runs, 1h));
    co_await weir::sleep(15ms);
    h->stop();
  };
  co_await weir::with_scope(body);
  co_await h->wait();
  EXPECT_EQ(runs, 1);
}

// ------------------------------------------------------------------ wait

FIBER_TEST_IN_EVERY_ORDER(every_handle, a_second_wait_is_refused) {
  int runs = 0;
  auto body = [&](weir::scope& s) -> task<> {
    auto h = weir::start_every(s, 10ms, counting(runs));
    h.stop();
    h.stop();
    co_await h.wait();
    const auto again = co_await error_of(h.wait());
    EXPECT_EQ(code_of(again), errc::already_waited);
  };
  co_await weir::with_scope(body);
}

FIBER_TEST_IN_EVERY_ORDER(every_handle,
                          of_two_that_wait_at_once_one_is_refused_and_the_other_served) {
  int runs = 0;
  int served = 0;
  int refused = 0;
  auto body = [&](weir::scope& s) -> task<> {
    auto h = weir::start_every(s, 10ms, counting(runs));
    auto waiter = [&]() -> task<> {
      const auto error = co_await error_of(h.wait());
      served += error == nullptr;
      refused += code_of(error) == errc::already_waited;
    };
    auto a = s.spawn(waiter);
    auto b = s.spawn(waiter);
    co_await weir::sleep(15ms);
    h.stop();
    co_await s.join();
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(served, 1);
  EXPECT_EQ(refused, 1);
}

FIBER_TEST(every_handle, a_wait_that_timed_out_is_used_up) {
  int runs = 0;
  auto body = [&](weir::scope& s) -> task<> {
    auto h = weir::start_every(s, 10ms, counting(runs));
    const auto unbegun = co_await error_of(weir::with_timeout(0ms, h.wait()));
    EXPECT_TRUE(holds<weir::timeout_error>(unbegun));
    const auto late = co_await error_of(weir::with_timeout(15ms, h.wait()));
    EXPECT_TRUE(holds<weir::timeout_error>(late));
    const auto again = co_await error_of(h.wait());
    EXPECT_EQ(code_of(again), errc::already_waited);
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(runs, 1);
}

FIBER_TEST_IN_EVERY_ORDER(every_handle, a_job_that_waits_for_itself_is_told_so) {
  std::error_code refused;
  std::optional<weir::every_handle> h;
  auto body = [&](weir::scope& s) -> task<> {
    auto job = [&]() -> task<> {
      refused = code_thrown_by([&] { (void)h->wait(); });
      h->stop();
      co_return;
    };
    h = weir::start_every(s, 1ms, job);
    co_await h->wait();
  };
  co_await weir::with_scope(body);
  EXPECT_EQ(refused, errc::would_deadlock);
}

// ------------------------------------------------------------------ errors

TEST(every_handle, an_error_stays_in_the_handle_and_cancels_nobody_whatever_the_scope_says) {
  for (auto rule :
       {weir::failure::cancel_siblings, weir::failure::wait_for_all, weir::failure::isolate}) {
    in_every_order([rule]() -> task<> {
      int runs = 0;
      int caught = 0;
      bool sibling = false;
      auto body = [&](weir::scope& s) -> task<> {
        auto child = s.spawn([&]() -> task<> {
          co_await weir::sleep(50ms);
          sibling = true;
        });
        auto h = weir::start_every(s, 10ms, failing_in_run(runs, 2));
        co_await weir::sleep(100ms);  // long after the failure
        caught = boom_of(co_await error_of(h.wait()));
      };
      const auto error = co_await error_of_scope(body, {.failure = rule});
      EXPECT_EQ(error, nullptr) << what_of(error);
      EXPECT_EQ(caught, 2);
      EXPECT_EQ(runs, 2);
      EXPECT_TRUE(sibling);
    });
  }
}

TEST(every_handle, an_error_that_nobody_saw_is_raised_at_the_end_of_the_scope) {
  for (auto rule :
       {weir::failure::cancel_siblings, weir::failure::wait_for_all, weir::failure::isolate}) {
    in_every_order([rule]() -> task<> {
      int runs = 0;
      bool went_on = false;
      auto body = [&](weir::scope& s) -> task<> {
        auto h = weir::start_every(s, 10ms, failing_in_run(runs, 2));
        co_await weir::sleep(100ms);
        went_on = true;
      };
      const auto error = co_await error_of_scope(body, {.failure = rule});
      EXPECT_EQ(boom_of(error), 2);
      EXPECT_TRUE(went_on);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(every_handle,
                          an_error_of_the_run_that_the_end_of_the_scope_cuts_is_raised) {
  auto body = [](weir::scope& s) -> task<> {
    auto job = []() -> task<> { co_await weir::shield(fails_after(20ms, 6)); };
    auto h = weir::start_every(s, 10ms, job);
    co_await weir::sleep(15ms);
  };
  const auto error = co_await error_of_scope(body);
  EXPECT_EQ(boom_of(error), 6);
}

FIBER_TEST_IN_EVERY_ORDER(every_handle,
                          an_error_after_stop_is_rethrown_also_if_it_looks_like_a_cancellation) {
  std::exception_ptr caught;
  auto body = [&](weir::scope& s) -> task<> {
    auto job = []() -> task<> {
      co_await weir::sleep(20ms);
      throw weir::cancelled_error(weir::cancel_reason(cancel_kind::user, "mine"));
    };
    auto h = weir::start_every(s, 10ms, job);
    co_await weir::sleep(15ms);
    h.stop();
    caught = co_await error_of(h.wait());
  };
  const auto error = co_await error_of_scope(body);
  EXPECT_EQ(error, nullptr);
  EXPECT_TRUE(holds<weir::cancelled_error>(caught));
  EXPECT_TRUE(contains(what_of(caught), "mine"));
}

// ------------------------------------------------------------------ a cancelled scope

FIBER_TEST_IN_EVERY_ORDER(every_handle,
                          a_cancelled_scope_unwinds_the_body_out_of_wait_and_then_ends_the_job) {
  text_log log;
  std::optional<weir::every_handle> h;
  auto body = [&](weir::scope& s) -> task<> {
    end_note unwound(log, "body");
    auto job = [&]() -> task<> {
      end_note run(log, "job");
      co_await weir::sleep(1h);
    };
    h = weir::start_every(s, 10ms, job);
    s.spawn([&]() -> task<> {
      co_await weir::sleep(15ms);
      s.cancel("enough");
    });
    co_await h->wait();
    log.push_back("WENT ON");
  };
  const auto error = co_await error_of_scope(body);
  EXPECT_TRUE(holds<weir::cancelled_error>(error));
  EXPECT_EQ(joined(log), "body,job");
}

TEST(every_handle, who_asked_first_decides_what_wait_tells) {
  for (bool stop_first : {true, false}) {
    in_every_order([stop_first]() -> task<> {
      int runs = 0;
      std::string told = "nothing";
      auto body = [&](weir::scope& s) -> task<> {
        auto h = weir::start_every(s, 10ms, counting(runs));
        co_await weir::sleep(15ms);
        if (stop_first) h.stop();
        s.cancel("parent");
        h.stop();
        auto wait = [&]() -> task<> {
          try {
            co_await h.wait();
          } catch (const weir::cancelled_error& e) {
            told = message_of(e.reason());
          }
        };
        co_await weir::shield(wait);
      };
      (void)co_await error_of_scope(body);
      EXPECT_EQ(told, stop_first ? "nothing" : "parent");
      EXPECT_EQ(runs, 1);
    });
  }
}
