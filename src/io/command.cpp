// SPDX-License-Identifier: MIT
#include <weir/io/command.hpp>

#include <weir/error.hpp>

namespace weir::io {

namespace {

std::string checked_text(std::string_view text, const char* what) {
  if (text.find('\0') != std::string_view::npos)
    detail::raise(errc::invalid_argument, std::string("command: ") + what + " '" +
                                              std::string(text.substr(0, text.find('\0'))) +
                                              "...' has a NUL character, which no program can get");
  return std::string(text);
}

}  // namespace

std::string command::checked_program(std::string_view text) {
  if (text.empty()) detail::raise(errc::invalid_argument, "command: the program has no name");
  return checked_text(text, "the program");
}

command& command::arg(std::string_view text) {
  words_.push_back(checked_text(text, "argument"));
  return *this;
}

command& command::input(std::string_view text) {
  input_.emplace(text);
  return *this;
}

command& command::env(std::string_view key, std::string_view value) {
  if (key.empty() || key.find('=') != std::string_view::npos)
    detail::raise(errc::invalid_argument, "command: '" + std::string(key) +
                                              "' is no name of a variable; give one without '='");
  variables_.emplace_back(checked_text(key, "variable"), checked_text(value, "value"));
  return *this;
}

command& command::cwd(std::string_view path) {
  if (path.empty()) detail::raise(errc::invalid_argument, "command: the path of cwd is empty");
  folder_ = checked_text(path, "folder");
  return *this;
}

}  // namespace weir::io
