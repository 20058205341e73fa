// SPDX-License-Identifier: MIT
#include "durable/recovery.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "durable/blob.hpp"
#include "durable/journal_error.hpp"
#include "durable/little_endian.hpp"
#include "durable/record_files.hpp"

namespace weir::detail {

namespace {

/// Upper bound on the opens that only a lost manifest recorded.
constexpr std::uint64_t lost_epochs = std::uint64_t{1} << 16;
/// Of the name of a blob.
constexpr std::size_t blob_digits = 64;

/// The number of leading zero bytes, in steps of eight. Most of a journal's last segment is zero,
/// so eight words are checked together.
std::size_t leading_zeros(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t word = 8;
  constexpr std::size_t block = 8 * word;
  std::size_t i = 0;
  for (; i + block <= bytes.size(); i += block) {
    std::uint64_t any = 0;
    for (std::size_t k = 0; k < block; k += word) any |= load<std::uint64_t>(bytes.data() + i + k);
    if (any != 0) break;
  }
  while (i + word <= bytes.size() && load<std::uint64_t>(bytes.data() + i) == 0) i += word;
  return i;
}

}  // namespace

recovery::recovery(const journal_files& files, std::uint64_t segment_bytes,
                   const journal_secret& secret, std::shared_ptr<const key_ring> keys)
    : files_(files), segment_bytes_(segment_bytes), secret_(secret), keys_(std::move(keys)) {}

recovered recovery::run(record_reader& reader) {
  manifest_ = read_manifest(files_);
  find_files();
  if (segments_.empty()) {
    if (files_.disk->exists(files_.path(manifest_name)))
      raise_corrupt(files_.path(manifest_name), 0, "there are no segments beside it");
    create();
  } else {
    scan(reader);
    // The manifest is written after the first segment's name is durable; without a manifest, that
    // name may not be.
    if (!manifest_ && next_lsn_ == 1 && begun_ == 1) create();
    repair();
  }
  const manifest known = write_new_manifest();
  remove_orphans();
  const segment& last = segments_[begun_ - 1];
  return {.epoch = epoch_ + 1,
          .secret = secret_,
          .next_lsn = next_lsn_,
          .segment = last.number,
          .offset = end_,
          .capacity = last.header->bytes & ~std::uint64_t{frame_alignment - 1},
          .key_id = last.header->key_id,
          .next_ready = next_ready_,
          .known = known,
          .snapshot = snapshot_ ? snapshot_->index() : nullptr,
          .blobs = std::move(blobs_)};
}

void recovery::look(record_reader& reader) {
  owned_ = false;
  // The manifest first: what it says stays true of segments that are found later.
  manifest_ = read_manifest(files_);
  find_files();
  if (segments_.empty()) {
    if (files_.disk->exists(files_.path(manifest_name)))
      raise_corrupt(files_.path(manifest_name), 0, "there are no segments beside it");
    raise(errc::invalid_argument,
          "'" + files_.directory + "' is not a journal: it has no segments; give its directory");
  }
  scan(reader);
}

void recovery::look_at_segments(std::uint64_t first, std::uint64_t last, record_reader& reader) {
  manifest_ = read_manifest(files_);
  find_files();
  adopt();
  if (snapshot_ && first < first_segment_) read_snapshot(reader);
  for (std::size_t i = 0; i < begun_; ++i) {
    const segment& s = segments_[i];
    if (s.number < first || s.number > last) continue;
    next_lsn_ = s.header->first_lsn;
    epoch_ = s.header->epoch;
    begin_segment(i);
    read_frames(s, reader);
  }
}

void recovery::scan(record_reader& reader) {
  check_segments();
  adopt();
  rebuilt_ = !manifest_;
  if (snapshot_) read_snapshot(reader);
  read_segments(reader);
  check_end(reader);
}

log_view recovery::view() const {
  log_view v{.epoch = epoch_,
             .first_lsn = segments_.front().header->first_lsn,
             .next_lsn = next_lsn_,
             .first_segment = segments_.front().number,
             .segments = begun_,
             .offset = end_,
             .torn = used_end_ > end_ ? used_end_ - end_ : 0,
             .has_manifest = manifest_.has_value(),
             .closed = manifest_ && manifest_->closed && manifest_->durable_lsn + 1 == next_lsn_,
             .key_id = segments_[begun_ - 1].header->key_id,
             .secret = secret_};
  for (std::size_t i = 0; i < begun_; ++i) v.bytes += segments_[i].size;
  if (snapshot_) v.snapshot = snapshot_->header().bytes;
  v.bytes += v.snapshot;
  return v;
}

// ------------------------------------------------------------------ finding segments

void recovery::find_files() {
  const std::vector<std::string> names = files_.disk->list(files_.directory);
  first_segment_ = manifest_ ? manifest_->first_segment : 1;
  find_snapshot(names);
  for (const std::string& name : names) {
    const auto number = segment_number(name);
    if (!number) continue;
    if (*number < first_segment_) {
      replaced_.push_back(files_.path(name));
    } else {
      segments_.push_back(look_at(*number));
    }
  }
}

void recovery::find_snapshot(const std::vector<std::string>& names) {
  std::uint64_t wanted = 0;
  if (manifest_ && manifest_->version == snapshot_version) wanted = first_segment_ - 1;
  for (const std::string& name : names)
    if (const auto number = snapshot_number(name); number && !manifest_)
      wanted = std::max(wanted, *number);
  for (const std::string& name : names)
    if (const auto number = snapshot_number(name); number && *number != wanted)
      replaced_.push_back(files_.path(name));
  if (wanted == 0) return;
  snapshot_ = std::make_unique<snapshot_reader>(files_, wanted);
  first_segment_ = wanted + 1;
}

recovery::segment recovery::look_at(std::uint64_t number) {
  segment s{.number = number, .path = files_.path(segment_name(number)), .header = {}};
  const auto file = files_.disk->open(s.path, open_mode::read);
  std::array<std::byte, segment_header_bytes> bytes{};
  (void)read_up_to(*file, bytes, 0);
  s.header = decode_segment_header(bytes);
  s.blank = is_blank(bytes);
  s.size = file->size();
  return s;
}

void recovery::check_version(const std::string& path, std::uint32_t version) const {
  if (version == journal_version) return;
  raise_corrupt(path, 8,
                "format version " + std::to_string(version) + ", this weir reads version " +
                    std::to_string(journal_version));
}

void recovery::check_segments() const {
  if (manifest_ && manifest_->version != snapshot_version)
    check_version(files_.path(manifest_name), manifest_->version);
  if (snapshot_) check_key(snapshot_name(snapshot_->header().number), snapshot_->header().key_id);
  const std::uint64_t first = first_segment_;
  const std::size_t begun = std::max<std::size_t>(manifest_ ? manifest_->begun : 0, 1);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const segment& s = segments_[i];
    if (s.number != first + i)
      raise_corrupt(s.path, 0, "'" + segment_name(first + i) + "' is missing before it");
    const bool last = i + 1 == segments_.size();
    check_size(s, s.header && (last || !segments_[i + 1].header));
    if (s.header) {
      check_header(s);
    } else if (i < begun || (!last && (!s.blank || segments_[i + 1].header))) {
      // The first is complete before it gets its name, and the others are begun in order.
      raise_corrupt(s.path, 0, "the header of the segment is damaged");
    }
  }
  if (segments_.size() < begun)
    raise_corrupt(files_.path(segment_name(first + segments_.size())), 0, "the file is missing");
}

/// A prepared segment has the size given in the manifest; without a manifest, at least the minimum.
/// After a crash the last segment that was begun may be cut.
void recovery::check_size(const segment& s, bool last_begun) const {
  if (last_begun && !(manifest_ && manifest_->closed)) return;
  std::uint64_t made = segment_bytes_min;
  if (s.header) {
    made = s.header->bytes;
  } else if (manifest_) {
    made = manifest_->segment_bytes & ~std::uint64_t{frame_alignment - 1};
  }
  if (s.size < made)
    raise_corrupt(s.path, s.size,
                  "the file ends here and was made with " + std::to_string(made) + " bytes");
}

void recovery::check_header(const segment& s) const {
  const segment_header& h = *s.header;
  check_version(s.path, h.version);
  check_key(segment_name(s.number), h.key_id);
  if (h.number != s.number) raise_corrupt(s.path, 16, "the header is of another segment");
  const journal_secret& ours = manifest_ ? manifest_->secret : segments_.front().header->secret;
  if (h.secret != ours) raise_corrupt(s.path, 40, "the segment is of another journal");
}

void recovery::check_key(const std::string& file, std::uint32_t id) const {
  if (id == 0 || (keys_ != nullptr && keys_->find(id) != nullptr)) return;
  const std::string which = "journal '" + files_.directory + "' is encrypted, '" + file +
                            "' with key " + std::to_string(id) + "; ";
  if (keys_ == nullptr && !owned_) return;  // secret parts are blanked
  if (keys_ == nullptr) raise(errc::wrong_key, which + "give the engine its encryption_key");
  raise(errc::wrong_key, which + "the given key is " + std::to_string(keys_->present()) +
                             ", so give the right one, or add the other one to old_keys");
}

/// Adopts what the manifest and the headers say.
void recovery::adopt() {
  const segment_header& first = *segments_.front().header;
  secret_ = first.secret;
  seed_ = checksum_seed(secret_);
  if (keys_ != nullptr) cipher_.emplace(keys_, secret_);
  next_lsn_ = manifest_ ? manifest_->first_lsn : snapshot_ ? snapshot_->header().next_lsn : 1;
  proven_ = manifest_ ? manifest_->durable_lsn : 0;
  while (begun_ < segments_.size() && segments_[begun_].header) ++begun_;
}

// ------------------------------------------------------------------ reading the log

void recovery::read_snapshot(record_reader& reader) {
  const snapshot_header& header = snapshot_->header();
  const std::string& path = snapshot_->index()->path;
  if (header.secret != secret_) raise_corrupt(path, 40, "the snapshot is of another journal");
  if (header.next_lsn != next_lsn_)
    raise_corrupt(path, 32,
                  "the snapshot ends before record " + std::to_string(header.next_lsn) + ", not " +
                      std::to_string(next_lsn_));
  std::vector<snapshot_record> records;
  while (!snapshot_->at_end()) {
    records.clear();
    snapshot_->next(records);
    for (const snapshot_record& r : records)
      see_record(path, r.offset, {r.head, r.payload}, r.lsn, r.place, reader);
  }
}

void recovery::read_segments(record_reader& reader) {
  for (std::size_t i = 0; i < begun_; ++i) {
    begin_segment(i);
    read_frames(segments_[i], reader);
  }
}

void recovery::begin_segment(std::size_t i) {
  const segment& s = segments_[i];
  if (s.header->first_lsn != next_lsn_) {
    const segment& before = segments_[i == 0 ? 0 : i - 1];
    raise_corrupt(before.path, i == 0 ? 32 : end_,
                  "the records from " + std::to_string(next_lsn_) + " on are not there, and '" +
                      segment_name(s.number) + "' begins with " +
                      std::to_string(s.header->first_lsn));
  }
  if (s.header->epoch < epoch_) raise_corrupt(s.path, 24, "the epoch is lower than before");
  epoch_ = s.header->epoch;
  proven_ = std::max(proven_, s.header->first_lsn - 1);
  unproven_ = 0;
  end_ = segment_header_bytes;
}

void recovery::read_frames(const segment& s, record_reader& reader) {
  const auto file = files_.disk->open(s.path, open_mode::read);
  window_.look_at(*file);
  for (;;) {
    frame_head head;
    const auto frame = next_frame(s, end_, head);
    if (frame.empty()) return;
    note_proof(end_, head);
    see_records(s, end_, frame, head, reader);
    epoch_ = head.epoch;
    next_lsn_ = head.end_lsn();
    end_ += head.bytes;
    if (next_lsn_ <= proven_ + 1) unproven_ = end_;
  }
}

std::span<const std::byte> recovery::next_frame(const segment& s, std::uint64_t offset,
                                                frame_head& head) {
  const auto found = peek_frame(window_.at(offset, frame_header_bytes));
  if (!found || found->segment != static_cast<std::uint32_t>(s.number)) return {};
  if (offset + found->bytes > s.header->bytes) return {};
  head = *found;
  const auto frame = window_.at(offset, head.bytes);
  if (frame.size() < head.bytes || !checksum_fits(frame, seed_)) return {};
  // A frame left over from an earlier epoch may even have the next LSN.
  if (head.epoch < epoch_) return {};
  if (head.first_lsn != next_lsn_)
    raise_corrupt(s.path, offset,
                  "record " + std::to_string(head.first_lsn) + " stands where " +
                      std::to_string(next_lsn_) + " should");
  return frame;
}

/// All frames of a batch carry the same durable LSN, the last one before the batch. The first frame
/// of a segment does not prove the segment's header, because they are written together.
void recovery::note_proof(std::uint64_t offset, const frame_head& head) noexcept {
  proven_ = std::max(proven_, head.durable_lsn);
  if (head.durable_lsn + 1 == head.first_lsn && offset > segment_header_bytes) unproven_ = offset;
}

void recovery::see_records(const segment& s, std::uint64_t offset, std::span<const std::byte> frame,
                           const frame_head& head, record_reader& reader) {
  record_cursor cursor(frame);
  record_view record;
  for (std::uint64_t i = 0; i < head.records; ++i) {
    const std::uint64_t at = offset + cursor.offset();
    if (!cursor.next(record)) raise_corrupt(s.path, at, "the frame does not hold its records");
    see_record(s.path, at, record, head.first_lsn + i, make_place(s.number, at), reader);
  }
  if (!cursor.at_end())
    raise_corrupt(s.path, offset + cursor.offset(), "the frame holds more than its records");
}

void recovery::see_record(const std::string& path, std::uint64_t at, record_view record,
                          std::uint64_t lsn, record_place place, record_reader& reader) {
  const bool is_blob = (record.head.flags & record_is_blob) != 0;
  const bool is_sealed = (record.head.flags & record_is_sealed) != 0;
  record.head.flags &= record_engine_flags;
  if (is_blob) {
    const auto name = decode_blob_name(record.payload);
    if (!name) raise_corrupt(path, at, "the record does not name its blob");
    read_blob(files_, *name, blob_);
    ++blobs_[*name];
    record.payload = blob_;
  }
  if (is_sealed) {
    if (owned_ || cipher_)
      open_payload(record.head, record.payload, cipher_ ? &*cipher_ : nullptr, path, at, opened_);
    else if (!blank_secrets(record.payload, opened_))
      raise_corrupt(path, at, "the record is not sealed as it says");
    record.payload = opened_;
  }
  reader.see(record.head, record.payload, lsn, place);
}

// ------------------------------------------------------------------ the end of the log

void recovery::check_end(record_reader& reader) {
  const segment& last = segments_[begun_ - 1];
  const remains rest = examine(last, end_);
  used_end_ = rest.used_end;
  const std::uint64_t durable = std::max(rest.durable, proven_);
  if (durable >= next_lsn_) {
    if (caught_up_with(durable, reader)) return;
    raise_corrupt(last.path, end_,
                  "record " + std::to_string(next_lsn_) + " was on the disk and is damaged");
  }
  for (std::size_t i = begun_; i < segments_.size(); ++i) {
    const remains found = examine(segments_[i], segment_header_bytes);
    if (found.durable >= next_lsn_) {
      if (caught_up_with(found.durable, reader)) return;
      raise_corrupt(segments_[i].path, 0, "the header of the segment is damaged");
    }
    next_blank_ = i == begun_ && segments_[i].blank && found.used_end == segment_header_bytes &&
                  segments_[i].size == segment_bytes_;
  }
}

recovery::remains recovery::examine(const segment& s, std::uint64_t from) {
  constexpr std::size_t at_once = std::size_t{64} << 10;
  const auto file = files_.disk->open(s.path, open_mode::read);
  window_.look_at(*file);
  remains found{.durable = 0, .used_end = from};
  for (std::uint64_t offset = from;;) {
    const auto bytes = window_.at(offset, at_once);
    if (bytes.empty()) return found;
    const std::size_t i = leading_zeros(bytes);
    offset += i;
    if (i == bytes.size()) continue;
    found.used_end = offset + 8;
    found.durable = std::max(found.durable, durable_by(s, offset));
    offset += 8;
  }
}

/// What the frame at an offset calls durable; 0 if that is known anyway, or there is no frame.
std::uint64_t recovery::durable_by(const segment& s, std::uint64_t offset) {
  const auto head = peek_frame(window_.at(offset, frame_header_bytes));
  if (!head || head->segment != static_cast<std::uint32_t>(s.number)) return 0;
  if (head->durable_lsn < next_lsn_) return 0;
  const auto frame = window_.at(offset, head->bytes);
  return frame.size() == head->bytes && checksum_fits(frame, seed_) ? head->durable_lsn : 0;
}

// ------------------------------------------------------------------ a log that grows

bool recovery::caught_up_with(std::uint64_t lsn, record_reader& reader) {
  if (owned_) return false;
  (void)catch_up(reader);
  return next_lsn_ > lsn;
}

bool recovery::catch_up(record_reader& reader) {
  const std::uint64_t known = next_lsn_;
  for (;;) {
    const segment& last = segments_[begun_ - 1];
    if (frame_begins(last, end_)) read_frames(last, reader);
    used_end_ = end_;
    const std::uint64_t number = last.number + 1;
    if (!files_.disk->exists(files_.path(segment_name(number)))) break;
    segment next = look_at(number);
    if (!next.header) break;
    check_header(next);
    // It was begun after its predecessor was complete, which may be after that was read.
    if (next.header->first_lsn != next_lsn_) read_frames(last, reader);
    segments_.resize(begun_);
    segments_.push_back(std::move(next));
    begin_segment(begun_);
    ++begun_;
  }
  return next_lsn_ != known;
}

bool recovery::frame_begins(const segment& s, std::uint64_t offset) const {
  const auto file = files_.disk->open(s.path, open_mode::read);
  std::array<std::byte, frame_header_bytes> bytes{};
  return read_up_to(*file, bytes, offset) == bytes.size() && peek_frame(bytes).has_value();
}

// ------------------------------------------------------------------ repair

/// Makes a journal of one segment without records.
void recovery::create() {
  segment s{.number = 1, .path = files_.path(segment_name(1)), .header = segment_header{}};
  s.size = segment_bytes_;
  s.header->number = 1;
  s.header->epoch = epoch_;
  s.header->first_lsn = 1;
  s.header->secret = secret_;
  if (keys_ != nullptr) s.header->key_id = keys_->present();
  s.header->bytes = static_cast<std::uint32_t>(segment_bytes_);
  std::array<std::byte, segment_header_bytes> bytes{};
  encode(*s.header, bytes);
  files_.disk->make_directory(files_.path(blob_directory));
  segment_maker maker(files_, s.number, segment_bytes_);
  maker.begin_with(bytes);
  maker.step(segment_bytes_);
  segments_.resize(std::min<std::size_t>(segments_.size(), 1));
  if (segments_.empty()) segments_.emplace_back();
  segments_.front() = s;
  begun_ = 1;
  end_ = used_end_ = segment_header_bytes;
}

void recovery::repair() {
  keep_or_remove_next();
  remove_unfinished(files_.directory);
  remove_unfinished(files_.path(blob_directory));
  files_.sync_names(files_.directory);
  const segment& last = segments_[begun_ - 1];
  const auto file = files_.disk->open(last.path, open_mode::read_write);
  rewrite(*file, unproven_, end_);
  // Restores the size of a file that was cut.
  const bool was_cut = last.size < last.header->bytes;
  write_zeros(*file, end_, was_cut ? last.header->bytes : std::min(used_end_, last.size));
  files_.sync_file(*file);
}

void recovery::rewrite(disk_file& file, std::uint64_t from, std::uint64_t to) {
  window_.look_at(file);
  while (from < to) {
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(to - from, file_window::capacity));
    const auto bytes = window_.at(from, n);
    if (bytes.empty()) raise_corrupt(file.path(), from, "the file has become shorter");
    write_all(file, bytes, from);
    from += bytes.size();
  }
}

/// Keeping a prepared segment saves the time to make it and keeps its space. Its name may not be
/// durable, so it is renamed again. What a crash left of a segment that was begun is removed.
void recovery::keep_or_remove_next() {
  for (std::size_t i = begun_; i < segments_.size(); ++i) {
    const std::string& path = segments_[i].path;
    if (next_blank_ && i == begun_) {
      next_ready_ = true;
      files_.disk->rename(path, path + std::string(unfinished));
      files_.disk->rename(path + std::string(unfinished), path);
    } else {
      files_.disk->unlink(path);
    }
  }
  segments_.resize(begun_);
}

void recovery::remove_unfinished(const std::string& directory) {
  if (!files_.disk->exists(directory)) return;
  for (std::string& name : files_.disk->list(directory))
    if (name.ends_with(unfinished)) files_.disk->unlink(name.insert(0, directory + "/"));
}

// What a compaction has left behind. None of it is named by the manifest, or by a record. That
// manifest must be durable before: the one that was read may be in the page cache only, and the
// disk may have an older one.
void recovery::remove_orphans() {
  for (const std::string& path : replaced_) files_.disk->unlink(path);
  const std::string directory = files_.path(blob_directory);
  if (!files_.disk->exists(directory)) return;
  std::unordered_set<std::string> needed;
  for (const auto& [name, count] : blobs_) needed.insert(blob_path(files_, name));
  for (const std::string& name : files_.disk->list(directory)) {
    const std::string path = directory + "/" + name;
    if (name.size() == blob_digits && !needed.contains(path)) files_.disk->unlink(path);
  }
}

manifest recovery::write_new_manifest() {
  if (manifest_) epoch_ = std::max(epoch_, manifest_->epoch);
  if (snapshot_) epoch_ = std::max(epoch_, snapshot_->header().epoch);
  if (rebuilt_) epoch_ += lost_epochs;
  const manifest m{.version = snapshot_ ? snapshot_version : journal_version,
                   .key_id = keys_ != nullptr ? keys_->present() : 0,
                   .epoch = epoch_ + 1,
                   .first_segment = segments_.front().number,
                   .first_lsn = segments_.front().header->first_lsn,
                   .durable_lsn = next_lsn_ - 1,
                   .secret = secret_,
                   .segment_bytes = segment_bytes_,
                   .begun = static_cast<std::uint32_t>(begun_)};
  write_manifest(files_, m);
  return m;
}

}  // namespace weir::detail
