// SPDX-License-Identifier: MIT
// Where the tool writes: standard output, perhaps with colours, and progress on standard error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir_tool {

enum class ink { plain, dim, bold, good, bad, warn };

/// Requires: one thread. Colours are used if standard output is a terminal and NO_COLOR is not set.
class console {
 public:
  console();
  console(const console&) = delete;
  console& operator=(const console&) = delete;
  ~console() { flush(); }

  void write(std::string_view text);
  void line(std::string_view text = {});
  /// The text in a colour; unchanged if there are none.
  std::string tint(std::string_view text, ink with) const;
  /// At the end, and after each line of a tail. Throws std::system_error if it cannot write.
  void flush();
  /// A line on standard error: "weir: " and the text.
  void complain(std::string_view text);

  /// The columns of the terminal, or $COLUMNS; a large number if there is neither.
  std::size_t columns() const noexcept { return columns_; }

  /// On a terminal, after a second: a line on standard error that is replaced by the next one and
  /// erased by whatever is written after it.
  void progress(std::string_view what, std::uint64_t records);

 private:
  void erase_progress();

  std::string buffer_;
  bool colours_ = false;
  bool reports_ = false;
  bool reported_ = false;
  std::size_t columns_ = 0;
  std::chrono::steady_clock::time_point next_report_;
};

}  // namespace weir_tool
