// SPDX-License-Identifier: MIT
#include "durable/record_files.hpp"

#include <algorithm>
#include <span>

#include <weir/error.hpp>

#include "durable/blob.hpp"
#include "durable/journal_error.hpp"
#include "durable/log_frame.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t open_max = 16;
/// Most records are smaller, so one call reads them.
constexpr std::size_t read_at_first = 1024;

}  // namespace

void open_payload(const record_head& stored_head, std::string_view stored, payload_cipher* cipher,
                  const std::string& file, std::uint64_t offset, std::string& into) {
  if (cipher != nullptr && cipher->open(stored_head, stored, into)) return;
  const std::uint32_t key = sealed_with(stored);
  if (key != 0 && (cipher == nullptr || !cipher->has(key)))
    raise(errc::wrong_key, "a record in '" + file + "' is sealed with key " + std::to_string(key) +
                               "; give that key as encryption_key, or add it to old_keys");
  raise_corrupt(file, offset, "the sealed payload of the record does not open with its key");
}

record_head record_files::read(record_place place, std::uint32_t seed, payload_cipher* cipher,
                               std::string& payload) {
  const auto record = decode_record(bytes_at(place, seed), seed);
  if (!record) raise_no_record(files_, place);
  record_head head = record->head;
  head.flags &= record_engine_flags;
  payload = record->payload;
  if ((record->head.flags & record_is_blob) != 0) {
    const auto name = decode_blob_name(payload);
    if (!name) raise_no_record(files_, place);
    read_blob(files_, *name, payload);
  }
  if ((record->head.flags & record_is_sealed) != 0) {
    payload.swap(stored_);
    open_payload(head, stored_, cipher, files_.path(segment_name(segment_of(place))),
                 offset_of(place), payload);
  }
  return head;
}

void record_files::raise_no_record(const journal_files& files, record_place place) {
  raise_corrupt(files.path(segment_name(segment_of(place))), offset_of(place),
                "no intact record begins here");
}

std::span<const std::byte> record_files::bytes_at(record_place place, std::uint32_t seed) {
  if (snapshot_ != nullptr && segment_of(place) <= snapshot_->header.number)
    return bytes_in_snapshot(place, seed);
  std::size_t n = load_bytes(place, read_at_first);
  const std::uint64_t size = record_size(std::span(buffer_).first(n));
  if (size > n && size <= frame_bytes_max) n = load_bytes(place, static_cast<std::size_t>(size));
  return std::span(buffer_).first(n);
}

// A run that is replayed reads its records in order, so the same frame is used again and again.
std::span<const std::byte> record_files::bytes_in_snapshot(record_place place, std::uint32_t seed) {
  const snapshot_index::frame* at = snapshot_->find(place);
  if (at == nullptr) raise_no_record(files_, place);
  if (frame_.empty() || frame_offset_ != at->offset) {
    records_.clear();
    frame_.resize(frame_header_bytes);
    const auto damaged = [&] {
      frame_.clear();
      raise_corrupt(snapshot_->path, at->offset, "a frame of the snapshot is damaged");
    };
    if (read_up_to(*snapshot_file_, frame_, at->offset) < frame_.size()) damaged();
    const auto head = peek_frame(frame_);
    if (!head) damaged();
    frame_.resize(head->bytes);
    if (read_up_to(*snapshot_file_, frame_, at->offset) < frame_.size() ||
        !checksum_fits(frame_, seed))
      damaged();
    read_directory(frame_, *head, snapshot_->path, at->offset, records_);
    frame_offset_ = at->offset;
  }
  const auto found =
      std::lower_bound(records_.begin(), records_.end(), place,
                       [](const snapshot_record& r, record_place p) { return r.place < p; });
  if (found == records_.end() || found->place != place) raise_no_record(files_, place);
  return found->bytes;
}

void record_files::use(std::shared_ptr<const snapshot_index> snapshot) {
  std::erase_if(open_, [&](const opened& o) { return o.segment <= snapshot->header.number; });
  snapshot_file_ = files_.disk->open(snapshot->path, open_mode::read);
  snapshot_ = std::move(snapshot);
  frame_.clear();
  records_.clear();
}

std::size_t record_files::load_bytes(record_place place, std::size_t n) {
  if (buffer_.size() < n) buffer_.resize(n);
  return read_up_to(open(segment_of(place)), std::span(buffer_).first(n), offset_of(place));
}

disk_file& record_files::open(std::uint64_t segment) {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const opened& o) { return o.segment == segment; });
  if (found != open_.end()) return *found->file;
  opened added{segment, files_.disk->open(files_.path(segment_name(segment)), open_mode::read)};
  if (open_.size() < open_max) {
    open_.push_back(std::move(added));
    return *open_.back().file;
  }
  opened& slot = open_[oldest_++ % open_.size()];
  slot = std::move(added);
  return *slot.file;
}

}  // namespace weir::detail
