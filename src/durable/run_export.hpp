// SPDX-License-Identifier: MIT
// A run as a file of its own: what `weir journal export` writes and `durable::replay` reads.
// docs/journal-format.md specifies every byte.
//
// Invariants: the file is complete in itself. Payloads are plain, whatever the journal does with
// them (blobs, encryption). The journal's secret is not in it: it holds the ids of the run's own
// awakeables instead, which its handler may have passed on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "durable/log_frame.hpp"
#include "durable/record.hpp"

namespace weir::detail {

struct exported_record {
  record_head head;
  std::string payload;
};

struct exported_run {
  std::vector<exported_record> records;  // in journal order; the first one starts the run
  std::map<std::uint64_t, std::string> awakeables;  // their ids, by command key
  std::vector<std::string> sites;                   // payloads of the records of its lines
};

/// `records` are those of one run, in journal order, from its start on; after that may stand the
/// sites that its commands refer to.
std::string write_export(std::span<const exported_record> records, const journal_secret& secret);

/// Throws errc::bad_data, naming `file` and the offset, unless these are the bytes of an export.
exported_run read_export(std::string_view bytes, std::string_view file);

}  // namespace weir::detail
