// SPDX-License-Identifier: MIT
// Brings batches to the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>

#include <weir/disk.hpp>

#include "durable/journal_files.hpp"
#include "durable/log_batch.hpp"
#include "durable/manifest.hpp"

namespace weir::detail {

/// There is no space for another segment.
struct no_room : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Invariants: a segment is begun (its header is written) only after all of the one before it was
/// synced, so a header proves that what precedes its first LSN was durable. A record is written
/// only after its blob lasts. A file that a batch goes to has its name on the disk. Before a batch
/// that begins a segment is acknowledged, the manifest says that the segment was begun; if there is
/// no space for the manifest, the batch is acknowledged without, and every batch that follows tries
/// to write it again. `known` is what the manifest on the disk says.
/// Threads: one at a time; it shares nothing with who makes the batches.
class log_writer {
 public:
  struct start {
    std::unique_ptr<disk_file> file;  // of the last segment
    std::uint64_t segment;
    std::uint64_t capacity;
    std::uint64_t segment_bytes;  // of those to come
    bool next_ready;              // the one after the last is prepared
    manifest known;               // as it is on the disk
  };

  log_writer(const journal_files& files, start at);

  /// Writes a batch that was sealed, syncs it, and prepares the next segment if it is time.
  /// `no_room`: there is no space for the next segment; the batch may be written again, all of it.
  /// After any other error nothing is known about the end of the log.
  void write(log_batch& batch);
  /// Writes down what is durable, which segment is the last, and that nothing follows.
  void note_close(std::uint64_t durable_lsn);

 private:
  void note(std::uint64_t durable_lsn, bool closed);
  std::uint64_t last_known() const noexcept;
  void note_segment(std::uint64_t durable_lsn);
  void next_segment();
  /// Does a part of it. False for want of space.
  bool prepare(std::uint64_t at_most);

  const journal_files& files_;
  start at_;
  std::unique_ptr<segment_maker> next_;  // being made
};

}  // namespace weir::detail
