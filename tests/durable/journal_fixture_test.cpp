// SPDX-License-Identifier: MIT
// Journals that an earlier version has written, in `fixtures`: this version opens them, verifies
// them without a difference, resumes their runs and brings each to its end.
// WEIR_WRITE_FIXTURES=<directory> writes them again; do that only for a new format version, and
// keep the old ones.
#include <cstdlib>
#include <sstream>

#include "durable/log_frame.hpp"
#include "durable/support/fixture_runs.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

constexpr const char* closed_journal =
#include "durable/fixtures/closed.txt"
    ;
constexpr const char* crashed_journal =
#include "durable/fixtures/crashed.txt"
    ;

/// Written by the version that has format 1 and no objects, versions, compaction or encryption.
struct fixture_case {
  const char* name;
  const char* text;
};
constexpr fixture_case fixture_cases[] = {{"closed", closed_journal}, {"crashed", crashed_journal}};

/// Handlers as they were; fx_gone is missing, and fx_changed has another step.
void verify_fixture(const stage& on) {
  std::string text;
  std::size_t differences = 0;
  auto body = [&](durable::engine& e) -> task<> {
    add_fixture_handlers(e);
    const durable::replay_report report = co_await e.verify();
    differences = report.differences.size();
    std::ostringstream out;
    out << report;
    text = out.str();
  };
  const durable::engine_options options = options_for(on);
  sim::run({.seed = 1, .start_time = day0 + 2min}, durable::with_engine(options, body));
  EXPECT_EQ(differences, 2u) << text;
  for (const char* part : {"run 'gone'", "no handler 'fx_gone' of version 1", "run 'changed'",
                           "step 'before'", "step 'after'", "fixture_runs.hpp:"})
    EXPECT_TRUE(test_support::contains(text, part)) << part << " in: " << text;
}

task<std::string> text_of_result(durable::engine& e, std::string handler, std::string id) {
  auto run = co_await e.start<int>(handler, {.id = id}, 0);
  try {
    co_return std::to_string(co_await run.result());
  } catch (const weir::cancelled_error&) {
    co_return "cancelled";
  } catch (const std::exception& error) {
    co_return error.what();
  }
}

task<> finish_fixture(durable::engine& e, bool has_crashed) {
  co_await weir::sleep(1s);
  EXPECT_EQ(e.list({.state = run_state::blocked}).size(), 2u);
  EXPECT_EQ(e.get("gone")->state, run_state::blocked);
  EXPECT_EQ(e.get("changed")->state, run_state::blocked);
  EXPECT_EQ(co_await text_of_result(e, "fx_quick", "quick"), "7");
  EXPECT_EQ(co_await text_of_result(e, "fx_fails", "fails"), "no luck");
  EXPECT_EQ(co_await text_of_result(e, "fx_sleeps", "sleeps"), "cancelled");
  EXPECT_EQ(e.get("sleeps")->message, "enough");
  const std::string deadlock = co_await text_of_result(e, "fx_deadlocks", "deadlocks");
  EXPECT_TRUE(deadlock.starts_with("deadlock")) << deadlock;
  EXPECT_EQ(co_await text_of_result(e, "fx_steps", "steps"), "809");
  EXPECT_EQ(co_await text_of_result(e, "fx_retries", "retries"), "7");
  EXPECT_EQ(co_await text_of_result(e, "fx_restless", "restless"), "12");
  EXPECT_TRUE(co_await e.resolve(fixture_question, "yes"));
  auto asks = co_await e.start<std::string>("fx_asks", {.id = "asks"}, 0);
  EXPECT_EQ(co_await asks.result(), "told yes");
  EXPECT_TRUE(co_await e.signal("the child", "go", 3));
  EXPECT_EQ(co_await text_of_result(e, "fx_calls", "calls"), "100");
  auto fibers = co_await e.start<std::string>("fx_fibers", {.id = "fibers"}, 0);
  EXPECT_EQ(co_await fibers.result(), "absorbed 1 7 7 8");
  auto once = co_await e.start<std::string>("fx_dies_once", {.id = "dies_once"}, 0);
  EXPECT_EQ(co_await once.result(), "unknown");
  if (has_crashed) {
    EXPECT_EQ(co_await text_of_result(e, "fx_dies", "dies"), "7");
  }
  e.add("fx_gone", fx_steps);
  auto gone = co_await e.start<int>("fx_gone", {.id = {}, .idempotency = "once"}, 0);
  EXPECT_EQ(gone.id(), "gone");
  EXPECT_EQ(co_await gone.result(), 809);
  co_await e.skip("changed", "the step was renamed");
  EXPECT_EQ(co_await text_of_result(e, "fx_changed", "changed"), "-7");
}

}  // namespace

TEST(durable_fixture, of_every_earlier_version_opens_verifies_resumes_and_finishes) {
  for (const fixture_case& f : fixture_cases) {
    SCOPED_TRACE(f.name);
    const stage on;
    text_as_directory(f.text, on.journal());
    fixture_world_is_down = false;
    const bool has_crashed = std::string_view(f.name) == "crashed";
    verify_fixture(on);
    session(
        on, add_fixture_handlers,
        [&](durable::engine& e) -> task<> { co_await finish_fixture(e, has_crashed); }, 2min);
    EXPECT_EQ(times("one"), 0);  // done before
    EXPECT_EQ(times("two"), 2);
    session(
        on, add_fixture_handlers,
        [&](durable::engine& e) -> task<> {
          EXPECT_EQ(co_await text_of_result(e, "fx_steps", "steps"), "809");
          EXPECT_TRUE(e.list({.state = run_state::running}).empty());
        },
        20h);
  }
}

TEST(durable_fixture, has_the_format_version_that_this_code_reads_and_writes) {
  EXPECT_EQ(weir::detail::journal_version, 1u);
  const stage on;
  text_as_directory(closed_journal, on.journal());
  const std::string path = on.journal() + "/seg-0000000000000001.wlog";
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(8);
  file.put(2);
  file.close();
  const auto error = test_support::thrown_by(
      [&] { session(on, add_fixture_handlers, [](durable::engine&) -> task<> { co_return; }); });
  EXPECT_EQ(test_support::code_of(error), errc::journal_corrupt);  // its checksum does not fit
}

TEST(durable_fixture, is_written) {
  const char* const to = std::getenv("WEIR_WRITE_FIXTURES");
  if (to == nullptr) GTEST_SKIP() << "WEIR_WRITE_FIXTURES names no directory";
  const auto keep = [&](const stage& on, const char* name) {
    std::ofstream(std::string(to) + "/" + name) << "R\"hex(\n"
                                                << directory_as_text(on.journal()) << ")hex\"\n";
  };
  {
    const stage on;
    whole_life([&] { session(on, add_fixture_handlers, play_fixture); });
    keep(on, "closed.txt");
  }
  const stage on;
  life_that_dies_in("dies", [&] {
    session(on, add_fixture_handlers, [](durable::engine& e) -> task<> {
      co_await play_fixture(e);
      const int n = 7;
      (void)co_await e.start<int>("fx_dies", {.id = "dies"}, n);
      co_await weir::sleep(1h);
    });
  });
  keep(on, "crashed.txt");
}
