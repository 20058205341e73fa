// SPDX-License-Identifier: MIT
// Opening a journal: which part of the log is read, what is cut, and what is refused.
//
// The log is the longest prefix of frames that are intact, in order, and whose epochs do not
// decrease. Whether its end was torn by a crash or damaged later is decided by evidence: an LSN was
// durable if
//   - the manifest says so: it is written by an open, the begin of a segment and a clean close,
//   - a later segment was begun: that happens only after everything before it was synced,
//   - an intact frame anywhere in its segment says so: each frame carries the LSN that was durable
//     when it was made, and never that of a record that a crash can still destroy.
// If the first missing LSN was durable, the journal is corrupt; otherwise the tail is torn. A
// segment has its whole size on the disk before it gets its name, so a shorter file is corrupt. The
// one exception is the last segment that was begun, if the journal was not closed: its remains are
// judged by the evidence above. A missing file that the manifest lists as begun is corrupt as well.
//
// A snapshot stands for the segments up to its number. It is read first, completely; the manifest
// names it by its first segment, the one after it. Without a manifest the newest snapshot counts,
// because a snapshot has its name only when it is complete. Older files are left over from a
// compaction that a crash has cut short, and are removed.
//
// Invariants: nothing is written before the whole log was read and found to be in order. Records
// that were read but are not proven durable are written again and synced, because after a failed
// sync the page cache shows data that the disk never got.
//
// A reader without the lock uses the same scan and writes nothing. The owner may append meanwhile,
// so evidence found after the end of the log may be newer than that end. What a frame calls durable
// was written before that frame: the reader reads again from the end, and the journal is corrupt if
// the records up to the evidence are still not there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/sim/disk.hpp>

#include "durable/blob.hpp"
#include "durable/file_window.hpp"
#include "durable/journal_files.hpp"
#include "durable/log_frame.hpp"
#include "durable/manifest.hpp"
#include "durable/payload_keys.hpp"
#include "durable/snapshot.hpp"

namespace weir::detail {

/// How many records refer to a blob.
using blob_counts = std::unordered_map<blob_name, std::uint64_t, blob_name_hash>;

/// Where an opened journal continues.
struct recovered {
  std::uint64_t epoch = 0;
  journal_secret secret{};
  std::uint64_t next_lsn = 1;
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t capacity = 0;
  std::uint32_t key_id = 0;                        // of that segment
  bool next_ready = false;                         // the next segment exists, made of zeros
  manifest known;                                  // the manifest that was written
  std::shared_ptr<const snapshot_index> snapshot;  // null: none
  blob_counts blobs;
};

/// A log as a reader without the lock has found it.
struct log_view {
  std::uint64_t epoch = 0;      // of the last frame, or of the segment that has none
  std::uint64_t first_lsn = 1;  // of the first segment
  std::uint64_t next_lsn = 1;
  std::uint64_t first_segment = 0;
  std::uint64_t segments = 0;  // that were begun
  std::uint64_t bytes = 0;     // of the files of these segments, and of the snapshot
  std::uint64_t snapshot = 0;  // its bytes; 0: there is none
  std::uint64_t offset = 0;    // of the end of the log in the last of them
  std::uint64_t torn = 0;      // bytes after the end that are not zero, up to the last one
  bool has_manifest = false;
  bool closed = false;  // a clean close wrote the manifest, and nothing was appended since
  std::uint32_t key_id = 0;
  journal_secret secret{};
};

class recovery {
 public:
  /// `secret` is used if there is no journal yet. `keys`: null if there are none.
  recovery(const journal_files& files, std::uint64_t segment_bytes, const journal_secret& secret,
           std::shared_ptr<const key_ring> keys = nullptr);

  recovered run(record_reader& reader);
  /// Reads the segments from `first` to `last` of a journal that is open: what is on the disk. If
  /// the first one was replaced by a snapshot, reads that, too. Segments that a compaction removes
  /// meanwhile are not needed: the loop, which calls this, has adopted its snapshot before.
  void look_at_segments(std::uint64_t first, std::uint64_t last, record_reader& reader);

  /// Reads the log without writing, also while its owner appends; afterwards `follow` reads what
  /// was appended since, and returns whether there was anything. Without keys the secret parts of
  /// sealed payloads are seen as `*`. A directory without a journal is
  /// errc::invalid_argument. Files that are removed meanwhile lead to an error: see journal_reader.
  void look(record_reader& reader);
  bool follow(record_reader& reader) { return catch_up(reader); }
  log_view view() const;
  /// The secret of the journal that was read.
  const journal_secret& secret() const noexcept { return secret_; }

 private:
  struct segment {
    std::uint64_t number;
    std::string path;
    std::optional<segment_header> header;  // nullopt: not begun, or damaged
    bool blank = false;                    // the header is all zeros
    std::uint64_t size = 0;                // of the file
  };
  /// What a segment holds beyond the end of the log.
  struct remains {
    std::uint64_t durable = 0;   // the highest LSN that an intact frame calls durable
    std::uint64_t used_end = 0;  // everything from here on is zero
  };

  void find_files();
  void find_snapshot(const std::vector<std::string>& names);
  segment look_at(std::uint64_t number);
  void check_version(const std::string& path, std::uint32_t version) const;
  void check_segments() const;
  void check_size(const segment& s, bool last_begun) const;
  void check_header(const segment& s) const;
  void check_key(const std::string& file, std::uint32_t id) const;
  void adopt();

  void scan(record_reader& reader);
  void read_snapshot(record_reader& reader);
  void read_segments(record_reader& reader);
  void begin_segment(std::size_t i);
  void read_frames(const segment& s, record_reader& reader);
  /// The frame at an offset if it continues the log; empty if the log ends here.
  std::span<const std::byte> next_frame(const segment& s, std::uint64_t offset, frame_head& head);
  void see_records(const segment& s, std::uint64_t offset, std::span<const std::byte> frame,
                   const frame_head& head, record_reader& reader);
  /// A record as it is stored; its file is `path`.
  void see_record(const std::string& path, std::uint64_t at, record_view record, std::uint64_t lsn,
                  record_place place, record_reader& reader);
  void note_proof(std::uint64_t offset, const frame_head& head) noexcept;

  void check_end(record_reader& reader);
  remains examine(const segment& s, std::uint64_t from);
  std::uint64_t durable_by(const segment& s, std::uint64_t offset);
  /// Without the lock: whether the record is there now.
  bool caught_up_with(std::uint64_t lsn, record_reader& reader);
  bool catch_up(record_reader& reader);
  bool frame_begins(const segment& s, std::uint64_t offset) const;

  void create();
  void repair();
  void rewrite(disk_file& file, std::uint64_t from, std::uint64_t to);
  void keep_or_remove_next();
  void remove_unfinished(const std::string& directory);
  void remove_orphans();
  manifest write_new_manifest();

  const journal_files& files_;
  std::uint64_t segment_bytes_;
  journal_secret secret_;
  std::shared_ptr<const key_ring> keys_;
  std::uint32_t seed_ = 0;

  std::optional<manifest> manifest_;
  bool rebuilt_ = false;           // the manifest should exist and does not
  bool owned_ = true;              // by this process: no other one appends
  std::vector<segment> segments_;  // in order
  std::size_t begun_ = 0;          // how many of them are begun
  std::uint64_t first_segment_ = 1;
  std::unique_ptr<snapshot_reader> snapshot_;  // null: none
  std::vector<std::string> replaced_;          // files that the snapshot, or nothing, is instead of
  blob_counts blobs_;

  file_window window_;
  std::optional<payload_cipher> cipher_;
  std::string blob_;
  std::string opened_;
  std::uint64_t epoch_ = 0;     // of the last frame or header that was read
  std::uint64_t next_lsn_ = 1;  // the first missing LSN
  std::uint64_t proven_ = 0;    // the last LSN that is proven durable
  std::uint64_t end_ = 0;       // of the log in its last segment
  std::uint64_t unproven_ = 0;  // from here to the end the log may not be durable
  std::uint64_t used_end_ = 0;  // of the last segment
  bool next_blank_ = false;     // the segment after it is blank and has the right size
  bool next_ready_ = false;
};

}  // namespace weir::detail
