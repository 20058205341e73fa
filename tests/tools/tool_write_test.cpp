// SPDX-License-Identifier: MIT
// The commands of the tool that write: export, to a file of its own, and compact.
#include <filesystem>
#include <string>
#include <vector>

#include "tools/tool_support.hpp"

#include "durable/run_export.hpp"

using namespace durable_test;

TEST(tool_export, an_exported_run_is_replayed_from_its_file) {
  const stage on;
  make_tool_journal(on);
  const std::string file = on.root() + "/o-1.run";
  const tool_end end = weir_journal(on, {"export", on.journal(), "o-1", "-o", file});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(test_support::contains(end.out, ": run o-1, 13 records, ")) << end.out;
  const auto run = weir::detail::read_export(content_of(file), file);
  EXPECT_EQ(run.records.size(), 13u);
  sim::run({.seed = 1, .start_time = day0}, [&]() -> task<> {
    const auto report = co_await durable::replay(file, tool_checkout);
    EXPECT_TRUE(report.ok());
  });
  EXPECT_FALSE(std::filesystem::exists(file + ".new"));
  const tool_end nowhere =
      weir_journal(on, {"export", on.journal(), "o-1", "-o", on.root() + "/none/o-1.run"});
  EXPECT_EQ(nowhere.code, 2);
}

TEST(tool_compact, a_journal_in_use_is_left_alone_with_exit_code_3) {
  const stage on;
  make_tool_journal(on);
  session_of(on, twice, [&](durable::engine&) -> task<> {
    const tool_end end = weir_journal(on, {"compact", on.journal()});
    EXPECT_EQ(end.code, 3);
    EXPECT_TRUE(test_support::contains(end.err, "in use")) << end.err;
    co_return;
  });
}

TEST(tool_compact, runs_whose_retention_is_not_over_are_kept) {
  const stage on;
  make_tool_journal(on);
  // The runs of the journal end in 2030, so none is old enough now.
  EXPECT_EQ(weir_journal(on, {"compact", on.journal(), "--retention", "7d"}).code, 0);
  const tool_end before = weir_journal(on, {"ls", on.journal(), "--json"});
  EXPECT_TRUE(test_support::contains(before.out, "\"o-1\"")) << before.out;
  EXPECT_TRUE(test_support::contains(before.out, "\"o-4\"")) << before.out;
  EXPECT_EQ(weir_journal(on, {"check", on.journal()}).code, 0);
}
