// SPDX-License-Identifier: MIT
#include "durable/log_writer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "durable/journal_error.hpp"
#include "durable/snapshot.hpp"

namespace weir::detail {

namespace {

/// A commit writes at least this much of the next segment, which takes about a millisecond, and at
/// least four times what it wrote itself: the next segment must be ready before the rest of the
/// current one is used, which may be a little less than half of it.
constexpr std::uint64_t prepared_at_once = std::uint64_t{1} << 20;
constexpr std::uint64_t prepared_per_byte = 4;

}  // namespace

log_writer::log_writer(const journal_files& files, start at) : files_(files), at_(std::move(at)) {}

void log_writer::write(log_batch& batch) {
  finish_blobs(files_, batch.drafts);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < batch.extents.size(); ++i) {
    const log_batch::extent& e = batch.extents[i];
    if (e.segment < at_.segment) continue;  // written by an earlier attempt
    if (e.segment != at_.segment) {
      if (i > 0) files_.sync_file(*at_.file);
      next_segment();
    }
    const auto bytes = batch.bytes_of(i);
    write_all(*at_.file, bytes, e.offset);
    end = e.offset + bytes.size();
  }
  if (end > 0) files_.sync_file(*at_.file);
  if (end > 0 && at_.segment > last_known()) note_segment(batch.last_lsn);
  if ((end >= at_.capacity / 2 || batch.look_for_room) && !at_.next_ready)
    batch.short_of_space =
        !prepare(std::max(prepared_at_once, prepared_per_byte * batch.bytes.size()));
}

std::uint64_t log_writer::last_known() const noexcept {
  return at_.known.first_segment + at_.known.begun - 1;
}

void log_writer::note(std::uint64_t durable_lsn, bool closed) {
  manifest next = at_.known;
  next.durable_lsn = std::max(next.durable_lsn, durable_lsn);
  next.begun = static_cast<std::uint32_t>(at_.segment - next.first_segment + 1);
  next.closed = closed;
  write_manifest(files_, next);
  at_.known = next;
}

void log_writer::note_close(std::uint64_t durable_lsn) { note(durable_lsn, true); }

// The manifest only proves what is already on the disk, so if there is no space for it, it can wait
// for the next commit.
void log_writer::note_segment(std::uint64_t durable_lsn) {
  try {
    note(durable_lsn, false);
  } catch (const std::exception& e) {
    if (!is_no_space(e)) throw;
  }
}

void log_writer::replace_before(std::uint64_t segment, std::uint64_t first_lsn,
                                std::uint64_t durable_lsn) {
  manifest next = at_.known;
  next.version = snapshot_version;
  next.first_segment = segment;
  next.first_lsn = first_lsn;
  next.durable_lsn = std::max(next.durable_lsn, durable_lsn);
  next.begun = static_cast<std::uint32_t>(at_.segment - segment + 1);
  next.closed = false;
  try {
    write_manifest(files_, next);
  } catch (const std::exception& e) {
    if (is_no_space(e)) throw;
    throw switch_failed(what_of(e));
  }
  at_.known = next;
}

bool log_writer::recycle(const std::string& path) {
  if (at_.next_ready || next_ != nullptr || !spare_.empty()) return false;
  if (!segment_number(std::string_view(path).substr(path.find_last_of('/') + 1))) return false;
  try {
    if (files_.disk->open(path, open_mode::read)->size() != at_.segment_bytes) return false;
  } catch (const std::exception&) {
    return false;
  }
  spare_ = path;
  return true;
}

void log_writer::begin_to_make() {
  next_ = std::make_unique<segment_maker>(files_, at_.segment + 1, at_.segment_bytes,
                                          std::exchange(spare_, {}));
}

void log_writer::next_segment() {
  if (next_ == nullptr && !at_.next_ready) begin_to_make();
  try {
    if (!at_.next_ready) next_->step(at_.segment_bytes);
  } catch (const std::exception& e) {
    next_.reset();
    if (is_no_space(e)) throw no_room(what_of(e));
    throw;
  }
  next_.reset();
  at_.next_ready = false;
  ++at_.segment;
  at_.capacity = at_.segment_bytes;
  at_.file = files_.disk->open(files_.path(segment_name(at_.segment)), open_mode::read_write);
}

bool log_writer::prepare(std::uint64_t at_most) {
  if (next_ == nullptr) begin_to_make();
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
