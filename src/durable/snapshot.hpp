// SPDX-License-Identifier: MIT
// A snapshot: the records of the segments 1 to n that are still needed, in one file, in the order
// of the log. docs/journal-format.md specifies its bytes.
//
// Ensures: a record keeps its LSN and its place. Its place is where it was first written, in a
// segment that is gone; each frame of a snapshot begins with a directory of the LSNs and places of
// its records, and the first place of every frame is kept in memory. So nobody who remembers a
// place has to be told when records move.
//
// Invariants: a snapshot has its name only when it is complete and durable. It is never torn: a
// frame that is not intact, or a file that is too short, is damage. LSNs and places grow along the
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weir/sim/disk.hpp>

#include "durable/file_window.hpp"
#include "durable/journal_files.hpp"
#include "durable/log_frame.hpp"
#include "durable/record.hpp"

namespace weir::detail {

inline constexpr std::size_t snapshot_header_bytes = 80;
/// The format version of snapshots, and of manifests beside one.
inline constexpr std::uint32_t snapshot_version = 2;
/// The type of the directory record of a frame; the engine does not see it.
inline constexpr std::uint16_t directory_type = 18;

/// snap-%016x.wsnap; the number is that of the last segment it replaces.
std::string snapshot_name(std::uint64_t number);
/// nullopt if the name is not of that form.
std::optional<std::uint64_t> snapshot_number(std::string_view name);

struct snapshot_header {
  std::uint32_t version = snapshot_version;
  std::uint32_t key_id = 0;
  std::uint64_t number = 0;
  std::uint64_t epoch = 0;     // of the open that wrote it
  std::uint64_t next_lsn = 0;  // the first LSN of the segment after it
  journal_secret secret{};
  std::uint64_t bytes = 0;  // of the file
};

void encode(const snapshot_header& h, std::span<std::byte, snapshot_header_bytes> into) noexcept;
std::optional<snapshot_header> decode_snapshot_header(
    std::span<const std::byte, snapshot_header_bytes> bytes) noexcept;

/// Where the records of a snapshot are. Immutable once the snapshot has its name.
struct snapshot_index {
  struct frame {
    record_place first;
    std::uint64_t offset;
  };
  snapshot_header header;
  std::string path;
  std::vector<frame> frames;  // in order

  /// The last frame that begins at or before a place; null if there is none.
  const frame* find(record_place place) const noexcept;
};

/// A record of a snapshot with what its frame's directory says of it. The flags are those stored.
struct snapshot_record {
  record_head head;
  std::string_view payload;
  std::span<const std::byte> bytes;  // as they are stored
  std::uint64_t lsn = 0;
  record_place place = 0;
  std::uint64_t offset = 0;  // in the file
};

/// Writes a snapshot under its unfinished name, a frame at a time. Sync errors and others are the
/// caller's: it then drops the writer, which removes the file.
class snapshot_writer {
 public:
  snapshot_writer(const journal_files& files, snapshot_header header);
  snapshot_writer(const snapshot_writer&) = delete;
  snapshot_writer& operator=(const snapshot_writer&) = delete;
  ~snapshot_writer();

  /// `record`: the bytes of a whole record. Requires: neither LSN nor place are lower than before.
  void add(std::span<const std::byte> record, std::uint64_t lsn, record_place place);
  /// Syncs what was written, so that the last sync has little left to do.
  void sync();
  /// Completes the file, makes it durable and gives it its name.
  std::shared_ptr<const snapshot_index> finish();
  std::uint64_t written() const noexcept { return end_; }

 private:
  void flush();

  const journal_files& files_;
  std::shared_ptr<snapshot_index> index_;
  std::uint32_t seed_;
  std::unique_ptr<disk_file> file_;
  std::uint64_t end_ = snapshot_header_bytes;
  std::vector<std::pair<std::uint64_t, record_place>> directory_;  // of the open frame
  std::vector<std::byte> records_;                                 // of the open frame
  std::vector<std::byte> frame_;
  bool finished_ = false;
};

/// Reads a snapshot from its beginning, a frame at a time. Damage is errc::journal_corrupt.
class snapshot_reader {
 public:
  /// Opens the file and checks its header and its size.
  snapshot_reader(const journal_files& files, std::uint64_t number);

  const snapshot_header& header() const noexcept { return index_->header; }
  bool at_end() const noexcept { return end_ == index_->header.bytes; }
  std::uint64_t offset() const noexcept { return end_; }
  /// Appends the records of the next frame; they are valid until the next call.
  void next(std::vector<snapshot_record>& into);
  /// What was read so far.
  std::shared_ptr<const snapshot_index> index() const noexcept { return index_; }

 private:
  std::shared_ptr<snapshot_index> index_;
  std::unique_ptr<disk_file> file_;
  file_window window_;
  std::uint32_t seed_ = 0;
  std::uint64_t end_ = snapshot_header_bytes;
  std::uint64_t last_lsn_ = 0;
};

/// The records of one frame of a snapshot, with their directory. Damage is errc::journal_corrupt at
/// `offset` of `path`.
void read_directory(std::span<const std::byte> frame, const frame_head& head,
                    const std::string& path, std::uint64_t offset,
                    std::vector<snapshot_record>& into);

}  // namespace weir::detail
