// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reading.hpp"

namespace weir_tool {

struct kept_record {
  weir::detail::record_head head;
  std::string payload;
  std::uint64_t lsn;
};

/// The records of the run that is asked for, by its id or as # and its number. An id may be used
/// again: the latest run of it counts.
class history {
 public:
  explicit history(std::string name) : name_(std::move(name)) {}

  /// Reads the whole journal; returns the damage that ended the read.
  std::optional<weir::error> read(weir::detail::journal_reader& from, run_index& index,
                                  console& to);

  /// 0 if the journal has no such run.
  std::uint64_t number() const noexcept { return number_; }
  const std::vector<kept_record>& records() const noexcept { return records_; }
  /// The run that a command called; empty if there is none.
  std::string child(std::uint64_t command) const;

 private:
  void clear();
  void see(const seen_record& r);

  std::string name_;
  std::uint64_t number_ = 0;
  std::vector<kept_record> records_;
  std::unordered_map<std::uint64_t, std::string> children_;
};

}  // namespace weir_tool
