// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "console.hpp"

namespace weir_tool {

/// Aligned columns. The last one is cut at the width of the terminal; if little of it would be left
/// there, it has a line of its own.
class table {
 public:
  struct column {
    std::string title;
    bool right = false;  // numbers
  };
  struct cell {
    std::string text;  // plain
    ink with = ink::plain;
  };

  explicit table(std::vector<column> columns);
  void row(std::vector<cell> cells);
  /// Prints nothing of a column that is empty in every row.
  void print(console& to) const;

 private:
  std::vector<std::size_t> widths() const;
  struct layout {
    std::vector<std::size_t> wide;  // 0: the column is empty
    std::size_t last = 0;           // the last column that is not
    std::size_t room = 0;           // for it
  };
  layout lay_out(std::size_t columns) const;
  void print_row(console& to, const layout& l, const std::vector<cell>& cells) const;

  std::vector<column> columns_;
  std::vector<std::vector<cell>> rows_;
};

}  // namespace weir_tool
