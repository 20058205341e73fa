// SPDX-License-Identifier: MIT
// weir::dump of a process with durable runs. Promises: "the tree of scopes and fibers, each with
// name, state, what it waits on and file:line", which holds for runs too; "a loop's part is made by
// its own thread (asked through the inbox, waited for at most 1 s while answering others)": a run
// has no inbox, so the loop that it runs on answers.
#include <atomic>
#include <sstream>
#include <thread>

#include "durable/support/stage.hpp"
#include "support/dump_support.hpp"

using namespace durable_test;

namespace {

std::string dumped() {
  std::ostringstream out;
  weir::dump(out);
  return out.str();
}

/// They are in the text, one after the other.
void expect_in_order(const std::string& text, const lines& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    const std::size_t found = text.find(part, at);
    EXPECT_NE(found, std::string::npos) << part << " is not, or not here, in:\n" << text;
    if (found == std::string::npos) return;
    at = found;
  }
}

constexpr int line_of_shown_sleep = __LINE__ + 1;
task<> naps() { co_await weir::sleep(1h); }

task<std::string> waits_for_much(int) {
  co_await weir::with_scope({.name = "inner"}, [](weir::scope& s) -> task<> {
    s.spawn(naps(), {.name = "napper"});
    auto ask = []() -> task<> { (void)co_await weir::promise<int>("answer").wait(); };
    s.spawn(ask, {.name = "asker"});
    co_await weir::step("slow", naps);
    s.cancel();
  });
  co_return "done";
}

/// A real process with an engine whose only handler is `h`.
template <class H>
void real_session(const stage& on, H h, user use) {
  whole_life([&] { weir::run(with_open_engine(options_for(on), as_h(h), use)); });
}

}  // namespace

TEST(durable_dump, shows_what_each_fiber_of_a_run_waits_on_and_where) {
  const stage on;
  session_of(on, waits_for_much, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::sleep(1s);
    const std::string text = dumped();
    const std::string place = "dump_test.cpp:" + std::to_string(line_of_shown_sleep);
    expect_in_order(text, {"scope 'durable steps'", "fiber 'slow'", "waits on sleep", place});
    expect_in_order(text, {"durable run 'r'", "fiber 'handler'", "waits on step 'slow'",
                           "scope 'inner'", "fiber 'napper'", "waits on sleep", place,
                           "fiber 'asker'", "waits on promise 'answer'"});
    EXPECT_EQ(co_await run.result(), "done");
    EXPECT_FALSE(test_support::contains(dumped(), "durable run 'r'"));
  });
}

TEST(durable_dump, in_a_handler_shows_the_loop_and_all_of_its_runs) {
  const stage on;
  std::string text;
  auto handler = [&](int n) -> task<std::string> {
    co_await weir::sleep(n * 1h);
    if (n == 1) text = dumped();
    co_return "";
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto one = co_await e.start<std::string>("h", {.id = "dumps"}, 1);
    auto two = co_await e.start<std::string>("h", {.id = "sleeps"}, 2);
    (void)co_await one.result();
    (void)co_await two.result();
  });
  expect_in_order(text, {"loop 'main'", "fiber 'main'", "durable run 'dumps'", "running"});
  expect_in_order(text, {"loop 'main'", "durable run 'sleeps'", "waits on sleep"});
}

// What arrives at the loop while a run in it waits for the dump of another loop is put off, not
// lost, and keeps its order.
TEST(durable_dump, in_a_handler_puts_off_what_is_posted_to_the_loop_meanwhile) {
  const stage on;
  test_support::dump_and_post* test = nullptr;
  auto handler = [&](int) -> task<std::string> { co_return test->dump(3); };
  real_session(on, handler, [&](durable::engine& e) -> task<> {
    test_support::dump_and_post here;
    test = &here;
    here.begin();
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string text = co_await run.result();
    here.home().post([&] { here.called().push_back(3); });
    co_await until([&] { return here.called().size() >= 4; });
    EXPECT_EQ(here.called(), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(here.destroyed(), 3);
    expect_in_order(text, {"loop 'main'", "durable run 'r'"});
  });
}

// Two loops that dump at the same time answer each other, also if one does it in a run.
TEST(durable_dump, in_a_handler_answers_another_loop_that_dumps) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    std::atomic<bool> done{false};
    std::string theirs;
    std::thread other([&] {
      weir::run({.name = "other"}, [&]() -> task<> {
        theirs = dumped();
        done = true;
        co_return;
      });
    });
    while (!done) (void)dumped();  // the handler does nothing else meanwhile
    other.join();
    co_return theirs;
  };
  real_session(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string text = co_await run.result();
    EXPECT_FALSE(test_support::contains(text, "is silent")) << text;
    expect_in_order(text, {"durable run 'r'", "running"});
  });
}
