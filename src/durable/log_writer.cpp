// SPDX-License-Identifier: MIT
#include "durable/log_writer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "durable/journal_error.hpp"

namespace weir::detail {

namespace {

/// How much of the next segment a commit writes at least; takes about a millisecond. Four times
/// what the commit wrote itself, because the segment must be ready before the rest of the present
/// one is used, which may be a little less than half of it.
constexpr std::uint64_t prepared_at_once = std::uint64_t{1} << 20;
constexpr std::uint64_t prepared_per_byte = 4;

}  // namespace

log_writer::log_writer(const journal_files& files, start at) : files_(files), at_(std::move(at)) {}

void log_writer::write(log_batch& batch) {
  write_blobs(batch);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < batch.extents.size(); ++i) {
    const log_batch::extent& e = batch.extents[i];
    if (e.segment != at_.segment) {
      if (i > 0) files_.sync_file(*at_.file);
      next_segment();
    }
    const auto bytes = batch.bytes_of(i);
    write_all(*at_.file, bytes, e.offset);
    end = e.offset + bytes.size();
  }
  files_.sync_file(*at_.file);
  if (end >= at_.capacity / 2 && !at_.next_ready)
    batch.short_of_space =
        !prepare(std::max(prepared_at_once, prepared_per_byte * batch.bytes.size()));
}

void log_writer::write_blobs(const log_batch& batch) {
  for (const log_batch::blob& b : batch.blobs) write_blob(files_, b.name, b.content);
}

void log_writer::next_segment() {
  if (next_ == nullptr && !at_.next_ready)
    next_ = std::make_unique<segment_maker>(files_, at_.segment + 1, at_.segment_bytes);
  if (!at_.next_ready) next_->step(at_.segment_bytes);
  next_.reset();
  at_.next_ready = false;
  ++at_.segment;
  at_.capacity = at_.segment_bytes;
  at_.file = files_.disk->open(files_.path(segment_name(at_.segment)), open_mode::read_write);
}

bool log_writer::prepare(std::uint64_t at_most) {
  if (next_ == nullptr)
    next_ = std::make_unique<segment_maker>(files_, at_.segment + 1, at_.segment_bytes);
  try {
    at_.next_ready = next_->step(at_most);
  } catch (const std::exception& e) {
    next_.reset();
    if (!is_no_space(e)) throw;
    return false;
  }
  if (at_.next_ready) next_.reset();
  return true;
}

}  // namespace weir::detail
