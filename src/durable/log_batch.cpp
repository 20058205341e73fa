// SPDX-License-Identifier: MIT
#include "durable/log_batch.hpp"

#include <algorithm>

namespace weir::detail {

namespace {

/// A larger buffer is freed when the batch is cleared.
constexpr std::size_t kept_bytes_max = std::size_t{4} << 20;

}  // namespace

void log_batch::clear() noexcept {
  if (bytes.capacity() > kept_bytes_max) bytes = {};
  bytes.clear();
  extents.clear();
  frames.clear();
  blobs.clear();
  drafts.clear();
  last_lsn = 0;
  durable_lsn = 0;
  look_for_room = false;
  compaction = nullptr;
  compaction_error = nullptr;
  orphans.clear();
  short_of_space = false;
}

std::span<const std::byte> log_batch::bytes_of(std::size_t index) const noexcept {
  const std::size_t begin = extents[index].begin;
  const std::size_t end = index + 1 < extents.size() ? extents[index + 1].begin : bytes.size();
  return std::span(bytes).subspan(begin, end - begin);
}

std::optional<std::span<const std::byte>> log_batch::find(record_place place) const noexcept {
  const auto at =
      std::lower_bound(extents.begin(), extents.end(), segment_of(place),
                       [](const extent& e, std::uint64_t segment) { return e.segment < segment; });
  if (at == extents.end() || at->segment != segment_of(place)) return std::nullopt;
  const auto part = bytes_of(static_cast<std::size_t>(at - extents.begin()));
  const std::uint64_t offset = offset_of(place);
  if (offset < at->offset || offset >= at->offset + part.size()) return std::nullopt;
  return part.subspan(static_cast<std::size_t>(offset - at->offset));
}

const std::string* log_batch::find(const blob_name& name) const noexcept {
  const auto found = blobs.find(name);
  return found == blobs.end() ? nullptr : &found->second;
}

void log_batch::seal(std::uint64_t epoch, std::uint32_t seed) noexcept {
  for (frame& f : frames) {
    f.head.durable_lsn = durable_lsn;
    f.head.epoch = epoch;
    detail::seal(f.head, std::span(bytes).subspan(f.begin, f.head.bytes), seed);
  }
}

log_layout::log_layout(const start& at) : at_(at), seed_(checksum_seed(at.secret)) {}

record_place log_layout::append(log_batch& batch, const record_head& head,
                                std::string_view payload) {
  const std::size_t size = record_bytes(payload.size());
  if (!fits(size)) open_frame(batch, size);
  const std::size_t begin = batch.bytes.size();
  batch.bytes.resize(begin + size);
  encode(head, payload, std::span(batch.bytes).subspan(begin), seed_);
  const record_place place = make_place(at_.segment, at_.offset + frame_bytes_);
  frame_bytes_ += size;
  ++batch.frames.back().head.records;
  batch.last_lsn = at_.next_lsn++;
  return place;
}

bool log_layout::fits(std::size_t record) const noexcept {
  const std::uint64_t bytes = aligned(frame_bytes_ + record);
  return frame_bytes_ > 0 && bytes <= at_.frame_bytes && at_.offset + bytes <= at_.capacity;
}

void log_layout::open_frame(log_batch& batch, std::size_t record) {
  close_frame(batch);
  if (at_.offset + aligned(frame_header_bytes + record) > at_.capacity) {
    begin_segment(batch);
  } else if (batch.extents.empty()) {
    batch.extents.push_back({at_.segment, at_.offset, batch.bytes.size()});
  }
  batch.frames.push_back(
      {batch.bytes.size(),
       {.first_lsn = at_.next_lsn, .segment = static_cast<std::uint32_t>(at_.segment)}});
  batch.bytes.resize(batch.bytes.size() + frame_header_bytes);
  frame_bytes_ = frame_header_bytes;
}

void log_layout::close_frame(log_batch& batch) {
  if (frame_bytes_ == 0) return;
  const std::uint64_t whole = aligned(frame_bytes_);
  batch.bytes.resize(batch.bytes.size() + static_cast<std::size_t>(whole - frame_bytes_));
  batch.frames.back().head.bytes = static_cast<std::uint32_t>(whole);
  at_.offset += whole;
  frame_bytes_ = 0;
}

void log_layout::end_segment(log_batch& batch) {
  close_frame(batch);
  at_.capacity = at_.offset;
}

void log_layout::begin_segment(log_batch& batch) {
  ++at_.segment;
  at_.capacity = at_.segment_bytes;
  at_.offset = segment_header_bytes;
  const std::size_t begin = batch.bytes.size();
  batch.extents.push_back({at_.segment, 0, begin});
  batch.bytes.resize(begin + segment_header_bytes);
  encode({.key_id = at_.key_id,
          .number = at_.segment,
          .epoch = at_.epoch,
          .first_lsn = at_.next_lsn,
          .secret = at_.secret,
          .bytes = static_cast<std::uint32_t>(at_.segment_bytes)},
         std::span(batch.bytes).subspan(begin).first<segment_header_bytes>());
}

}  // namespace weir::detail
