// SPDX-License-Identifier: MIT
// The end of an engine: until the bodies of its steps are joined, they may use it.
#include "durable/support/stage.hpp"

using namespace durable_test;

namespace {

/// What a body captures of its engine; the address tells whether it is still there.
task<> lists_in_a_defer(durable::engine* e) {
  auto body = [e](weir::scope& s) -> task<> {
    s.defer([e] { note("runs " + std::to_string(e->list().size())); });
    note("begun");
    co_await weir::sleep(1h);
  };
  co_await weir::with_scope(body);
}

task<> signals_in_a_shield(durable::engine* e) {
  auto tell = [e]() -> task<> {
    note("begun");
    co_await weir::sleep(10ms);
    const bool told = co_await e->signal("nobody", "s", 1);
    note(told ? "told" : "nobody is there");
  };
  co_await weir::shield(tell());
}

void end_while(task<> (*body)(durable::engine*)) {
  const stage on;
  auto use = [body](durable::engine& e) -> task<> {
    durable::engine* const at = &e;
    e.add("h",
          [body, at](int) -> task<> { co_await weir::step("s", [body, at] { return body(at); }); });
    co_await e.open();
    (void)co_await e.start("h", {.id = "r"}, 1);
    co_await until_noted("begun");
  };
  sim::run({.seed = 1, .start_time = day0}, durable::with_engine(options_for(on), use));
  EXPECT_EQ(ledger().size(), 2u) << test_support::joined(ledger());
}

struct null_what_error : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

}  // namespace

TEST(durable_cleanup, a_step_may_use_its_engine_in_a_defer_when_with_engine_ends) {
  end_while(lists_in_a_defer);
}

TEST(durable_cleanup, a_step_may_use_its_engine_in_a_shield_when_with_engine_ends) {
  end_while(signals_in_a_shield);
}

TEST(durable_cleanup, an_exception_without_a_text_fails_its_run_and_nothing_else) {
  const stage on;
  auto use = [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("h", {.id = "r"}, 0);
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("r")->state, durable::run_state::failed);
    EXPECT_EQ(e.get("r")->message, "an exception without a text");
    auto step = co_await e.start<int>("h", {.id = "s"}, 1);
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("s")->message, "an exception without a text");
  };
  auto fails = [](int in_step) -> task<int> {
    if (in_step == 0) throw null_what_error();
    co_return co_await weir::step("s", []() -> int { throw null_what_error(); },
                                  {.retry = {.attempts = 1}});
  };
  session_of(on, fails, use);
}
