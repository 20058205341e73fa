// SPDX-License-Identifier: MIT
// What the tests of processes share. The children are /bin/sh and small tools.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <sys/wait.h>

#include "io_support.hpp"

namespace weir_test {

/// A shell that runs this text.
inline io::command script(std::string_view text) { return io::command("sh", "-c", text); }

/// The pieces of a stream up to the end.
inline task<std::string> text_of(weir::stream<std::string> pieces) {
  std::string all;
  while (auto piece = co_await pieces.next()) all += *piece;
  co_return all;
}

/// Reads until what came has this in it.
inline task<> read_past(weir::stream<std::string>& pieces, std::string_view word) {
  std::string all;
  while (!contains(all, word)) {
    auto piece = co_await pieces.next();
    if (!piece) break;
    all += *piece;
  }
  EXPECT_TRUE(contains(all, word)) << all;
}

/// This process has no child, running or not reaped.
inline bool has_no_child() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

/// A process that is not there, or is one that its parent has not reaped.
inline bool is_gone(int pid) {
  std::string stat(512, '\0');
  const int file = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  const ssize_t n = ::read(file, stat.data(), stat.size());
  ::close(file);
  return n <= 0 || contains(stat, ") Z ") || contains(stat, ") X ");
}

}  // namespace weir_test
