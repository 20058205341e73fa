// SPDX-License-Identifier: MIT
// Reads a whole journal into an index, with progress on standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include <weir/error.hpp>

#include "console.hpp"
#include "durable/journal_reader.hpp"
#include "run_index.hpp"

namespace weir_tool {

/// A record and the run that it belongs to, null if the journal did not start it.
struct seen_record {
  const weir::detail::record_head& head;
  std::string_view payload;
  std::uint64_t lsn;
  weir::detail::record_place place;
  run_entry* run;
};

class indexing_visitor final : public weir::detail::journal_visitor {
 public:
  indexing_visitor(console& to, run_index& index) : console_(to), index_(index) {}
  /// Called for each record, after the index has seen it.
  void on_record(std::function<void(const seen_record&)> call) { call_ = std::move(call); }
  /// Called when the journal is read again from its beginning.
  void on_restart(std::function<void()> call) { restarted_ = std::move(call); }

  void settle() { index_.settle(); }

  void restart() override;
  void see(const weir::detail::record_head& head, std::string_view payload, std::uint64_t lsn,
           weir::detail::record_place place) override;

 private:
  console& console_;
  run_index& index_;
  std::function<void(const seen_record&)> call_;
  std::function<void()> restarted_;
  std::uint64_t records_ = 0;
};

/// Returns the damage that ended the read; the visitor has then seen everything before it.
std::optional<weir::error> read_until_damage(weir::detail::journal_reader& from,
                                             indexing_visitor& into);
/// Reports the damage, if any; returns the exit code.
int finish(const std::optional<weir::error>& damage, console& to);

}  // namespace weir_tool
