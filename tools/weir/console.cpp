// SPDX-License-Identifier: MIT
#include "console.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <system_error>

#include <sys/ioctl.h>
#include <unistd.h>

#include "format.hpp"

namespace weir_tool {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t buffer_max = std::size_t{64} << 10;
constexpr auto first_report = 1s;
constexpr auto between_reports = 200ms;

std::size_t columns_of_environment() noexcept {
  const char* given = std::getenv("COLUMNS");
  std::size_t columns = 0;
  if (given != nullptr) {
    const std::string_view text(given);
    (void)std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  return columns;
}

std::size_t columns_of_terminal() noexcept {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool wants_no_colours() noexcept {
  const char* given = std::getenv("NO_COLOR");
  return given != nullptr && *given != '\0';
}

std::string_view code_of(ink with) noexcept {
  switch (with) {
    case ink::dim:
      return "\033[2m";
    case ink::bold:
      return "\033[1m";
    case ink::good:
      return "\033[32m";
    case ink::bad:
      return "\033[31m";
    case ink::warn:
      return "\033[33m";
    default:
      return "";
  }
}

}  // namespace

console::console()
    : colours_(::isatty(STDOUT_FILENO) == 1 && !wants_no_colours()),
      reports_(::isatty(STDERR_FILENO) == 1),
      columns_(columns_of_environment()),
      next_report_(std::chrono::steady_clock::now() + first_report) {
  if (columns_ == 0) columns_ = columns_of_terminal();
  if (columns_ == 0) columns_ = std::numeric_limits<std::size_t>::max();
}

void console::write(std::string_view text) {
  buffer_.append(text);
  if (buffer_.size() >= buffer_max) flush();
}

void console::line(std::string_view text) {
  write(text);
  write("\n");
}

std::string console::tint(std::string_view text, ink with) const {
  if (!colours_ || with == ink::plain || text.empty()) return std::string(text);
  return std::string(code_of(with)) + std::string(text) + "\033[0m";
}

void console::flush() {
  if (buffer_.empty()) return;
  erase_progress();
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      buffer_.clear();  // the destructor does not try again
      throw std::system_error(error, std::generic_category(), "cannot write the output");
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

void console::complain(std::string_view text) {
  flush();
  erase_progress();
  std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(text.size()), text.data());
}

void console::progress(std::string_view what, std::uint64_t records) {
  if (!reports_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_report_) return;
  next_report_ = now + between_reports;
  reported_ = true;
  std::fprintf(stderr, "\r\033[K%.*s: %s", static_cast<int>(what.size()), what.data(),
               counted(records, "record").c_str());
  std::fflush(stderr);
}

void console::erase_progress() {
  if (!reported_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  reported_ = false;
}

}  // namespace weir_tool
