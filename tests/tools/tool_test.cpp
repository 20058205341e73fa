// SPDX-License-Identifier: MIT
// The command line tool: what it prints, what it gives to programs, and its exit codes.
#include <filesystem>
#include <string>
#include <vector>

#include "durable/journal_support.hpp"
#include "tools/tool_support.hpp"

using namespace durable_test;

namespace {

std::string without(std::string text, const std::string& part, const std::string& instead) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += instead.size())
    text.replace(at, part.size(), instead);
  return text;
}

/// docs/tool.md quotes the command and exactly this output.
void expect_quoted(const stage& on, const std::vector<std::string>& words) {
  std::string command = "$ weir journal";
  for (const std::string& w : words) command += " " + (w == on.journal() ? "orders.weir" : w);
  const tool_end end = weir_journal(on, words);
  EXPECT_EQ(end.code, 0) << end.err;
  const std::string block = command + "\n" + without(end.out, on.journal(), "orders.weir") + "```";
  EXPECT_TRUE(test_support::contains(content_of(tool_page), block)) << "docs/tool.md lacks this:\n"
                                                                    << block;
  for (std::size_t from = 0; from < end.out.size();) {
    const std::size_t feed = end.out.find('\n', from);
    EXPECT_LE(feed - from, 84u) << "a line too wide for 80 columns: "
                                << end.out.substr(from, feed - from);
    from = feed + 1;
  }
}

/// What a Python program sees that reads standard input; its output.
std::string python(const stage& on, const std::string& input, const std::string& program) {
  const std::string file = on.root() + "/input";
  std::ofstream(file) << input;
  const tool_end end = run_program(
      on, {"python3", "-c",
           "import json,sys\nrows=[json.loads(l) for l in open(sys.argv[1])]\n" + program, file});
  EXPECT_EQ(end.code, 0) << end.err << input;
  return end.out;
}

std::string json(const stage& on, std::vector<std::string> words, const std::string& program) {
  words.push_back("--json");
  const tool_end end = weir_journal(on, words);
  EXPECT_EQ(end.code, 0) << end.err;
  return python(on, end.out, program);
}

}  // namespace

TEST(tool, prints_what_its_page_shows) {
  const stage on;
  make_tool_journal(on);
  expect_quoted(on, {"ls", on.journal()});
  expect_quoted(on, {"ls", on.journal(), "--state", "failed"});
  expect_quoted(on, {"show", on.journal()});
  expect_quoted(on, {"show", on.journal(), "o-1"});
  expect_quoted(on, {"show", on.journal(), "o-3", "--payloads"});
  expect_quoted(on, {"check", on.journal()});
  expect_quoted(on, {"tail", on.journal(), "-n", "4"});
}

TEST(tool, a_wide_terminal_gets_one_line_per_run) {
  const stage on;
  make_tool_journal(on);
  const tool_end end = weir_journal(on, {"ls", on.journal()}, "120");
  EXPECT_TRUE(test_support::contains(
      end.out, "failed     2030-01-01 02:00:00     +0 ms      1  card declined\n"))
      << end.out;
  EXPECT_EQ(std::count(end.out.begin(), end.out.end(), '\n'), 6);
  EXPECT_EQ(end.out.find('\033'), std::string::npos);
}

TEST(tool, json_lists_runs_with_stable_names) {
  const stage on;
  make_tool_journal(on);
  EXPECT_EQ(
      json(on, {"ls", on.journal()},
           "for r in rows: print(r['id'], r['number'], r['handler'], r['version'], r['state'], "
           "r['started'], r.get('ended'), r['steps'], r.get('message'), r.get('waits_for'))"),
      "o-1 1 checkout 1 completed 2030-01-01T00:00:00.000000000Z "
      "2030-01-02T02:00:00.000000000Z 2 None None\n"
      "o-2 2 checkout 1 failed 2030-01-01T02:00:00.000000000Z "
      "2030-01-01T02:00:00.000000000Z 1 card declined None\n" +
          json(on, {"ls", on.journal(), "--handler", "invoice"},
               "for r in rows: print(r['id'], r['number'], r['handler'], r['version'], "
               "r['state'], r['started'], r.get('ended'), r['steps'], r.get('message'), "
               "r.get('waits_for'))") +
          "o-3 4 checkout 1 cancelled 2030-01-02T02:00:00.000000000Z "
          "2030-01-02T02:10:00.000000000Z 2 ordered twice None\n"
          "o-4 5 checkout 1 waiting 2030-01-02T02:10:00.000000000Z None 2 None awakeable "
          "approval\n");
  for (const std::string state : {"waiting", "unfinished"})
    EXPECT_EQ(json(on, {"ls", on.journal(), "--state", state}, "print([r['id'] for r in rows])"),
              "['o-4']\n");
}

TEST(tool, json_shows_a_run_and_hides_its_payloads_unless_asked) {
  const stage on;
  make_tool_journal(on);
  const std::vector<std::string> words{"show", on.journal(), "o-1"};
  EXPECT_EQ(json(on, words,
                 "print(rows[0]['id'], [r['type'] for r in rows[1:5]])\n"
                 "print(rows[1]['input_type'], rows[1]['input_bytes'], 'input' in rows[1])\n"
                 "print([(r['command'],r['command_kind'],r['name']) for r in rows[1:] if "
                 "r['type']=='command'][:2])\n"
                 "print(all(r['line'].startswith('orders.hpp:') for r in rows[1:] if "
                 "r['type']=='command'))"),
            "o-1 ['start', 'command', 'attempt', 'answer']\n"
            "object 24 False\n"
            "[('1.1', 'step', 'charge'), ('1.2', 'awakeable', 'approval')]\n"
            "True\n");
  std::vector<std::string> open = words;
  open.push_back("--payloads");
  EXPECT_EQ(
      json(on, open, "print(rows[1]['input'], [r['value'] for r in rows if r['type']=='end'])"),
      "{\"id\":\"o-1\",\"cents\":900} ['\"invoice o-1\"']\n");
  EXPECT_EQ(weir_journal(on, words).out.find("900"), std::string::npos);
  EXPECT_TRUE(test_support::contains(weir_journal(on, {"show", on.journal(), "#1"}).out, "o-1"));
}

TEST(tool, json_of_a_summary_a_check_and_a_tail) {
  const stage on;
  make_tool_journal(on);
  EXPECT_EQ(
      json(on, {"show", on.journal()},
           "r=rows[0]\nprint(r['format'], r['key_id'], r['segments'], r['closed'], r['runs'])\n"
           "print([(h['handler'],h['completed']) for h in r['handlers']])"),
      "1 0 1 True {'running': 0, 'waiting': 1, 'blocked': 0, 'completed': 2, 'failed': 1, "
      "'cancelled': 1}\n"
      "[('checkout', 1), ('invoice', 1)]\n");
  EXPECT_EQ(json(on, {"check", on.journal()},
                 "r=rows[0]\nprint(r['well'], r['runs'], r['segments'], r['torn_bytes'], "
                 "r['manifest'], r['problems'], r['more_problems'])"),
            "True 5 1 0 True [] 0\n");
  EXPECT_EQ(json(on, {"tail", on.journal(), "-n", "2"},
                 "for r in rows: print(r['run'], r['run_number'], r['type'])"),
            "o-4 5 command\no-4 5 answer\n");
}

TEST(tool, wrong_use_and_what_is_not_there_exit_with_2_and_say_what_to_do) {
  const stage on;
  make_tool_journal(on);
  const std::string j = on.journal();
  const std::string missing = on.root() + "/nothing";
  const std::string file = on.ledger();
  note("a file");
  std::filesystem::create_directory(on.root() + "/empty");
  struct use {
    std::vector<std::string> words;
    std::string says;
  };
  const use uses[] = {
      {{}, "ubcommand"},
      {{"list", j}, "there is no command 'journal list'; there are: ls, show"},
      {{"ls"}, "PATH is required"},
      {{"ls", j, "--frob"}, "--frob"},
      {{"ls", j, "--state", "suspended"}, "does not record which runs are in memory"},
      {{"ls", j, "--state", "odd"},
       "running, waiting, blocked, unfinished, completed, failed or cancelled"},
      {{"ls", missing}, "there is no journal '" + missing + "'"},
      {{"check", missing}, "there is no journal '" + missing + "'"},
      {{"ls", file}, "is a file"},
      {{"check", on.root() + "/empty"}, "is not a journal: it has no segments"},
      {{"show", j, "o-9"}, "has no run 'o-9'"},
      {{"show", j, "#99"}, "has no run '#99'"},
      {{"export", j, "o-1"}, "output is required"},
      {{"export", j, "o-9", "-o", missing}, "has no run 'o-9'"},
      {{"compact", j, "--retention", "7x"}, "give a duration such as 90s"},
      {{"compact", missing}, "there is no journal '" + missing + "'"},
      {{"tail", j, "-n", "many"}, "many"},
  };
  for (const use& u : uses) {
    const tool_end end = weir_journal(on, u.words);
    EXPECT_EQ(end.code, 2) << u.says << end.err;
    EXPECT_TRUE(test_support::contains(end.err, u.says)) << u.says << " in: " << end.err;
    EXPECT_TRUE(end.err.starts_with("weir: ")) << end.err;
    EXPECT_EQ(end.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(missing));
  EXPECT_TRUE(std::filesystem::is_empty(on.root() + "/empty"));
  EXPECT_EQ(weir_journal(on, {"--help"}).code, 0);
}

TEST(tool, what_a_journal_holds_cannot_control_the_terminal) {
  const stage on;
  session_of(on, gives_its_input, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("h",
                                     {.id = "a\033[31m\nb\xff\xc2\x9b"
                                            "c\xc3\xa9"},
                                     1);
    (void)co_await run.result();
  });
  const std::string out = weir_journal(on, {"ls", on.journal()}).out;
  EXPECT_TRUE(test_support::contains(out, "a\\x1b[31m\\nb\\xff\\xc2\\x9bc\xc3\xa9  h")) << out;
}
