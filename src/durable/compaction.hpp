// SPDX-License-Identifier: MIT
// Compaction of a log: replaces its oldest segments, and its snapshot, by a new snapshot with the
// records that are still needed.
//
// In this order: (1) the snapshot is written under its unfinished name and synced; (2) it gets its
// name, and the directory is synced; (3) the manifest names it, and the first segment after it; (4)
// the loop reads from it; (5) what it replaces is removed, or made the next segment. So at every
// moment the manifest, the old one or the new one, names files that are complete: a crash loses the
// work, not the journal, and the next open removes what no manifest names.
//
// Errors before (3) end the compaction, and the journal goes on without it. An error in (3) other
// than a lack of space fails the journal: which manifest is on the disk is unknown. What cannot be
// removed in (5) is removed by the next open.
//
// With a key, everything in the snapshot is sealed with the present one: what lies in files of
// another key, or of none, is opened and sealed again. A blob is sealed again as another blob,
// which is durable before (2); the old one is removed after (4), like those of records that are
// left out.
//
// The segments to be replaced are read completely: if a record of them is missing or damaged, the
// compaction ends with that error and nothing is removed.
//
// Threads: one at a time: the writer's in `step`, the loop's in all other calls, while no step is
// under way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/sim/disk.hpp>

#include "durable/blob.hpp"
#include "durable/file_window.hpp"
#include "durable/journal_files.hpp"
#include "durable/log_writer.hpp"
#include "durable/payload_keys.hpp"
#include "durable/run_set.hpp"
#include "durable/snapshot.hpp"

namespace weir::detail {

/// What a compaction does.
struct compaction_plan {
  struct sent_runs {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  struct closing_record {
    record_head head;
    std::string payload;
  };
  std::uint64_t last_segment = 0;  // the last one to be replaced; a later one was begun
  run_set keep;                    // the runs whose records are needed
  /// The runs that a record of this type starts besides its own: such a record is needed if one of
  /// them is. Those of them that are not needed are listed in `closing`.
  std::uint16_t sending_type = 0;  // 0: none
  sent_runs (*sent)(std::string_view payload) = nullptr;
  /// Records of this type that are no run's are needed, too.
  std::uint16_t lasting_type = 0;  // 0: none
  /// Makes the record at the end of the snapshot, which is no run's and replaces all such records,
  /// from the runs that are not needed though a record that starts them is.
  std::function<closing_record(std::span<const std::uint64_t> forgotten)> closing;
  /// The snapshot does not get its name before this LSN is durable: `closing` depends on it. See
  /// `log_compaction::may_end_after` if it is not known at the beginning.
  std::uint64_t needs = 0;
  /// Appends the secret parts of a payload that is not sealed; null: it has none.
  void (*secrets)(const record_head& head, std::string_view payload,
                  std::vector<secret_part>& parts) = nullptr;
};

/// With what a compaction seals.
struct compaction_keys {
  std::shared_ptr<const key_ring> ring;  // null: nothing is sealed
  std::optional<seal_salt> salt;         // of no other cipher; nullopt: from the system's generator
};

class log_compaction {
 public:
  /// `epoch`: of this open.
  log_compaction(const journal_files& files, compaction_plan plan, std::uint64_t epoch,
                 compaction_keys keys = {});
  log_compaction(const log_compaction&) = delete;
  log_compaction& operator=(const log_compaction&) = delete;
  ~log_compaction();

  /// A slice of the work: reads and writes a bounded number of bytes, or removes a few files.
  void step(log_writer& writer, std::uint64_t durable_lsn);
  /// Sets `compaction_plan::needs`.
  void may_end_after(std::uint64_t lsn) noexcept { plan_.needs = lsn; }

  /// The manifest names the snapshot.
  bool switched() const noexcept { return stage_ >= stage::switched; }
  /// Only removing is left, which waits for this call: the loop uses the snapshot now.
  void adopted() noexcept { stage_ = stage::removing; }
  bool done() const noexcept { return stage_ == stage::done; }
  std::shared_ptr<const snapshot_index> snapshot() const noexcept { return snapshot_; }
  /// The blobs of the records that were left out, one for each of them.
  std::vector<blob_name>& dropped_blobs() noexcept { return dropped_; }
  /// The blobs that were written, one for each record that has one.
  std::vector<blob_name>& added_blobs() noexcept { return added_; }
  std::uint64_t bytes_read() const noexcept { return read_; }

 private:
  enum class stage : std::uint8_t { begin, copying, closing, named, switched, removing, done };
  void begin(const log_writer& writer);
  /// Copies one frame of the input; false if there is none left.
  bool copy_frame();
  bool copy_segment_frame();
  void begin_segment(std::uint64_t number);
  void take(std::span<const std::byte> record, const record_head& head, std::string_view payload,
            std::uint64_t lsn, record_place place);
  bool is_needed(const record_head& head, std::string_view payload);
  /// Adds a record, sealed with the present key; false if it is to be copied as it is.
  bool add_sealed(record_head head, std::string_view payload, std::uint64_t lsn,
                  record_place place);
  /// Writes `sealed_` as a blob and returns its name.
  blob_name write_blob();
  blob_name name_of_blob(std::string_view payload) const;
  void add(const record_head& head, std::string_view payload, std::uint64_t lsn,
           record_place place);
  void write_closing();
  void remove_some(log_writer& writer);

  const journal_files& files_;
  compaction_plan plan_;
  std::uint64_t epoch_;
  stage stage_ = stage::begin;
  std::unique_ptr<snapshot_writer> out_;
  std::shared_ptr<const snapshot_index> snapshot_;
  std::uint32_t seed_ = 0;
  std::uint64_t next_lsn_after_ = 0;  // the first LSN that stays where it is

  std::unique_ptr<snapshot_reader> old_;  // null: none, or read
  std::vector<snapshot_record> records_;
  std::uint64_t first_segment_ = 0;  // of those to be replaced
  std::uint64_t segment_ = 0;        // being read
  segment_header header_{};
  std::unique_ptr<disk_file> file_;
  file_window window_;
  std::uint64_t offset_ = 0;
  std::uint64_t next_lsn_ = 0;
  std::uint64_t frame_epoch_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t unsynced_ = 0;
  compaction_keys keys_;
  std::optional<payload_cipher> cipher_;  // none: nothing is sealed
  std::uint32_t source_key_ = 0;          // of the file that is being read
  bool changes_keys_ = false;             // a replaced file has another key than the present one
  std::vector<blob_draft> drafts_;        // of blobs, made in this slice
  std::vector<blob_name> added_;
  std::string sealed_;                // the payload that was sealed last
  std::vector<secret_part> parts_;    // of it
  std::vector<std::byte> rewritten_;  // the record that was made last
  std::vector<blob_name> dropped_;
  std::vector<std::uint64_t> forgotten_;  // runs whose starts are in records that are needed
  std::string blob_;                      // the content of the one that was read last
  std::string blanked_;                   // the sealed payload that was read last
  std::vector<std::string> replaced_;     // files, the newest segment last
};

}  // namespace weir::detail
