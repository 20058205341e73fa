// SPDX-License-Identifier: MIT
// Opening a journal: what of the log is read, what is cut, and what is refused.
//
// The log is the longest prefix of frames that are intact, in order, and whose epochs do not fall.
// Whether the end of it is where a crash tore it or where somebody damaged it is a question of
// evidence: an LSN was durable if
//   - the manifest says so: an open, the begin of a segment and a clean close write it,
//   - a later segment was begun: that is done only after everything before it was synced,
//   - an intact frame anywhere in its segment says so: each carries what was durable when it was
//     made, and no frame ever says so of what a crash can still take away.
// If the first LSN that is missing was durable, the journal is corrupt; else the tail is torn.
// A segment has its whole size, on the disk, before it has its name, so a shorter file is corrupt.
// The one exception is the last segment that was begun, if the journal was not closed: what is left
// of it is judged by the evidence above, as everything that a crash leaves. A file that is missing
// although the manifest says that it was begun is corrupt as well.
//
// Invariants: nothing is written before the whole log was read and found to be in order. What was
// read but is not proven to be durable is written again and synced, because after a failed sync the
// page cache shows what the disk never got.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/disk.hpp>

#include "durable/file_window.hpp"
#include "durable/frame.hpp"
#include "durable/journal_files.hpp"
#include "durable/manifest.hpp"

namespace weir::detail {

/// Where an opened journal goes on.
struct recovered {
  std::uint64_t epoch = 0;
  journal_secret secret{};
  std::uint64_t next_lsn = 1;
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t capacity = 0;
  bool next_ready = false;  // the segment after it is there, made of zeros
  manifest known;           // the manifest that was written
};

class recovery {
 public:
  /// `secret` is that of the journal if there is none yet.
  recovery(const journal_files& files, std::uint64_t segment_bytes, const journal_secret& secret);

  recovered run(record_reader& reader);

 private:
  struct segment {
    std::uint64_t number;
    std::string path;
    std::optional<segment_header> header;  // nullopt: not begun, or damaged
    bool blank = false;                    // the header is all zeros
    std::uint64_t size = 0;                // of the file
  };
  /// What lies behind the end of the log in a segment.
  struct remains {
    bool proves_loss = false;    // of the first LSN that is missing
    std::uint64_t used_end = 0;  // from here on all is zero
  };

  void find_segments();
  segment look_at(std::uint64_t number);
  void check_version(const std::string& path, std::uint32_t version) const;
  void check_segments() const;
  void check_size(const segment& s, bool last_begun) const;
  void check_header(const segment& s) const;
  void adopt();

  void read_segments(record_reader& reader);
  void read_segment(const segment& s, record_reader& reader);
  /// The frame at an offset if it goes on the log; an empty one if the log ends here.
  std::span<const std::byte> next_frame(const segment& s, std::uint64_t offset, frame_head& head);
  void see_records(const segment& s, std::uint64_t offset, std::span<const std::byte> frame,
                   const frame_head& head, record_reader& reader);
  void note_proof(std::uint64_t offset, const frame_head& head) noexcept;

  void check_end();
  remains examine(const segment& s, std::uint64_t from);
  bool proves_loss(const segment& s, std::uint64_t offset);

  void create();
  void repair();
  void rewrite(disk_file& file, std::uint64_t from, std::uint64_t to);
  void keep_or_remove_next();
  void remove_unfinished(const std::string& directory);
  manifest write_new_manifest();

  const journal_files& files_;
  std::uint64_t segment_bytes_;
  journal_secret secret_;
  std::uint32_t seed_ = 0;

  std::optional<manifest> manifest_;
  bool rebuilt_ = false;           // there should be one and is none
  std::vector<segment> segments_;  // in order
  std::size_t begun_ = 0;          // so many of them are

  file_window window_;
  std::string blob_;
  std::uint64_t epoch_ = 0;     // of the last frame or header that was read
  std::uint64_t next_lsn_ = 1;  // the first that is missing
  std::uint64_t proven_ = 0;    // the last LSN that was durable for sure
  std::uint64_t end_ = 0;       // of the log in its last segment
  std::uint64_t unproven_ = 0;  // from here to the end it may not be on the disk
  std::uint64_t used_end_ = 0;  // of the last segment
  bool next_blank_ = false;     // all of the segment after it, which has the right size
  bool next_ready_ = false;
};

}  // namespace weir::detail
