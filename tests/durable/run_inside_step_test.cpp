// SPDX-License-Identifier: MIT
// What a step body may not do: use the journal of its run, or touch the run's own objects.
#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

/// The code as text, or "allowed".
template <class F>
task<std::string> refusal_in_step(F f) {
  const std::exception_ptr error = co_await test_support::attempt(f);
  if (error == nullptr) co_return "allowed";
  if (test_support::code_of(error) == errc::inside_step) co_return "inside_step";
  if (test_support::code_of(error) == errc::not_journaled) co_return "not_journaled";
  co_return "other: " + test_support::what_of(error);
}

template <class F>
std::string plain_refusal_in_step(F f) {
  const std::exception_ptr error = test_support::thrown_by(f);
  if (error == nullptr) return "allowed";
  if (test_support::code_of(error) == errc::inside_step) return "inside_step";
  if (test_support::code_of(error) == errc::not_journaled) return "not_journaled";
  return "other: " + test_support::what_of(error);
}

/// What happens to `f` in the task body of a step.
template <class F>
task<std::string> in_a_step(F f) {
  auto body = [&]() -> task<std::string> { co_return co_await refusal_in_step(f); };
  co_return co_await weir::step("body", body);
}

using answer_list = std::vector<std::string>;

}  // namespace

TEST(durable_inside_step, every_journal_operation_is_refused_in_a_task_body) {
  auto handler = [](int) -> task<std::string> {
    answer_list all;
    auto inner = [] { return weir::step("inner", [] { note("ran"); }); };
    all.push_back(co_await in_a_step(inner));
    auto once = [] { return weir::step_once("inner", [] { note("ran"); }); };
    all.push_back(co_await in_a_step(once));
    auto awakeable = []() -> task<> {
      auto a = weir::awakeable<int>("a");
      (void)a.id();
      co_return;
    };
    all.push_back(co_await in_a_step(awakeable));
    auto signal = []() -> task<int> { co_return co_await weir::signal<int>("s").wait(); };
    all.push_back(co_await in_a_step(signal));
    auto promise = []() -> task<> {
      auto p = weir::promise<int>("p");
      (void)co_await p.resolve(1);
    };
    all.push_back(co_await in_a_step(promise));
    auto call = [] { return weir::call<std::string>("h", 1); };
    all.push_back(co_await in_a_step(call));
    auto send = [] { return weir::send("h", 1); };
    all.push_back(co_await in_a_step(send));
    co_return test_support::joined(all);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler),
            "inside_step,inside_step,inside_step,inside_step,inside_step,inside_step,inside_step");
  EXPECT_EQ(times("ran"), 0);
}

TEST(durable_inside_step, what_needs_no_await_is_refused_in_a_plain_body) {
  auto handler = [](int) -> task<std::string> {
    answer_list all;
    all.push_back(co_await weir::step(
        "a", [] { return plain_refusal_in_step([] { return weir::awakeable<int>("a"); }); }));
    all.push_back(co_await weir::step("p", [] {
      return plain_refusal_in_step([] {
        auto p = weir::promise<int>("p");
        return p.peek();
      });
    }));
    co_return test_support::joined(all);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "inside_step,inside_step");
}

TEST(durable_inside_step, a_child_of_a_body_is_inside_too_and_the_run_is_not_afterwards) {
  auto handler = [](int) -> task<std::string> {
    auto body = [&]() -> task<std::string> {
      co_return co_await weir::with_scope([&](weir::scope& s) -> task<std::string> {
        auto inner = [] { return weir::step("inner", [] { note("ran"); }); };
        auto child = [&]() -> task<std::string> { co_return co_await refusal_in_step(inner); };
        co_return co_await s.spawn(child);
      });
    };
    std::string answer = co_await weir::step("body", body);
    answer += co_await weir::step("after", [] { return std::string(",allowed"); });
    co_return answer;
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "inside_step,allowed");
  EXPECT_EQ(times("ran"), 0);
}

TEST(durable_inside_step, a_sibling_of_a_running_body_is_not_inside) {
  survives(
      [](int) -> task<std::string> {
        auto body = [&]() -> task<int> {
          co_await weir::sleep(2s);
          co_return 1;
        };
        auto [a, b] = co_await weir::all(weir::step("body", body), give_after(1s, "sibling", 2));
        co_return row(a, b);
      },
      "1,2", at_once, steps::concurrent);
}

TEST(durable_inside_step, the_runs_own_objects_are_not_for_step_bodies) {
  // "the run's own objects touched from a step body: errc::not_journaled"
  auto handler = [](int) -> task<std::string> {
    answer_list all;
    weir::queue<int> q(4);
    weir::oneshot<int> o;
    weir::event ev;
    weir::mutex m;
    all.push_back(co_await weir::step(
        "queue", [&] { return plain_refusal_in_step([&] { return q.try_push(1); }); }));
    all.push_back(co_await weir::step(
        "oneshot", [&] { return plain_refusal_in_step([&] { return o.send(1); }); }));
    all.push_back(
        co_await weir::step("event", [&] { return plain_refusal_in_step([&] { ev.set(); }); }));
    auto pops = [&]() -> task<std::string> {
      co_return co_await refusal_in_step([&] { return q.next(); });
    };
    all.push_back(co_await weir::step("next", pops));
    auto locks = [&]() -> task<std::string> {
      co_return co_await refusal_in_step([&] { return m.lock(); });
    };
    all.push_back(co_await weir::step("lock", locks));
    all.push_back(q.size() == 0 && !ev.is_set() ? "untouched" : "touched");
    co_return test_support::joined(all);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler),
            "not_journaled,not_journaled,not_journaled,not_journaled,not_journaled,untouched");
}

TEST(durable_inside_step, the_scope_of_the_run_is_not_for_step_bodies) {
  auto handler = [](weir::scope& s, int) -> task<std::string> {
    auto body = [&]() -> task<std::string> {
      auto stray = [&]() -> task<> {
        note("stray ran");
        co_return;
      };
      co_return plain_refusal_in_step([&] { s.spawn(stray); });
    };
    co_return co_await weir::step("body", body);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "not_journaled");
  EXPECT_EQ(times("stray ran"), 0);
}

TEST(durable_inside_step, objects_made_in_the_body_are_plain_ones) {
  survives(
      [](int) -> task<std::string> {
        auto body = [&]() -> task<int> {
          effect("body");
          weir::queue<int> q(1);
          co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
            auto feeds = [&]() -> task<> {
              for (int i = 1; i <= 3; ++i) co_await q.push(i);
              q.close();
            };
            s.spawn(feeds);
            int sum = 0;
            while (auto i = co_await q.next()) sum += *i;
            co_return sum;
          });
        };
        co_return std::to_string(co_await weir::step("body", body));
      },
      "6");
}
