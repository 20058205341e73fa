// SPDX-License-Identifier: MIT
// Reads a journal without its lock and without writing, also while an engine writes to it.
//
// Ensures: what is seen is a prefix of the log, in order; a write under way is the end of the log
// so far. If a compaction removes files during the read, the read starts again. Damage is reported
// when two consecutive reads find the same; so a change of files under the reader is not taken for
// damage. Records may be seen whose sync is still under way.
#pragma once

#include <memory>
#include <string>

#include <weir/sim/disk.hpp>

#include "durable/journal_files.hpp"
#include "durable/record.hpp"
#include "durable/recovery.hpp"

namespace weir::detail {

/// Receives the records of a journal that is being read.
class journal_visitor : public record_reader {
 public:
  /// Before the first record, and when the read starts again: everything seen is to be forgotten.
  virtual void restart() = 0;

 protected:
  ~journal_visitor() = default;
};

/// Errors: corrupt_error; errc::wrong_key if the keys are those of another journal;
/// errc::invalid_argument if there is no journal; errc::journal_failed if a
/// file cannot be read.
class journal_reader {
 public:
  /// Without `keys` an encrypted journal is read, too: with `*` in place of secret bytes.
  journal_reader(weir::disk& disk, std::string directory,
                 std::shared_ptr<const key_ring> keys = nullptr);

  /// The whole journal.
  void read(journal_visitor& visitor);
  /// After `read`: the records appended since; returns whether there were any.
  bool follow(record_reader& reader);

  /// Requires: `read` has returned.
  log_view view() const { return log_->view(); }
  const journal_secret& secret() const noexcept { return log_->secret(); }
  const journal_files& files() const noexcept { return files_; }

 private:
  journal_files files_;
  std::shared_ptr<const key_ring> keys_;
  std::unique_ptr<recovery> log_;
};

}  // namespace weir::detail
