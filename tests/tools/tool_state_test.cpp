// SPDX-License-Identifier: MIT
// What the tool says of runs that have not ended: what they do or wait for, and that they are
// blocked.
#include <string>

#include "durable/support/fixture_runs.hpp"
#include "tools/tool_support.hpp"

using namespace durable_test;

namespace {

task<int> sleeps_an_hour(int) {
  co_await weir::sleep(1h);
  co_return 1;
}

task<int> hears_twice(int) {
  const int first = co_await weir::signal<int>("go").wait();
  co_return first + co_await weir::signal<int>("go").wait();
}

/// The time limit is over once, so the first wait for the signal is.
task<int> hears_after_a_limit(int) {
  try {
    (void)co_await weir::with_timeout(1min, weir::signal<int>("never").wait());
  } catch (const weir::timeout_error&) {
    note("late");
  }
  co_return co_await weir::signal<int>("go").wait();
}

task<int> calls_a_sleeper(int) { co_return co_await weir::call<int>("sleeper", 1); }

task<int> sends_a_sleeper(int) {
  co_await weir::send("sleeper", 1, {.delay = 24h, .id = "delayed"});
  co_return 1;
}

task<int> fails_at_first(int) {
  weir::step_options patient;
  patient.retry = {.attempts = 3, .base = 10min, .ceiling = 1h, .jitter = weir::jitter::none};
  co_await weir::step("try", [] { throw std::runtime_error("not yet"); }, patient);
  co_return 1;
}

task<int> turn_of_an_hour(int n) {
  co_await weir::sleep(1h);
  co_return n;
}

void add_waiting(durable::engine& e) {
  e.add("sleeper", sleeps_an_hour);
  e.add("hearer", hears_twice);
  e.add("limited", hears_after_a_limit);
  e.add("caller", calls_a_sleeper);
  e.add("trier", fails_at_first);
  e.add("sender", sends_a_sleeper);
  e.add_object("till", {{"pay", turn_of_an_hour}});
}

task<> start_all(durable::engine& e) {
  for (const char* const name : {"sleeper", "hearer", "limited", "caller", "trier"})
    (void)co_await e.start<int>(name, {.id = std::string("a ") + name}, 1);
  (void)co_await e.start<int>("till/pay", {.id = "first", .key = "east"}, 1);
  (void)co_await e.start<int>("till/pay", {.id = "second", .key = "east"}, 1);
  (void)co_await e.start<int>("till/pay", {.id = "elsewhere", .key = "west"}, 1);
  (void)co_await e.start<int>("sender", {.id = "a sender"}, 1);
  EXPECT_TRUE(co_await e.signal("a hearer", "go", 1));
  co_await weir::sleep(5min);
}

/// The lines of `ls`, each from the state on, without the times of the start.
std::string states_of(const stage& on) {
  const tool_end end = weir_journal(on, {"ls", on.journal(), "--state", "unfinished", "--json"});
  EXPECT_EQ(end.code, 0) << end.err;
  const std::string file = on.root() + "/runs";
  std::ofstream(file) << end.out;
  const std::string program =
      "import json,sys\n"
      "for r in map(json.loads, open(sys.argv[1])):\n"
      "  print(r['id'], '-', r['state'], '-', r['waits_for'], '-', r['wait_kind'])";
  return run_program(on, {"python3", "-c", program, file}).out;
}

}  // namespace

TEST(tool_state, says_what_an_unfinished_run_does_or_waits_for) {
  const stage on;
  session(on, add_waiting, start_all);
  EXPECT_EQ(states_of(on),
            "a sleeper - waiting - sleep until 2030-01-01 01:00:00 - sleep\n"
            "a hearer - waiting - signal go - signal\n"
            "a limited - waiting - signal go - signal\n"
            "a caller - waiting - call sleeper, run a caller.1.1 - call\n"
            "a caller.1.1 - waiting - sleep until 2030-01-01 01:00:00 - sleep\n"
            "a trier - running - step try since 2030-01-01 00:00:00, 1 attempt failed - step\n"
            "first - waiting - sleep until 2030-01-01 01:00:00 - sleep\n"
            "second - waiting - turn of till[east], behind run first - turn\n"
            "elsewhere - waiting - sleep until 2030-01-01 01:00:00 - sleep\n"
            "delayed - waiting - begin at 2030-01-02 00:00:00 - begin\n");
}

TEST(tool_state, says_that_a_run_is_blocked_and_why_until_it_continues) {
  const stage on;
  session(on, add_waiting, start_all);
  auto without_sleeper = [](durable::engine& e) { e.add("hearer", hears_twice); };
  auto look = [](durable::engine&) -> task<> { co_await weir::sleep(1s); };
  session(on, without_sleeper, look, 10min);
  const tool_end blocked = weir_journal(on, {"ls", on.journal(), "--state", "blocked"}, "160");
  EXPECT_TRUE(test_support::contains(blocked.out, "no handler 'sleeper' of version 1 was added"))
      << blocked.out;
  EXPECT_FALSE(test_support::contains(blocked.out, "a hearer")) << blocked.out;
  EXPECT_FALSE(test_support::contains(blocked.out, "second")) << blocked.out;
  const tool_end shown = weir_journal(on, {"show", on.journal(), "a sleeper"}, "160");
  for (const std::string part :
       {"state     blocked: sleep until 2030-01-01 01:00:00, at tool_state_test.cpp:",
        "cause     no handler 'sleeper' of version 1 was added", "blocked"})
    EXPECT_TRUE(test_support::contains(shown.out, part)) << part << " in:\n" << shown.out;
  session(on, add_waiting, look, 11min);
  const tool_end again = weir_journal(on, {"ls", on.journal(), "--state", "blocked"}, "160");
  EXPECT_EQ(again.out.find("sleeper"), std::string::npos) << again.out;
}

TEST(tool_state, a_journal_of_an_earlier_version_is_shown_without_lines) {
  constexpr const char* closed_journal =
#include "durable/fixtures/closed.txt"
      ;
  const stage on;
  text_as_directory(closed_journal, on.journal());
  const tool_end end = weir_journal(on, {"show", on.journal(), "steps"}, "160");
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(test_support::contains(end.out, "step")) << end.out;
  EXPECT_EQ(end.out.find("pp:"), std::string::npos) << end.out;
  EXPECT_EQ(weir_journal(on, {"check", on.journal()}).code, 0);
}
