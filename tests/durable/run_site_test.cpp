// SPDX-License-Identifier: MIT
// The journal has the source line of every command: for readers, not for the comparison of code
// with the journal.
#include <map>
#include <source_location>

#include "durable/compact_journal.hpp"
#include "durable/journal_reader.hpp"
#include "durable/run_record.hpp"
#include "durable/site_table.hpp"
#include "durable/support/stage.hpp"

using namespace durable_test;
using weir::detail::blocked_record;
using weir::detail::command_record;
using weir::detail::record_type;
using weir::detail::site_record;

namespace {

/// What a journal says of lines and of blocked runs.
class site_reader final : public weir::detail::journal_visitor {
 public:
  explicit site_reader(const stage& on) {
    weir::detail::journal_reader from(weir::real_disk(), on.journal());
    from.read(*this);
  }
  void restart() override { *this = site_reader(); }
  void see(const weir::detail::record_head& head, std::string_view payload, std::uint64_t,
           weir::detail::record_place) override {
    const auto type = static_cast<record_type>(head.type);
    if (type == record_type::site) {
      const site_record r = site_record::read(payload);
      places[r.number] = r.text();
      ++sites;
    }
    if (type == record_type::command) {
      const command_record r = command_record::read(payload);
      commands[std::string(r.name)] = r.site;
    }
    if (type == record_type::blocked)
      blocks.push_back(blocked_record::is_block(head.flags)
                           ? std::string(blocked_record::read(payload).why)
                           : "continues");
  }
  /// Where the command of this name was issued.
  std::string place(const std::string& command) { return places[commands.at(command)]; }

  std::map<std::uint32_t, std::string> places;
  std::map<std::string, std::uint32_t> commands;  // by name: of the last one
  lines blocks;
  int sites = 0;

 private:
  site_reader() = default;
};

std::string line_text(std::uint_least32_t line) {
  return "run_site_test.cpp:" + std::to_string(line);
}

std::uint_least32_t line_of_step = 0;
std::uint_least32_t line_of_sleep = 0;

/// The step is repeated at one line; then it waits.
task<int> steps_and_waits(int n) {
  for (int i = 0; i < n; ++i) {
    line_of_step = std::source_location::current().line() + 1;
    co_await weir::step("repeated", [] {});
  }
  line_of_sleep = std::source_location::current().line() + 1;
  co_await weir::sleep(1h);
  co_return co_await weir::signal<int>("go").wait();
}

/// The same commands at other lines.
task<int> moved(int n) {
  for (int i = 0; i < n; ++i) co_await weir::step("repeated", [] {});
  co_await weir::sleep(1h);
  co_return co_await weir::signal<int>("go").wait();
}

task<int> renamed(int) {
  co_await weir::step("another", [] {});
  co_return 0;
}

task<> start_r(durable::engine& e) {
  (void)co_await e.start<int>("h", {.id = "r"}, 5);
  co_await weir::sleep(1s);
}

task<> look_only(durable::engine&) { co_await weir::sleep(1s); }

}  // namespace

TEST(durable_run_site, a_line_is_recorded_once_and_every_command_there_refers_to_it) {
  const stage on;
  session_of(on, steps_and_waits, start_r);
  site_reader first(on);
  EXPECT_EQ(first.place("repeated"), line_text(line_of_step));
  EXPECT_EQ(first.place(""), line_text(line_of_sleep));
  EXPECT_EQ(first.sites, 2);
  session_of(
      on, steps_and_waits,
      [](durable::engine& e) -> task<> {
        (void)co_await e.start<int>("h", {.id = "second"}, 5);
        co_await weir::sleep(1s);
      },
      1min);
  EXPECT_EQ(site_reader(on).sites, 2) << "the next process knows what the journal has";
}

TEST(durable_run_site, a_line_that_was_moved_is_no_difference) {
  const stage on;
  session_of(on, steps_and_waits, start_r);
  session_of(
      on, moved,
      [](durable::engine& e) -> task<> {
        auto run = co_await e.start<int>("h", {.id = "r"}, 5);
        EXPECT_TRUE(co_await e.signal("r", "go", 7));
        EXPECT_EQ(co_await run.result(), 7);
      },
      1min);
}

TEST(durable_run_site, code_that_does_not_match_is_told_where_the_command_was) {
  const stage on;
  session_of(on, steps_and_waits, start_r);
  session_of(
      on, renamed,
      [](durable::engine& e) -> task<> {
        co_await weir::sleep(1s);
        const auto info = e.get("r");
        EXPECT_EQ(info->state, durable::run_state::blocked);
        EXPECT_TRUE(
            test_support::contains(info->message, ", recorded at " + line_text(line_of_step) + ";"))
            << info->message;
      },
      1min);
  sim::run({.seed = 1, .start_time = day0}, [&]() -> task<> {
    auto verify = [&](durable::engine& e) -> task<> {
      e.add("h", renamed);
      const durable::replay_report report = co_await e.verify();
      EXPECT_EQ(report.differences.size(), 1u);
      EXPECT_TRUE(test_support::contains(report.differences.at(0).message,
                                         "recorded at " + line_text(line_of_step)));
    };
    co_await durable::with_engine(options_for(on), verify);
  });
}

TEST(durable_run_site, the_lines_of_kept_runs_survive_a_compaction) {
  const stage on;
  session_of(on, steps_and_waits, start_r);
  durable::engine_options options = options_for(on);
  (void)weir::detail::compact_journal(options);
  EXPECT_EQ(site_reader(on).place("repeated"), line_text(line_of_step));
  session_of(
      on, steps_and_waits,
      [](durable::engine& e) -> task<> {
        (void)co_await e.start<int>("h", {.id = "second"}, 1);
        co_await weir::sleep(1s);
      },
      1min);
  EXPECT_EQ(site_reader(on).sites, 2);
}

TEST(durable_run_site, commands_of_older_journals_have_none) {
  for (const std::uint32_t site : {0u, 7u}) {
    for (const std::string value : {"", "1", "12345"}) {
      weir::detail::payload_writer out;
      command_record{"name", 3, 4, value, site}.write(out);
      const command_record read = command_record::read(out.view().bytes);
      EXPECT_EQ(read.name, "name");
      EXPECT_EQ(read.digest, 3u);
      EXPECT_EQ(read.number, 4u);
      EXPECT_EQ(read.value, value);
      EXPECT_EQ(read.site, site);
    }
  }
}

TEST(durable_run_site, a_journal_has_a_bounded_number_of_lines) {
  weir::detail::site_table sites;
  sites.see({weir::detail::site_table::sites_max, 1, "last.cpp"});
  const auto known = sites.number_of(std::source_location::current());
  EXPECT_EQ(known.number, 0u);
  EXPECT_FALSE(known.is_new);
  EXPECT_EQ(sites.number_of(std::source_location()).number, 0u);
}

TEST(durable_run_site, that_a_run_is_blocked_is_recorded_once_for_a_reason_and_so_is_its_end) {
  const stage on;
  session_of(on, steps_and_waits, start_r);
  for (int i = 1; i <= 3; ++i) session_of(on, renamed, look_only, i * 1min);
  const lines once = site_reader(on).blocks;
  EXPECT_EQ(once.size(), 1u);
  EXPECT_TRUE(test_support::contains(once.at(0), "was step 'repeated' and is step 'another'"));
  session(on, [](durable::engine& e) { e.add("other", twice); }, look_only, 10min);
  const lines twice_blocked = site_reader(on).blocks;
  EXPECT_EQ(twice_blocked.size(), 2u);
  EXPECT_TRUE(test_support::contains(twice_blocked.back(), "no handler 'h' of version 1"));
  session_of(on, moved, look_only, 20min);
  session_of(on, moved, look_only, 21min);
  EXPECT_EQ(site_reader(on).blocks.size(), 3u);
  EXPECT_EQ(site_reader(on).blocks.back(), "continues");
}

TEST(durable_run_site, an_engine_without_handlers_does_not_record_that_runs_are_blocked) {
  const stage on;
  session_of(on, steps_and_waits, start_r);
  session(on, [](durable::engine&) {}, look_only, 1min);
  EXPECT_EQ(site_reader(on).blocks, lines());
}

TEST(durable_run_site, a_fork_of_a_blocked_run_is_not_blocked) {
  const stage on;
  session_of(on, steps_and_waits, start_r);
  session_of(on, renamed, look_only, 1min);
  session_of(
      on, moved,
      [](durable::engine& e) -> task<> {
        (void)co_await e.fork("r", 2, {.id = "f"});
        auto fork = co_await e.start<int>("h", {.id = "f"}, 5);
        EXPECT_TRUE(co_await e.signal("f", "go", 8));
        EXPECT_EQ(co_await fork.result(), 8);
      },
      2min);
  EXPECT_EQ(site_reader(on).blocks.size(), 2u) << "of the run itself: blocked, and continued";
}
