// SPDX-License-Identifier: MIT
// Promise: texts of errors and `run_info::message` contain types, names, lengths and lines, never
// payloads.
#include "durable/support/stage.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

const std::string card_text = "card 4111111111111111";

/// What anybody is told about run "r" of a handler, in its first life and in the next.
template <class First, class Second>
std::string told_of(First first, Second second, user meanwhile = nullptr) {
  const stage on;
  std::string all;
  auto use = [&](durable::engine& e) -> task<> {
    (void)co_await e.start<int>("h", {.id = "r"}, card_text);
    co_await weir::sleep(1s);
    if (meanwhile) {
      const auto error = co_await test_support::attempt([&] { return meanwhile(e); });
      if (error) all += test_support::what_of(error) + "\n";
    }
    co_await weir::sleep(1s);
    all += e.get("r")->message + "\n";
  };
  session(on, as_h(first), use);
  session(on, as_h(second), use, 1h);
  return all;
}

void expect_secret(const std::string& told, const std::string& part) {
  EXPECT_FALSE(test_support::contains(told, "4111")) << told;
  EXPECT_TRUE(test_support::contains(told, part)) << told;
}

}  // namespace

TEST(durable_secret, an_input_of_another_type_is_not_quoted) {
  auto waits = [](std::string) -> task<int> { co_return co_await weir::signal<int>("go").wait(); };
  auto other = [](int n) -> task<int> { co_return n; };
  expect_secret(told_of(waits, other), "nothing is lost");
}

TEST(durable_secret, a_result_of_a_step_of_another_type_is_not_quoted) {
  auto texts = [](std::string in) -> task<int> {
    (void)co_await weir::step("read", [&] { return in; });
    co_return co_await weir::signal<int>("go").wait();
  };
  auto numbers = [](std::string) -> task<int> {
    const int n = co_await weir::step("read", [] { return 1; });
    co_return n + co_await weir::signal<int>("go").wait();
  };
  expect_secret(told_of(texts, numbers), "nothing is lost");
}

TEST(durable_secret, a_call_with_another_input_is_not_quoted) {
  auto sends = [](std::string in) -> task<int> {
    (void)co_await weir::send("h", in, {.delay = 1h, .id = "other"});
    co_return co_await weir::signal<int>("go").wait();
  };
  auto others = [](std::string in) -> task<int> {
    (void)co_await weir::send("h", in + in, {.delay = 1h, .id = "other"});
    co_return co_await weir::signal<int>("go").wait();
  };
  expect_secret(told_of(sends, others), "with another input");
}

TEST(durable_secret, a_signal_of_another_type_is_not_quoted) {
  auto waits = [](std::string) -> task<int> { co_return co_await weir::signal<int>("go").wait(); };
  const std::string told = told_of(waits, waits, [](durable::engine& e) -> task<> {
    if (e.get("r")->state == run_state::running) (void)co_await e.signal("r", "go", card_text);
  });
  expect_secret(told, "a string of 21 bytes");
}
