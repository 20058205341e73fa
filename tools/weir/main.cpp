// SPDX-License-Identifier: MIT
// weir: looks at what the library leaves behind. `weir journal ...` reads durable journals.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <system_error>

#include <weir/error.hpp>

#include "commands.hpp"
#include "format.hpp"
#include "run_waits.hpp"

namespace weir_tool {

namespace {

using command = std::function<int(const request&, console&)>;

constexpr const char* exit_text =
    "Exit codes: 0 well, 1 damage or a difference found, 2 wrong use, unknown run or path,\n"
    "3 the journal is in use (compact only).\n";

int code_of(const std::error_code& code) noexcept {
  if (code == weir::errc::journal_corrupt) return exit_found;
  if (code == weir::errc::journal_locked) return exit_in_use;
  return exit_wrong;
}

/// A subcommand with the options that all have.
CLI::App* add(CLI::App& to, request& r, const std::string& name, const std::string& what) {
  CLI::App* const sub = to.add_subcommand(name, what);
  sub->add_option("PATH", r.path, "the directory of the journal")->required();
  sub->add_flag("--json", r.json, "for programs: one object per line, or one document");
  sub->add_option("--key-file", r.key_files,
                  "a key of an encrypted journal: 32 bytes, or 64 hexadecimal digits; repeatable")
      ->type_name("FILE");
  return sub;
}

void add_payloads(CLI::App* sub, request& r) {
  sub->add_flag("--payloads", r.payloads, "show values, not only their types and sizes");
}

std::string check_duration(const std::string& text) {
  weir::duration d{};
  return parse_duration(text, d) ? "" : "give a duration such as 90s, 15m, 36h, 7d";
}

std::string check_state(const std::string& text) {
  if (text == unfinished_state) return {};
  for (const standing s : standings)
    if (text == to_string(s)) return {};
  if (text == "suspended")
    return "a journal does not record which runs are in memory; use waiting, which is what their "
           "code does";
  return "give running, waiting, blocked, unfinished, completed, failed or cancelled";
}

void add_commands(CLI::App& journal, request& r, std::string& retention, command& chosen) {
  CLI::App* const ls = add(journal, r, "ls", "list the runs");
  ls->add_option("--state", r.state,
                 "only runs in this state: running, waiting, blocked; unfinished, which is all of "
                 "these; completed, failed, cancelled")
      ->check(check_state)
      ->type_name("STATE");
  ls->add_option("--handler", r.handler, "only runs of this handler")->type_name("NAME");
  ls->callback([&] { chosen = list_runs; });

  CLI::App* const show =
      add(journal, r, "show", "the history of a run, or a summary of the journal");
  show->add_option("RUN", r.run, "the id of a run, or # and its number");
  add_payloads(show, r);
  show->callback([&] { chosen = r.run.empty() ? show_journal : show_run; });

  CLI::App* const check =
      add(journal, r, "check", "check frames, blobs and structure; mends nothing");
  check->callback([&] { chosen = check_journal; });

  CLI::App* const compact =
      add(journal, r, "compact", "drop what is no longer needed; the journal must not be in use");
  compact
      ->add_option("--retention", retention,
                   "keep runs that ended less than this ago: 90s, 15m, 36h, 7d")
      ->check(check_duration)
      ->capture_default_str()
      ->type_name("DURATION");
  compact->callback([&] { chosen = compact_journal; });

  CLI::App* const exported =
      add(journal, r, "export", "write the history of a run to a file, for durable::replay");
  exported->add_option("RUN", r.run, "the id of a run, or # and its number")->required();
  exported->add_option("-o,--output", r.file, "the file to write")->required()->type_name("FILE");
  exported->callback([&] { chosen = export_run; });

  CLI::App* const tail = add(journal, r, "tail", "the last records, and with -f those that follow");
  tail->add_flag("-f,--follow", r.follow, "go on with new records until interrupted");
  tail->add_option("-n,--lines", r.last, "how many of the last records")->capture_default_str();
  add_payloads(tail, r);
  tail->callback([&] { chosen = tail_journal; });
}

/// What CLI11 says of a word that is no command is that a command is missing.
std::string unknown_command(const CLI::App& app, const CLI::App& journal, int argc, char** argv) {
  const auto lacks = [](const CLI::App& at, const std::string& word) {
    for (const CLI::App* sub : at.get_subcommands({}))
      if (sub->check_name(word)) return false;
    return !word.empty() && word[0] != '-';
  };
  if (argc > 1 && lacks(app, argv[1]))
    return "there is no command '" + std::string(argv[1]) + "'; there is: journal";
  if (argc > 2 && std::string(argv[1]) == "journal" && lacks(journal, argv[2]))
    return "there is no command 'journal " + std::string(argv[2]) +
           "'; there are: ls, show, check, compact, export, tail";
  return {};
}

/// Help and version are no errors.
int finish_parsing(const CLI::App& app, const CLI::ParseError& e, const std::string& unknown) {
  if (e.get_exit_code() == 0) return app.exit(e);
  std::fprintf(stderr, "weir: %s; see --help\n", unknown.empty() ? e.what() : unknown.c_str());
  return exit_wrong;
}

int run_tool(int argc, char** argv) {
  CLI::App app("Looks at what weir leaves behind.", "weir");
  app.set_version_flag("--version", "weir " WEIR_TOOL_VERSION);
  app.require_subcommand(1);
  CLI::App* const journal = app.add_subcommand("journal", "durable journals");
  journal->require_subcommand(1);
  journal->footer(exit_text);
  app.footer(exit_text);
  request r;
  std::string retention = "7d";
  command chosen;
  console to;
  add_commands(*journal, r, retention, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return finish_parsing(app, e, unknown_command(app, *journal, argc, argv));
  }
  (void)parse_duration(retention, r.retention);
  try {
    const int code = chosen(r, to);
    to.flush();
    return code;
  } catch (const std::system_error& e) {
    to.complain(e.what());
    return code_of(e.code());
  }
}

}  // namespace

}  // namespace weir_tool

int main(int argc, char** argv) {
  try {
    return weir_tool::run_tool(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weir: %s\n", e.what());
    return weir_tool::exit_wrong;
  }
}
