// SPDX-License-Identifier: MIT
// The commands of `weir journal`. docs/tool.md describes what they print.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/duration.hpp>

#include "console.hpp"
#include "durable/journal_reader.hpp"

namespace weir_tool {

/// What the command line says.
struct request {
  std::string path;  // of the journal
  std::string run;   // an id, or # and a number; empty: none given
  std::string state;
  std::string handler;
  std::string file;  // of an export
  std::vector<std::string> key_files;
  weir::duration retention{};
  std::size_t last = 10;  // records of a tail
  bool json = false;
  bool payloads = false;
  bool follow = false;
};

/// The exit codes.
inline constexpr int exit_well = 0;
inline constexpr int exit_found = 1;   // damage, or a difference
inline constexpr int exit_wrong = 2;   // wrong use, unknown run or path
inline constexpr int exit_in_use = 3;  // compact only

/// What `ls --state` takes besides the states: all runs that have not ended.
inline constexpr std::string_view unfinished_state = "unfinished";

/// Each returns an exit code. Errors: weir::error, as of journal_reader.
int list_runs(const request& r, console& to);
int show_journal(const request& r, console& to);
int show_run(const request& r, console& to);
int check_journal(const request& r, console& to);
int compact_journal(const request& r, console& to);
int export_run(const request& r, console& to);
int tail_journal(const request& r, console& to);

/// Throws errc::invalid_argument if the path is no directory.
void require_journal(const request& r);
/// The journal of a request, not yet read.
weir::detail::journal_reader open_journal(const request& r);
/// Throws errc::invalid_argument: the journal has no such run.
[[noreturn]] void raise_no_run(const request& r);

}  // namespace weir_tool
