// SPDX-License-Identifier: MIT
// The journal: an append-only log of records in segments, the only source of truth of an engine.
// docs/journal-format.md specifies every byte of its files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <weir/error.hpp>
#include <weir/sim/disk.hpp>

#include "durable/record.hpp"

namespace weir::detail {

class key_ring;
struct log_batch;
struct compaction_plan;

struct journal_options {
  std::string path;
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  /// A batch with more bytes than this becomes several frames; at most 256 KiB.
  std::uint64_t frame_bytes = std::uint64_t{256} << 10;
  bool sync = true;
  weir::disk* disk = nullptr;  // null: the real disk
  /// The secret of a new journal; nullopt: from the system's generator.
  std::optional<std::array<unsigned char, 16>> secret = std::nullopt;
  /// Null: payloads are not encrypted, and an encrypted journal is refused.
  std::shared_ptr<const key_ring> keys = nullptr;
  /// The salt of the keys of this open, which no other open has; nullopt: from the system's
  /// generator.
  std::optional<std::array<unsigned char, 16>> salt = std::nullopt;
};

/// A payload could not be written. Nothing refers to it, nothing was appended, and the journal
/// remains usable.
class payload_error : public error {
 public:
  using error::error;
};

/// A part of the journal on its way to the disk: made by `take`, written by `commit`, returned to
/// `committed`.
class journal_batch {
 public:
  std::size_t records() const noexcept;

 private:
  friend class journal;
  explicit journal_batch(std::shared_ptr<log_batch> content) : content_(std::move(content)) {}

  std::shared_ptr<log_batch> content_;  // shared with the journal, which may still read it
};

/// Requires: all calls on one thread (the engine's loop), except `commit`, which may be called on
/// another thread, one batch at a time, in the order of `take`.
/// Ensures: a record with an LSN up to `durable_lsn()` survives every crash from then on, unless
/// `sync` is off; records survive in order, so the durable records are a prefix of those appended.
/// Errors: weir::error with errc::journal_locked, journal_corrupt (names file and offset),
/// journal_failed (the disk; includes the text of the system), journal_full (no space), wrong_key,
/// invalid_argument. An error of `commit` or `append` is permanent if `failed()` is true after it.
/// Threads: the writer's thread shares with the loop only the batch it was given, constants, and
/// whether the journal has failed.
class journal {
 public:
  explicit journal(journal_options options);
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;
  /// Closes the files and releases the lock. Uncommitted records are lost, as in a crash.
  ~journal();
  /// The last call before the destructor in a clean shutdown: records what is durable and which
  /// segment is the last, so that a cut or missing file is detected. Optional.
  /// REQUIRES: no `commit` is under way.
  void close();

  /// Locks the directory (creates it if there is none), reads the log, cuts a torn tail and makes
  /// all that was read durable. A journal that refuses to open leaves its files unchanged.
  void open(record_reader& reader);

  /// Reads the records in the segments from `first` to `last` again, as far as they are on the
  /// disk.
  void look_at_segments(std::uint64_t first, std::uint64_t last, record_reader& reader);

  /// 16 secret bytes, made with the journal; they survive the loss of the manifest.
  const std::array<unsigned char, 16>& secret() const noexcept;

  struct appended {
    std::uint64_t lsn;
    record_place place;
  };
  /// Appends a record; it is in memory until its batch is committed. The content of a large payload
  /// is written at once and not synced: an error in that is a payload_error. With a key, the secret
  /// parts of the payload are sealed. A journal that has got a key, or another one, begins a new
  /// segment with the first record.
  appended append(const record_head& head, const payload_view& payload);

  /// The LSN of the last record appended; 0 if there is none.
  std::uint64_t last_lsn() const noexcept;
  std::uint64_t durable_lsn() const noexcept;

  /// The records appended since the last call; null if there are none, or if a batch is out.
  std::unique_ptr<journal_batch> take();
  /// As `take`, but never null for lack of records: committing the batch checks for room.
  std::unique_ptr<journal_batch> take_to_look_for_room();
  /// Blocks: writes the batch (blobs first) and syncs. If there is no space for the next segment,
  /// errc::journal_full: the batch stays out and may be committed again. After any other disk error
  /// the journal has failed and never retries.
  void commit(journal_batch& batch);
  bool failed() const noexcept;
  /// The batch is on the disk (`commit` returned).
  void committed(std::unique_ptr<journal_batch> batch) noexcept;

  /// What a compaction may replace: the snapshot, and the segments after which another one was
  /// begun.
  struct replaceable {
    std::uint64_t segments = 0;      // without the snapshot
    std::uint64_t last_segment = 0;  // of them
    std::uint64_t bytes = 0;         // of all of these files
  };
  replaceable may_be_replaced() const noexcept;
  /// The next record begins a segment, so that all before it may be replaced.
  void end_segment();
  /// Begins to replace old segments by a snapshot (see durable/compaction.hpp), which is done in
  /// slices: each batch of `take_to_compact` is one. Places and LSNs stay valid.
  /// REQUIRES: not `compacting()`.
  void begin_compaction(compaction_plan plan);
  /// Sets `compaction_plan::needs`. REQUIRES: no slice is under way.
  void compaction_may_end_after(std::uint64_t lsn) noexcept;
  /// Ends a compaction early, unless the manifest names its snapshot already. REQUIRES: no slice is
  /// under way.
  void abandon_compaction(std::exception_ptr why) noexcept;
  bool compacting() const noexcept;
  /// An empty batch with a slice of the compaction. REQUIRES: no batch is out, and `compacting()`.
  std::unique_ptr<journal_batch> take_to_compact();
  /// Why the last compaction ended early; null: it did not.
  std::exception_ptr compaction_error() const noexcept;

  /// The record at a place that `append` or `open` gave, even if it is not on the disk yet. Blocks.
  /// The payload is stored in `payload`.
  record_head read(record_place place, std::string& payload);

  /// The next segment could not be prepared for lack of space. What is left suffices to finish some
  /// runs, so no new ones should begin.
  bool short_of_space() const noexcept;

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace weir::detail
