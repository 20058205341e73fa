// SPDX-License-Identifier: MIT
// Records in memory on their way to the disk, laid out as they will be in the segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "durable/blob.hpp"
#include "durable/log_frame.hpp"
#include "durable/record.hpp"

namespace weir::detail {

class log_compaction;

/// Invariants: `bytes` is what will be written, in the order of the log. Each extent is a
/// contiguous part of it that goes to one segment and ends where the next extent begins; all but
/// the first begin their segment, with its header. Frames are inside extents; their headers are
/// empty until `seal`.
struct log_batch {
  struct extent {
    std::uint64_t segment;
    std::uint64_t offset;
    std::size_t begin;  // in `bytes`
  };
  struct frame {
    std::size_t begin;  // in `bytes`
    frame_head head;
  };
  std::vector<std::byte> bytes;
  std::vector<extent> extents;
  std::vector<frame> frames;
  std::unordered_map<blob_name, std::string, blob_name_hash> blobs;  // with their contents
  std::vector<blob_draft> drafts;                                    // of them
  std::uint64_t last_lsn = 0;
  std::uint64_t durable_lsn = 0;               // when the batch was taken
  bool look_for_room = false;                  // prepare the next segment unless it is ready
  bool short_of_space = false;                 // set by the writer
  std::shared_ptr<log_compaction> compaction;  // has a slice done after the batch; null: none
  std::exception_ptr compaction_error;         // set by the writer: it has ended
  std::vector<blob_name> orphans;              // to be removed after the batch

  bool empty() const noexcept { return frames.empty(); }
  /// Keeps the memory, unless it is large.
  void clear() noexcept;
  std::span<const std::byte> bytes_of(std::size_t extent) const noexcept;
  /// From a place to the end of its extent; nullopt if the place is not in this batch.
  std::optional<std::span<const std::byte>> find(record_place place) const noexcept;
  const std::string* find(const blob_name& name) const noexcept;
  /// Writes the headers of all frames.
  void seal(std::uint64_t epoch, std::uint32_t seed) noexcept;
};

/// Lays out the end of the log: puts records into frames and frames into segments.
class log_layout {
 public:
  struct start {
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;    // a multiple of frame_alignment
    std::uint64_t capacity = 0;  // of this segment; later ones have segment_bytes
    std::uint64_t next_lsn = 1;
    std::uint64_t segment_bytes = 0;
    std::uint64_t frame_bytes = frame_bytes_max;  // no record is added to a frame beyond this
    std::uint64_t epoch = 0;
    std::uint32_t key_id = 0;  // of the segments that it begins
    journal_secret secret{};
  };

  explicit log_layout(const start& at);

  /// Requires: a record of this size fits into a new segment.
  record_place append(log_batch& batch, const record_head& head, std::string_view payload);
  /// Ends the open frame, because the batch is about to be taken.
  void close_frame(log_batch& batch);
  /// The next record begins a segment.
  void end_segment(log_batch& batch);
  std::uint64_t next_lsn() const noexcept { return at_.next_lsn; }
  std::uint32_t seed() const noexcept { return seed_; }

 private:
  bool fits(std::size_t record) const noexcept;
  void open_frame(log_batch& batch, std::size_t record);
  void begin_segment(log_batch& batch);

  start at_;  // `offset` is the end of the last closed frame
  std::uint32_t seed_;
  std::size_t frame_bytes_ = 0;  // of the open frame so far; 0: none is open
};

}  // namespace weir::detail
