// SPDX-License-Identifier: MIT
// Writes batches to the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>

#include <weir/sim/disk.hpp>

#include "durable/journal_files.hpp"
#include "durable/log_batch.hpp"
#include "durable/manifest.hpp"

namespace weir::detail {

/// The manifest could not be written, and which one is on the disk is unknown.
struct switch_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Invariants: a segment is begun (its header is written) only after all of the previous one was
/// synced, so a header proves that everything before its first LSN was durable. A record is written
/// only after its blob is durable. A file that a batch goes to has a durable name. Before a batch
/// that begins a segment is acknowledged, the manifest says that the segment was begun; if there is
/// no space for the manifest, the batch is acknowledged without it, and every following batch tries
/// to write it again. `known` is what the manifest on the disk says.
/// Threads: one at a time; it shares nothing with the thread that makes the batches.
class log_writer {
 public:
  struct start {
    std::unique_ptr<disk_file> file;  // of the last segment
    std::uint64_t segment;
    std::uint64_t capacity;
    std::uint64_t segment_bytes;  // of new segments
    bool next_ready;              // the segment after the last is prepared
    manifest known;               // as it is on the disk
  };

  log_writer(const journal_files& files, start at);

  /// Writes and syncs a sealed batch, and prepares the next segment if it is time. Throws `no_room`
  /// if there is no space for the next segment or the name of a blob; then the whole batch may be
  /// written again. After any other error the end of the log is unknown.
  void write(log_batch& batch);
  /// Records what is durable, which segment is the last, and that nothing follows.
  void note_close(std::uint64_t durable_lsn);
  /// The manifest on the disk.
  const manifest& known() const noexcept { return at_.known; }
  /// Makes the manifest name the snapshot before a segment instead of the segments before it.
  /// Throws `switch_failed`, or that there is no space: then nothing has changed.
  void replace_before(std::uint64_t segment, std::uint64_t first_lsn, std::uint64_t durable_lsn);
  /// Keeps a file that is not needed any more, to make the next segment of it; false if that is
  /// not possible or one is there already. Its old content is overwritten with zeros before it has
  /// the name of a segment, like that of every new segment, so no old frame can be mistaken.
  bool recycle(const std::string& path);

 private:
  void note(std::uint64_t durable_lsn, bool closed);
  std::uint64_t last_known() const noexcept;
  void note_segment(std::uint64_t durable_lsn);
  void next_segment();
  /// Prepares a part of the next segment. Returns false if there is no space.
  bool prepare(std::uint64_t at_most);
  void begin_to_make();

  const journal_files& files_;
  start at_;
  std::unique_ptr<segment_maker> next_;  // being made
  std::string spare_;                    // an old segment, to be the next one; empty: none
};

}  // namespace weir::detail
