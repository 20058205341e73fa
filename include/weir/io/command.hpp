// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::io {

/// A program to run and what it is given. It is a plain value, which can be run any number of
/// times; nothing is started by making one.
///
/// There is no shell: arguments reach the program as they are. A program name with a slash is a
/// path; any other is searched in PATH: that of `env`, if it sets one, otherwise that of this
/// process. An empty program name, a NUL character anywhere, and an empty variable name or one with
/// '=': errc::invalid_argument.
class command {
 public:
  template <std::convertible_to<std::string_view>... Args>
  explicit command(std::string_view program, const Args&... args)
      : words_{checked_program(program)} {
    words_.reserve(1 + sizeof...(args));
    (arg(args), ...);
  }

  /// Adds an argument.
  command& arg(std::string_view text);
  /// What the program reads from its standard input, which ends after that.
  command& input(std::string_view text);
  /// Sets a variable in the program's environment, which is otherwise that of this process.
  command& env(std::string_view key, std::string_view value);
  /// The folder that the program starts in; a relative path begins at the folder of this process. A
  /// program given by a relative path is then searched from there.
  command& cwd(std::string_view path);

  // Below: for the library.
  const std::string& program() const noexcept { return words_.front(); }
  const std::vector<std::string>& words() const noexcept { return words_; }
  const std::vector<std::pair<std::string, std::string>>& variables() const noexcept {
    return variables_;
  }
  const std::string& folder() const noexcept { return folder_; }
  const std::optional<std::string>& given_input() const noexcept { return input_; }

 private:
  static std::string checked_program(std::string_view text);

  std::vector<std::string> words_;  // the program, then its arguments
  std::vector<std::pair<std::string, std::string>> variables_;
  std::string folder_;  // empty: that of this process
  std::optional<std::string> input_;
};

}  // namespace weir::io
