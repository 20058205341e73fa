// SPDX-License-Identifier: MIT
// Runs the command line tool as a process, and makes the journal that its tests and its page show.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "durable/support/stage.hpp"
#include "tool_path.hpp"
#include "tools/orders.hpp"

namespace durable_test {

struct tool_end {
  int code = -1;  // above 1000: the number of a signal
  std::string out;
  std::string err;
};

inline std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

/// Executes a program in a forked child: standard output and error to these files.
[[noreturn]] inline void become(std::vector<std::string> words, const std::string& out,
                                const std::string& err, const std::string& columns) {
  const int to[] = {::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
                    ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600)};
  ::dup2(to[0], 1);
  ::dup2(to[1], 2);
  ::setenv("COLUMNS", columns.c_str(), 1);
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  ::_exit(127);
}

inline tool_end run_program(const stage& on, const std::vector<std::string>& words,
                            const std::string& columns = "80") {
  const std::string out = on.root() + "/out";
  const std::string err = on.root() + "/err";
  const pid_t child = ::fork();
  if (child == 0) become(words, out, err, columns);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("fork");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), content_of(out),
          content_of(err)};
}

/// `weir journal <words>`.
inline tool_end weir_journal(const stage& on, std::vector<std::string> words,
                             const std::string& columns = "80") {
  words.insert(words.begin(), {tool_path, "journal"});
  return run_program(on, words, columns);
}

// ------------------------------------------------------------------ the journal of docs/tool.md

/// Four runs: completed, failed, cancelled, and one that still waits.
inline void make_tool_journal(const stage& on) {
  auto handlers = [](durable::engine& e) {
    e.add("checkout", tool_checkout);
    e.add("invoice", tool_invoice);
  };
  auto use = [](durable::engine& e) -> task<> {
    tool_order first{"o-1", 900};
    auto completed = co_await e.start<std::string>("checkout", {.id = "o-1"}, first);
    co_await weir::sleep(2h);
    const bool approved = co_await e.resolve(last_question, true);
    EXPECT_TRUE(approved);
    tool_order second{"o-2", -1};
    auto failed = co_await e.start<std::string>("checkout", {.id = "o-2"}, second);
    (void)co_await ending_of(failed);
    (void)co_await ending_of(completed);
    tool_order third{"o-3", 1200};
    auto cancelled = co_await e.start<std::string>("checkout", {.id = "o-3"}, third);
    co_await weir::sleep(10min);
    EXPECT_TRUE(cancelled.cancel("ordered twice"));
    (void)co_await ending_of(cancelled);
    tool_order fourth{"o-4", 450};
    (void)co_await e.start<std::string>("checkout", {.id = "o-4"}, fourth);
    co_await weir::sleep(1min);
  };
  session(on, handlers, use);
}

}  // namespace durable_test
