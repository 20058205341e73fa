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
// The segments to be replaced are read completely: if a record of them is missing or damaged, the
// compaction ends with that error and nothing is removed.
//
// Threads: one at a time: the writer's in `step`, the loop's in all other calls, while no step is
// under way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/sim/disk.hpp>

#include "durable/blob.hpp"
#include "durable/file_window.hpp"
#include "durable/journal_files.hpp"
#include "durable/log_writer.hpp"
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
  /// The snapshot does not get its name before this LSN is durable: `closing` depends on it.
  std::uint64_t needs = 0;
};

class log_compaction {
 public:
  /// `epoch`: of this open.
  log_compaction(const journal_files& files, compaction_plan plan, std::uint64_t epoch);
  log_compaction(const log_compaction&) = delete;
  log_compaction& operator=(const log_compaction&) = delete;
  ~log_compaction();

  /// A slice of the work: reads and writes a bounded number of bytes, or removes a few files.
  void step(log_writer& writer, std::uint64_t durable_lsn);

  /// The manifest names the snapshot.
  bool switched() const noexcept { return stage_ >= stage::switched; }
  /// Only removing is left, which waits for this call: the loop uses the snapshot now.
  void adopted() noexcept { stage_ = stage::removing; }
  bool done() const noexcept { return stage_ == stage::done; }
  std::shared_ptr<const snapshot_index> snapshot() const noexcept { return snapshot_; }
  /// The blobs of the records that were left out, one for each of them.
  std::vector<blob_name>& dropped_blobs() noexcept { return dropped_; }
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
  std::vector<blob_name> dropped_;
  std::vector<std::uint64_t> forgotten_;  // runs whose starts are in records that are needed
  std::string blob_;                      // the content of the one that was read last
  std::string blanked_;                   // the sealed payload that was read last
  std::vector<std::string> replaced_;     // files, the newest segment last
};

}  // namespace weir::detail
