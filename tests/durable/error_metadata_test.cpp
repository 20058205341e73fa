// SPDX-License-Identifier: MIT
// The promise: status and metadata of a terminal error are recorded, and raised again with it: on
// replay, through calls, and to those who ask for a result after a crash.
#include "durable/run_record.hpp"
#include "durable/support/crashes.hpp"

using namespace durable_test;
using weir::terminal_error;

namespace {

std::string facts_text(const terminal_error& e) {
  std::string text = std::to_string(e.status()) + " " + e.what();
  for (const auto& [key, value] : e.metadata()) text += " " + key + "=" + value;
  return text;
}

terminal_error declined_error() {
  return terminal_error("declined", 402).with("card", "visa").with("try", "later");
}

template <class R>
task<std::string> facts_of_result(R run) {
  try {
    (void)co_await run.result();
  } catch (const terminal_error& e) {
    co_return facts_text(e);
  }
  co_return "a value";
}

}  // namespace

TEST(durable_terminal_error, has_a_status_and_metadata_that_copies_do_not_share) {
  const terminal_error plain("plain");
  EXPECT_EQ(facts_text(plain), "500 plain");
  terminal_error first("gone", 410);
  const terminal_error copy = first;
  first.with("since", "May").with("since", "June");
  EXPECT_EQ(facts_text(first), "410 gone since=June");
  EXPECT_EQ(facts_text(copy), "410 gone");
  EXPECT_EQ(first.code(), errc::terminal);
  const terminal_error usual = terminal_error("with status 500").with("k", "v");
  EXPECT_EQ(facts_text(usual), "500 with status 500 k=v");
}

TEST(durable_terminal_error, of_a_step_is_the_same_in_every_replay) {
  survives(
      [](int) -> task<std::string> {
        std::string text;
        try {
          (void)co_await weir::step("pay", []() -> int {
            effect("pay");
            throw declined_error();
          });
        } catch (const terminal_error& e) {
          text = facts_text(e);
        }
        (void)co_await give("after", 1);
        co_return text;
      },
      "402 declined card=visa try=later");
}

TEST(durable_terminal_error, goes_through_calls) {
  auto handler = [](int) -> task<std::string> {
    std::string text;
    try {
      (void)co_await weir::call<int>("child", 1);
    } catch (const terminal_error& e) {
      text = facts_text(e);
    }
    (void)co_await give("after", 1);
    co_return text;
  };
  auto child = [](int) -> task<int> {
    co_await weir::sleep(1h);
    throw declined_error();
    co_return 0;
  };
  all_crashes(with_child(handler, child), "402 declined card=visa try=later", at_once_and_late,
              steps::one_at_a_time);
}

TEST(durable_terminal_error, reaches_those_who_ask_after_a_crash) {
  const stage on;
  auto handler = [](int n) -> task<int> {
    if (n == 1) throw terminal_error("gone", 410).with("since", "May");
    throw terminal_error("plain");
    co_return 0;
  };
  for (int lives = 0; lives < 2; ++lives) {
    EXPECT_EQ(life([&] {
                session_of(on, handler, [](durable::engine& e) -> task<> {
                  auto first = co_await e.start<int>("h", {.id = "r1"}, 1);
                  EXPECT_EQ(co_await facts_of_result(first), "410 gone since=May");
                  auto second = co_await e.start<int>("h", {.id = "r2"}, 2);
                  EXPECT_EQ(co_await facts_of_result(second), "500 plain");
                  ::_exit(parts_of_this_test() == 0 ? crashed : 1);
                });
              }),
              crashed);
  }
}

TEST(durable_terminal_error, is_written_as_before_unless_it_has_facts) {
  using namespace weir::detail;
  const auto bytes_of = [](const answer_record& r) {
    payload_writer out;
    r.write(out);
    return std::string(out.view().bytes);
  };
  const std::string plain = bytes_of({weir::wall_time(5s), errc::terminal, "plain", {}});
  EXPECT_EQ(plain.size(), 8u + 4 + 4 + 5);
  EXPECT_EQ(answer_record::read(plain).facts, nullptr);
  const std::string full =
      bytes_of({weir::wall_time(5s), errc::terminal, "declined", declined_error().facts()});
  const answer_record read = answer_record::read(full);
  EXPECT_EQ(facts_text(terminal_error(std::string(read.text), read.facts)),
            "402 declined card=visa try=later");
  for (std::size_t n = plain.size() + 4; n < full.size(); ++n)
    EXPECT_EQ(test_support::code_of(test_support::thrown_by(
                  [&] { return answer_record::read(std::string_view(full).substr(0, n)); })),
              errc::journal_corrupt);
}

TEST(durable_promise, is_polled_like_it_is_peeked_at) {
  survives(
      [](int) -> task<std::string> {
        auto p = weir::promise<int>("p");
        auto q = weir::promise<void>("q");
        auto r = weir::promise<int>("r");
        std::string text = (co_await p.poll()).has_value() ? "early " : "";
        (void)co_await p.resolve(7);
        (void)co_await q.resolve();
        (void)co_await r.reject("no");
        (void)co_await give("step", 1);
        const std::optional<int> found = co_await p.poll();
        text += found ? std::to_string(*found) : "nothing";
        text += p.peek() == found ? " as peeked" : " other";
        text += (co_await q.poll()).has_value() ? " set" : " unset";
        try {
          (void)co_await r.poll();
        } catch (const terminal_error& e) {
          text += std::string(" ") + e.what();
        }
        co_return text;
      },
      "7 as peeked set no");
}

TEST(durable_unit, is_no_input) {
  const stage on;
  auto child = []() -> task<int> { co_return co_await give("child", 3); };
  auto handler = []() -> task<int> {
    const int called = co_await weir::call<int>("child", weir::unit{}, {.id = "c"});
    (void)co_await weir::send("child", weir::unit{}, {.id = "s"});
    co_return called;
  };
  session(on, with_child(handler, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("h", {.id = "r"}, weir::unit{});
    EXPECT_EQ(co_await run.result(), 3);
    auto sent = co_await e.start<int>("child", {.id = "s"}, weir::unit{});
    EXPECT_EQ(co_await sent.result(), 3);
  });
  EXPECT_EQ(times("child"), 2);
}
