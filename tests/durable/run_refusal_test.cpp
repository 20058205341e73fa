// SPDX-License-Identifier: MIT
// Waits that are neither local nor journaled are refused in a run, before they have an effect, with
// file and line; and a deadlocked run fails and says why.
#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;
using test_support::thrown_by;

namespace {

/// "refused" if `f` ends with errc::not_journaled and the text names this file. The await must be
/// in this file, so `f` is a task.
template <class F>
task<std::string> refusal_in_run(F f) {
  const auto error = co_await test_support::attempt(f);
  if (error == nullptr) co_return "allowed";
  if (test_support::code_of(error) != errc::not_journaled)
    co_return "other: " + test_support::what_of(error);
  const bool named = test_support::contains(test_support::what_of(error), "run_refusal_test.cpp:");
  co_return named ? "refused" : "unnamed: " + test_support::what_of(error);
}

/// The same for calls that await nothing; these need not name the file.
template <class F>
std::string plain_refusal_in_run(F f) {
  const auto error = test_support::thrown_by(f);
  if (error == nullptr) return "allowed";
  return test_support::code_of(error) == errc::not_journaled
             ? "refused"
             : "other: " + test_support::what_of(error);
}

/// Runs `f` in a handler and expects that it is refused there, that the run goes on, and that the
/// same is possible in a step.
template <class F>
void expect_refused_outside_of_steps(F f) {
  const stage on;
  auto handler = [f](int) -> task<std::string> {
    const std::string outside = co_await refusal_in_run(f);
    auto body = [&]() -> task<std::string> {
      co_await f();
      co_return "allowed";
    };
    co_return outside + " " + co_await weir::step("body", body);
  };
  EXPECT_EQ(ending(on, handler), "refused allowed");
}

}  // namespace

TEST(durable_refusal, blocking_work_belongs_into_a_step) {
  static int calls = 0;
  calls = 0;
  expect_refused_outside_of_steps(
      []() -> task<> { (void)co_await weir::blocking([] { return ++calls; }); });
  EXPECT_EQ(calls, 1);
}

TEST(durable_refusal, work_on_other_loops_belongs_into_a_step) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  auto handler = [&w](int) -> task<std::string> {
    auto f = [&w]() -> task<int> { co_return co_await weir::on(w.loop("other"), nap(1s, 1)); };
    const std::string outside = co_await refusal_in_run(f);
    auto body = [&]() -> task<int> { co_return co_await f(); };
    co_return outside + " " + std::to_string(co_await weir::step("body", body));
  };
  std::string end;
  auto use = [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    end = co_await ending_of(run);
  };
  w.run(with_open_engine(options_for(on), as_h(handler), use));
  EXPECT_EQ(end, "refused 1");
}

TEST(durable_refusal, callbacks_belong_into_a_step) {
  static int begun = 0;
  begun = 0;
  expect_refused_outside_of_steps([]() -> task<> {
    (void)co_await weir::suspend<int>([](weir::resumer<int> r) {
      ++begun;
      r.complete(1);
      return [] { return weir::cancel_result::done; };
    });
  });
  EXPECT_EQ(begun, 1);
}

TEST(durable_refusal, objects_made_outside_of_the_run_belong_into_a_step) {
  const stage on;
  sim::run({.seed = 1, .start_time = day0}, [&]() -> task<> {
    weir::queue<int> q(4);
    weir::oneshot<int> o;
    weir::event ev;
    weir::mutex m;
    weir::latch l(1);
    weir::counting_governor g(1);
    weir::shared_governor shared(1);
    auto handler = [&](int) -> task<std::string> {
      lines all;
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await q.next(); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await q.push(1); }));
      all.push_back(plain_refusal_in_run([&] { return q.try_push(1); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await o.receive(); }));
      all.push_back(plain_refusal_in_run([&] { return o.send(1); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await ev.wait(); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await m.lock(); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await l.wait(); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await g.acquire(); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await shared.acquire(); }));
      auto in_step = [&]() -> task<int> {
        co_await q.push(3);
        auto held = co_await g.acquire();
        auto also = co_await shared.acquire();
        co_return *co_await q.next();
      };
      all.push_back(std::to_string(co_await weir::step("body", in_step)));
      co_return test_support::joined(all);
    };
    auto use = [&](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      const std::string end = co_await ending_of(run);
      EXPECT_EQ(end,
                "refused,refused,refused,refused,refused,refused,refused,refused,refused,refused,"
                "3");
      EXPECT_EQ(q.size(), 0);
    };
    co_await with_open_engine(options_for(on), as_h(handler), use);
  }());
}

TEST(durable_refusal, shared_breakers_and_budgets_belong_into_a_step) {
  const stage on;
  sim::run({.seed = 1, .start_time = day0}, [&]() -> task<> {
    weir::circuit_breaker cb({.name = "shared"});
    weir::retry_budget budget({});
    int ran = 0;
    auto handler = [&](int) -> task<std::string> {
      auto work = [&]() -> task<int> {
        ++ran;
        co_return 1;
      };
      auto broken = weir::op(work) | weir::breaker(cb);
      auto retried = weir::op(work) | weir::retry({.attempts = 2, .budget = &budget});
      lines all;
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await broken(); }));
      all.push_back(co_await refusal_in_run([&]() -> task<> { (void)co_await retried(); }));
      const int before = ran;
      auto body = [&]() -> task<int> { co_return co_await broken() + co_await retried(); };
      const int two = co_await weir::step("body", body);
      co_return test_support::joined(all) + " " + row(before, two);
    };
    auto use = [&](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      const std::string end = co_await ending_of(run);
      EXPECT_EQ(end, "refused,refused 0,2");
    };
    co_await with_open_engine(options_for(on), as_h(handler), use);
  }());
}

TEST(durable_refusal, objects_of_another_run_are_foreign_too) {
  const stage on;
  static weir::queue<int>* handed = nullptr;
  auto handler = [](int n) -> task<std::string> {
    if (n == 1) {
      weir::queue<int> mine(4);
      handed = &mine;
      (void)mine.try_push(5);
      co_await weir::sleep(10h);
      handed = nullptr;
      co_return std::to_string(mine.size());
    }
    co_await weir::sleep(1h);
    co_return co_await refusal_in_run([]() -> task<> { (void)co_await handed->next(); });
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("h", {.id = "a"}, 1);
    auto b = co_await e.start<std::string>("h", {.id = "b"}, 2);
    EXPECT_EQ(co_await ending_of(b), "refused");
    EXPECT_EQ(co_await ending_of(a), "1");
  });
}

TEST(durable_refusal, futures_of_the_world_outside_are_foreign) {
  const stage on;
  sim::run({.seed = 1, .start_time = day0}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto outside = s.spawn(nap(1h, 1));
      auto handler = [&](int) -> task<std::string> {
        co_return co_await refusal_in_run([&]() -> task<int> { co_return co_await outside; });
      };
      auto use = [&](durable::engine& e) -> task<> {
        auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
        EXPECT_EQ(co_await ending_of(run), "refused");
      };
      co_await with_open_engine(options_for(on), as_h(handler), use);
    });
  }());
}

TEST(durable_refusal, the_engine_itself_belongs_into_a_step) {
  const stage on;
  static durable::engine* engine = nullptr;
  auto setup = [](durable::engine& e) {
    engine = &e;
    e.add("other", [](int n) -> task<int> { co_return n; });
    e.add("h", [](int) -> task<std::string> {
      auto starts = []() -> task<int> {
        auto run = co_await engine->start<int>("other", {.id = "other"}, 5);
        co_return co_await run.result();
      };
      const auto error = co_await test_support::attempt(starts);
      const std::string outside = test_support::code_of(error) == errc::not_journaled
                                      ? "refused "
                                      : "other: " + test_support::what_of(error);
      co_return outside + std::to_string(co_await weir::step("start", starts));
    });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await ending_of(run), "refused 5");
  });
}

// The promise: using the engine in a handler, and `on`, name the line that does it, not that of an
// await before it.
TEST(durable_refusal, the_engine_and_other_loops_are_refused_with_the_line_of_their_use) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  static durable::engine* engine = nullptr;
  static std::optional<durable::run_handle<int>> handle;
  auto handler = [&w](int) -> task<std::string> {
    co_await weir::yield();
    lines wrong;
    auto expect = [&](int line, const std::exception_ptr& error) {
      const std::string place = "run_refusal_test.cpp:" + std::to_string(line) + " ";
      if (test_support::code_of(error) != errc::not_journaled ||
          !test_support::contains(test_support::what_of(error), place))
        wrong.push_back(place + "in " + test_support::what_of(error));
    };
    // clang-format off
    expect(__LINE__, thrown_by([&] { (void)engine->get("x"); }));
    expect(__LINE__, thrown_by([&] { (void)engine->list(); }));
    expect(__LINE__, thrown_by([&] { (void)engine->cancel("x"); }));
    expect(__LINE__, thrown_by([&] { (void)engine->events(); }));
    expect(__LINE__, thrown_by([&] { engine->add("x", gives_its_input); }));
    expect(__LINE__, thrown_by([&] { (void)engine->start<int>("other", {.id = "o"}, 5); }));
    expect(__LINE__, thrown_by([&] { (void)engine->start<int>("other"); }));
    expect(__LINE__, thrown_by([&] { (void)engine->resolve("x", 1); }));
    expect(__LINE__, thrown_by([&] { (void)engine->reject("x", "no"); }));
    expect(__LINE__, thrown_by([&] { (void)engine->signal("x", "y", 1); }));
    expect(__LINE__, thrown_by([&] { (void)engine->open(); }));
    expect(__LINE__, thrown_by([&] { (void)engine->close(); }));
    expect(__LINE__, thrown_by([&] { (void)handle->result(); }));
    expect(__LINE__, thrown_by([&] { (void)handle->cancel(); }));
    expect(__LINE__, thrown_by([&] { (void)weir::on(w.loop("other"), nap(1s, 1)); }));
    // clang-format on
    co_return test_support::joined(wrong);
  };
  auto setup = [&](durable::engine& e) {
    engine = &e;
    e.add("h", handler);
    e.add("other", [](int n) -> task<int> { co_return n; });
  };
  std::string end;
  auto use = [&](durable::engine& e) -> task<> {
    handle = co_await e.start<int>("other", {.id = "one"}, 1);
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    end = co_await ending_of(run);
    handle.reset();
  };
  w.run(with_open_engine(options_for(on), setup, use));
  EXPECT_EQ(end, "");
}

// The operation was made outside, so it is the await in the handler that counts.
TEST(durable_refusal, calls_of_the_engine_that_were_made_outside_name_the_await) {
  const stage on;
  static std::optional<task<durable::run_handle<int>>> made;
  auto handler = [](int) -> task<std::string> {
    co_await weir::yield();
    const int line = __LINE__ + 2;
    const auto error =
        co_await test_support::attempt([&]() -> task<> { (void)co_await std::move(*made); });
    const std::string place = "run_refusal_test.cpp:" + std::to_string(line) + " ";
    co_return test_support::contains(test_support::what_of(error), place)
        ? ""
        : test_support::what_of(error);
  };
  auto setup = [&](durable::engine& e) {
    e.add("h", handler);
    e.add("other", [](int n) -> task<int> { co_return n; });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    made.emplace(e.start<int>("other", {.id = "other"}, 5));
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await ending_of(run), "");
    made.reset();
  });
}

TEST(durable_refusal, nobody_else_spawns_into_a_run) {
  const stage on;
  static weir::scope* root = nullptr;
  auto handler = [](weir::scope& s, int) -> task<std::string> {
    root = &s;
    co_await give("ready", 0);
    co_await weir::sleep(10h);
    root = nullptr;
    co_return "done";
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("ready");
    EXPECT_EQ(plain_refusal_in_run([] { root->spawn(nap(1s, 1)); }), "refused");
    EXPECT_EQ(co_await ending_of(run), "done");
  });
}

TEST(durable_refusal, that_nobody_catches_fails_the_run) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await weir::sleep(1h);  // so that somebody waits for the result by then
    co_return std::to_string(co_await weir::blocking([] { return 1; }));
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const auto error = co_await test_support::attempt([&] { return run.result(); });
    EXPECT_EQ(test_support::code_of(error), errc::not_journaled);
    EXPECT_EQ(e.get("r")->state, run_state::failed);
    EXPECT_TRUE(test_support::contains(e.get("r")->message, "run_refusal_test.cpp:"));
  });
}

// ---------------------------------------------------------------------------------------- deadlock

namespace {

task<std::string> stuck(int) {
  co_await give_after(1h, "before", 0);
  weir::oneshot<int> a;
  weir::oneshot<int> b;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto left = [&]() -> task<> { b.send(co_await a.receive()); };
    auto right = [&]() -> task<> { a.send(co_await b.receive()); };
    s.spawn(left, {.name = "the left one"});
    s.spawn(right, {.name = "the right one"});
    co_await s.join();
  });
  co_return "never";
}

}  // namespace

TEST(durable_deadlock, of_fibers_that_wait_for_each_other_fails_the_run_and_names_them) {
  const stage on;
  session_of(on, stuck, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const auto error = co_await test_support::attempt([&] { return run.result(); });
    EXPECT_EQ(test_support::code_of(error), errc::deadlock) << test_support::what_of(error);
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), "the left one"))
        << test_support::what_of(error);
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), "the right one"))
        << test_support::what_of(error);
    EXPECT_EQ(e.get("r")->state, run_state::failed);
  });
  const std::string later = ending(on, stuck);
  EXPECT_TRUE(test_support::contains(later, "the left one")) << later;
  EXPECT_EQ(times("before"), 1);
}

TEST(durable_deadlock, does_not_disturb_other_runs_and_the_engine) {
  const stage on;
  auto setup = [](durable::engine& e) {
    e.add("h", stuck);
    e.add("fine", [](int n) -> task<int> { co_return co_await nap(1h, n); });
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto fine = co_await e.start<int>("fine", {.id = "fine"}, 3);
    auto bad = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_TRUE((co_await ending_of(bad)).starts_with("failed: "));
    EXPECT_EQ(co_await fine.result(), 3);
  });
}

TEST(durable_deadlock, is_none_while_a_journaled_wait_is_pending) {
  survives(
      [](int) -> task<std::string> {
        weir::oneshot<int> o;
        auto waits = [&]() -> task<int> { co_return co_await o.receive(); };
        auto sends = [&]() -> task<int> {
          o.send(co_await give_after(1h, "send", 4));
          co_return 0;
        };
        auto [a, b] = co_await weir::all(waits(), sends());
        co_return row(a, b);
      },
      "4,0");
}

TEST(durable_deadlock, is_none_while_the_body_of_a_step_is_at_work) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    weir::oneshot<int> o;
    auto waits = [&]() -> task<int> { co_return co_await o.receive(); };
    auto body = []() -> task<int> { co_return co_await nap(5h, 6); };
    auto sends = [&]() -> task<int> {
      o.send(co_await weir::step("body", body));
      co_return 0;
    };
    auto [a, b] = co_await weir::all(waits(), sends());
    co_return row(a, b);
  };
  EXPECT_EQ(ending(on, handler), "6,0");
}
