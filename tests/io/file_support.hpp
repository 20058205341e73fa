// SPDX-License-Identifier: MIT
// Files as the tests see them: through the system's calls, not through weir.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/io.hpp>

#include "durable/support/temporary_directory.hpp"
#include "support/test_support.hpp"

namespace weir_test {

using namespace test_support;
using weir::errc;
using weir::task;
namespace io = weir::io;

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void put(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline std::vector<std::string> names_in(std::string_view folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline unsigned mode_of(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0U;
}

/// The numbers of the open descriptors that refer to a path.
inline std::vector<int> descriptors_of(const std::string& path) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == path)
      found.push_back(std::stoi(entry.path().filename().string()));
  }
  return found;
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Runs a program on real threads and in a simulation: files are the same in both.
template <class F>
void on_both(F program) {
  {
    SCOPED_TRACE("real");
    weir::run(program);
  }
  SCOPED_TRACE("simulated");
  weir_test::in_order(program);
}

}  // namespace weir_test
