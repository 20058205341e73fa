// SPDX-License-Identifier: MIT
// Where commands were issued: source lines of the user's code, numbered once in a journal, so that
// a command needs four bytes for its line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>

#include "durable/run_record.hpp"

namespace weir::detail {

/// The source lines of a journal, by number. A line that is used again costs one lookup and no
/// allocation.
class site_table {
 public:
  /// A journal has no more lines than this: what is issued at others has none.
  static constexpr std::uint32_t sites_max = 65'536;

  struct numbered {
    std::uint32_t number = 0;  // 0: unknown, or there are too many
    bool is_new = false;       // the journal does not have it yet
  };
  numbered number_of(std::source_location at);
  /// What the journal says of a number.
  void see(const site_record& r);
  void clear();
  /// "orders.cpp:41"; empty if the number is unknown.
  std::string_view text(std::uint32_t number) const noexcept;
  /// What the journal says of the number; its number is 0 if that is nothing.
  site_record record_of(std::uint32_t number) const noexcept;

 private:
  struct place {
    const char* file;
    std::uint32_t line;
    bool operator==(const place&) const = default;
  };
  struct hash_of_place {
    std::size_t operator()(const place& p) const noexcept {
      return std::hash<const char*>()(p.file) * 31 + p.line;
    }
  };

  std::unordered_map<place, std::uint32_t, hash_of_place> known_;  // of this process
  std::unordered_map<std::string, std::uint32_t> numbers_;         // by text
  struct entry {
    std::string text;  // begins with the name of the file
    std::uint32_t line;
  };
  std::map<std::uint32_t, entry> entries_;  // by number
};

/// The place in a record: the file has no directories.
site_record site_of(std::uint32_t number, std::source_location at) noexcept;

}  // namespace weir::detail
