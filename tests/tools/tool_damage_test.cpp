// SPDX-License-Identifier: MIT
// The command line tool and damaged journals: found, named, never mended.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "durable/journal_support.hpp"
#include "durable/run_record.hpp"
#include "tools/tool_support.hpp"

using namespace durable_test;
using weir::detail::record_type;

namespace {

using tool_files = std::map<std::string, std::string>;

tool_files files_of(const std::string& journal) {
  tool_files all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(journal))
    if (entry.is_regular_file()) all[entry.path().string()] = content_of(entry.path().string());
  return all;
}

void put_back(const tool_files& files) {
  for (const auto& [name, content] : files)
    std::ofstream(name, std::ios::binary | std::ios::trunc) << content;
}

/// Whether an engine opens it; it may be changed by that.
bool opens(const stage& on) {
  try {
    session_of(on, twice, [](durable::engine&) -> task<> { co_return; });
  } catch (const weir::error&) {
    return false;
  }
  return true;
}

using writer = std::function<void(weir::detail::journal&)>;

/// A journal with these records, each committed.
void write_journal(const stage& on, const writer& write) {
  weir::detail::journal_options options;
  options.path = on.journal();
  options.segment_bytes = smallest_segment;
  options.sync = false;
  journal_aid::opened o(options);
  write(o.j);
  journal_aid::commit(o.j);
}

void add(weir::detail::journal& j, record_type type, std::uint64_t run, std::uint32_t index,
         std::string_view payload, std::uint16_t flags = 0) {
  (void)j.append({.type = static_cast<std::uint16_t>(type),
                  .flags = flags,
                  .run = run,
                  .fiber = index == 0 ? 0U : 1U,
                  .index = index},
                 payload);
}

std::string start_payload(const std::string& id) {
  weir::detail::payload_writer out;
  weir::detail::start_record r;
  r.id = id;
  r.handler = "h";
  r.write(out);
  return std::string(out.view().bytes);
}

std::string answer_payload() {
  weir::detail::payload_writer out;
  weir::detail::answer_record{{}, errc::terminal, "1"}.write(out);
  return std::string(out.view().bytes);
}

std::string command_payload() {
  weir::detail::payload_writer out;
  weir::detail::command_record{.name = "s"}.write(out);
  return std::string(out.view().bytes);
}

constexpr std::uint16_t step_flag = 3;
constexpr std::uint16_t value_flag = 1;

}  // namespace

TEST(tool_damage, whatever_byte_is_flipped_check_says_well_only_if_an_engine_opens_the_journal) {
  const stage on;
  session_of(on, twice, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("h", {.id = "r"}, 1);
    (void)co_await run.result();
  });
  const tool_files whole = files_of(on.journal());
  int damaged = 0;
  int well = 0;
  for (const auto& [name, content] : whole) {
    const std::size_t used = std::min(content.find_last_not_of('\0') + 9, content.size());
    for (std::size_t at = 0; at < used; ++at) {
      tool_files changed = whole;
      changed[name][at] = static_cast<char>(changed[name][at] ^ (1 << at % 8));
      put_back(changed);
      const tool_end end = weir_journal(on, {"check", on.journal()});
      ASSERT_TRUE(end.code == 0 || end.code == 1)
          << name << " " << at << ": " << end.code << end.err;
      ASSERT_TRUE(files_of(on.journal()) == changed) << name << " " << at;
      if (end.code == 1) {
        ++damaged;
        EXPECT_TRUE(test_support::contains(end.out, " at offset ")) << end.out;
        continue;
      }
      ++well;
      ASSERT_TRUE(opens(on)) << name << " " << at << end.out;
    }
  }
  EXPECT_GT(damaged, 300);
  EXPECT_GT(well, 80);  // the manifest is rebuilt
}

TEST(tool_damage, a_wrong_structure_is_found_and_named) {
  struct fault {
    writer write;
    std::string says;
  };
  const auto start = [](weir::detail::journal& j) {
    add(j, record_type::run_start, 1, 0, start_payload("r"));
  };
  const fault faults[] = {
      {[&](auto& j) { add(j, record_type::answer, 7, 1, answer_payload(), value_flag); },
       "of run 7, which the journal does not start"},
      {[&](auto& j) { start(j), start(j); }, "a second start of run 1"},
      {[&](auto& j) {
         start(j);
         add(j, record_type::run_end, 1, 0, answer_payload(), value_flag);
         add(j, record_type::run_end, 1, 0, answer_payload(), value_flag);
       },
       "a second end of run 1"},
      {[&](auto& j) {
         start(j);
         add(j, record_type::answer, 1, 4, answer_payload(), value_flag);
       },
       "of run 1 for command 1.4, which is not recorded before it"},
      {[&](auto& j) {
         start(j);
         add(j, record_type::command, 1, 1, command_payload(), step_flag);
         add(j, record_type::command, 1, 1, command_payload(), step_flag);
       },
       "command 1.1 of run 1 is recorded twice"},
      {[&](auto& j) {
         start(j);
         add(j, record_type::run_end, 1, 0, "short", value_flag);
       },
       "a record of type 2 (end) is shorter than its kind"},
      {[&](auto& j) { add(j, static_cast<record_type>(99), 1, 0, "x"); }, "a record of type 99"},
  };
  for (const fault& f : faults) {
    const stage on;
    write_journal(on, f.write);
    const tool_end end = weir_journal(on, {"check", on.journal()});
    EXPECT_EQ(end.code, 1) << f.says << end.err;
    EXPECT_TRUE(test_support::contains(end.out, f.says)) << f.says << " in: " << end.out;
    EXPECT_TRUE(test_support::contains(end.out, "seg-0000000000000001.wlog at offset ")) << end.out;
    const tool_end json = weir_journal(on, {"check", on.journal(), "--json"});
    EXPECT_EQ(json.code, 1);
    EXPECT_TRUE(test_support::contains(json.out, "\"well\":false")) << json.out;
  }
}

TEST(tool_damage, what_precedes_the_damage_is_shown_with_exit_code_1) {
  const stage on;
  write_journal(on, [](weir::detail::journal& j) {
    add(j, record_type::run_start, 1, 0, start_payload("early"));
    journal_aid::commit(j);
    add(j, record_type::run_start, 2, 0, start_payload("late"));
    journal_aid::commit(j);
    add(j, record_type::run_start, 3, 0, start_payload("proof"));
  });
  const std::string segment = on.journal() + "/seg-0000000000000001.wlog";
  std::string content = content_of(segment);
  const std::size_t late = content.find("late");
  ASSERT_NE(late, std::string::npos);
  content[late] = 'L';
  std::ofstream(segment, std::ios::binary | std::ios::trunc) << content;
  for (const std::string command : {"ls", "show", "tail"}) {
    const tool_end end = weir_journal(on, {command, on.journal()});
    EXPECT_EQ(end.code, 1);
    EXPECT_TRUE(test_support::contains(end.out, command == "show" ? "1 running" : "early"))
        << end.out;
    EXPECT_FALSE(test_support::contains(end.out, "proof"));
    EXPECT_TRUE(test_support::contains(end.err, "at offset")) << end.err;
  }
}

TEST(tool_damage, no_command_but_compact_changes_a_file) {
  const stage on;
  make_tool_journal(on);
  const tool_files before = files_of(on.journal());
  for (const std::string command : {"ls", "show", "check", "tail"})
    EXPECT_EQ(weir_journal(on, {command, on.journal()}).code, 0);
  EXPECT_TRUE(files_of(on.journal()) == before);
}
