// SPDX-License-Identifier: MIT
#include "durable/compaction.hpp"

#include <algorithm>
#include <array>
#include <exception>

#include "durable/journal_error.hpp"

namespace weir::detail {

namespace {

/// What a slice reads at least, unless the input ends: about a millisecond of work.
constexpr std::uint64_t slice_bytes = std::uint64_t{1} << 20;
/// How much is written between two syncs of the snapshot.
constexpr std::uint64_t sync_bytes = std::uint64_t{4} << 20;
constexpr int removed_at_once = 4;

}  // namespace

log_compaction::log_compaction(const journal_files& files, compaction_plan plan,
                               std::uint64_t epoch, compaction_keys keys)
    : files_(files), plan_(std::move(plan)), epoch_(epoch), keys_(std::move(keys)) {}

log_compaction::~log_compaction() {
  if (switched()) return;
  // It may have its name even if giving it has failed.
  if (stage_ == stage::named || stage_ == stage::closing)
    (void)try_to_unlink(*files_.disk, files_.path(snapshot_name(plan_.last_segment)));
  for (const blob_draft& d : drafts_) (void)try_to_unlink(*files_.disk, d.path);
  for (const blob_name& name : added_) (void)try_to_unlink(*files_.disk, blob_path(files_, name));
}

void log_compaction::step(log_writer& writer, std::uint64_t durable_lsn) {
  switch (stage_) {
    case stage::begin:
      begin(writer);
      stage_ = stage::copying;
      return;
    case stage::copying: {
      const std::uint64_t until = read_ + slice_bytes;
      const std::uint64_t before = out_->written();
      while (read_ < until)
        if (!copy_frame()) {
          stage_ = stage::closing;
          break;
        }
      finish_blobs(files_, drafts_);
      unsynced_ += out_->written() - before;
      if (unsynced_ < sync_bytes) return;
      unsynced_ = 0;
      return out_->sync();
    }
    case stage::closing:
      if (durable_lsn < plan_.needs) return;
      write_closing();
      snapshot_ = out_->finish();
      out_.reset();
      stage_ = stage::named;
      return;
    case stage::named:
      stage_ = stage::switched;  // even if it fails: the manifest may name the snapshot
      try {
        writer.replace_before(plan_.last_segment + 1, next_lsn_after_, durable_lsn);
      } catch (const switch_failed&) {
        throw;
      } catch (...) {
        stage_ = stage::named;
        throw;
      }
      return;
    case stage::switched:
      return;
    case stage::removing:
      return remove_some(writer);
    case stage::done:
      return;
  }
}

// ------------------------------------------------------------------ copying

void log_compaction::begin(const log_writer& writer) {
  const manifest& known = writer.known();
  seed_ = checksum_seed(known.secret);
  if (keys_.ring != nullptr) cipher_.emplace(keys_.ring, known.secret, keys_.salt);
  first_segment_ = known.first_segment;
  next_lsn_ = known.first_lsn;
  if (known.version == snapshot_version) {
    old_ = std::make_unique<snapshot_reader>(files_, known.first_segment - 1);
    replaced_.push_back(files_.path(snapshot_name(known.first_segment - 1)));
  }
  for (std::uint64_t n = first_segment_; n <= plan_.last_segment; ++n)
    replaced_.push_back(files_.path(segment_name(n)));
  begin_segment(plan_.last_segment + 1);
  next_lsn_after_ = header_.first_lsn;
  changes_keys_ = false;  // that one is not replaced
  begin_segment(first_segment_);
  frame_epoch_ = header_.epoch;
  out_ = std::make_unique<snapshot_writer>(files_, snapshot_header{.key_id = known.key_id,
                                                                   .number = plan_.last_segment,
                                                                   .epoch = epoch_,
                                                                   .next_lsn = next_lsn_after_,
                                                                   .secret = known.secret});
  if (old_ != nullptr) source_key_ = old_->header().key_id;
}

void log_compaction::begin_segment(std::uint64_t number) {
  const std::string path = files_.path(segment_name(number));
  file_ = files_.disk->open(path, open_mode::read);
  std::array<std::byte, segment_header_bytes> bytes{};
  (void)read_up_to(*file_, bytes, 0);
  const auto header = decode_segment_header(bytes);
  if (!header || header->number != number)
    raise_corrupt(path, 0, "the header of the segment is damaged");
  header_ = *header;
  source_key_ = header_.key_id;
  if (cipher_ && source_key_ != cipher_->present()) changes_keys_ = true;
  segment_ = number;
  offset_ = segment_header_bytes;
  window_.look_at(*file_);
}

bool log_compaction::copy_frame() {
  if (old_ == nullptr) return copy_segment_frame();
  if (old_->at_end()) {
    old_.reset();
    source_key_ = header_.key_id;
    return true;
  }
  records_.clear();
  const std::uint64_t before = old_->offset();
  old_->next(records_);
  read_ += old_->offset() - before;
  for (const snapshot_record& r : records_) take(r.bytes, r.head, r.payload, r.lsn, r.place);
  return true;
}

// The end of a segment is where no frame continues the log; then the next one must begin with the
// next LSN, or something is lost.
bool log_compaction::copy_segment_frame() {
  const auto head = peek_frame(window_.at(offset_, frame_header_bytes));
  std::span<const std::byte> frame;
  if (head && head->segment == static_cast<std::uint32_t>(segment_) &&
      offset_ + head->bytes <= header_.bytes && head->epoch >= frame_epoch_)
    frame = window_.at(offset_, head->bytes);
  if (!head || frame.size() < head->bytes || !checksum_fits(frame, seed_) ||
      head->first_lsn != next_lsn_) {
    const std::string path = file_->path();
    const std::uint64_t end = offset_;
    begin_segment(segment_ + 1);
    if (header_.first_lsn != next_lsn_)
      raise_corrupt(path, end,
                    "record " + std::to_string(next_lsn_) + " was on the disk and is damaged");
    frame_epoch_ = header_.epoch;
    return segment_ <= plan_.last_segment;
  }
  record_cursor cursor(frame);
  record_view view;
  for (std::uint64_t i = 0; i < head->records; ++i) {
    const std::size_t at = cursor.offset();
    if (!cursor.next(view))
      raise_corrupt(file_->path(), offset_ + at, "the frame does not hold its records");
    take(frame.subspan(at, cursor.offset() - at), view.head, view.payload, head->first_lsn + i,
         make_place(segment_, offset_ + at));
  }
  frame_epoch_ = head->epoch;
  next_lsn_ = head->end_lsn();
  offset_ += head->bytes;
  read_ += head->bytes;
  return true;
}

void log_compaction::take(std::span<const std::byte> record, const record_head& head,
                          std::string_view payload, std::uint64_t lsn, record_place place) {
  const bool is_blob = (head.flags & record_is_blob) != 0;
  if (!is_needed(head, payload)) {
    if (is_blob) dropped_.push_back(name_of_blob(payload));
    return;
  }
  if (!add_sealed(head, payload, lsn, place)) out_->add(record, lsn, place);
}

// All that a file of the present key holds is sealed with it.
bool log_compaction::add_sealed(record_head head, std::string_view payload, std::uint64_t lsn,
                                record_place place) {
  if (!cipher_ || source_key_ == cipher_->present()) return false;
  const bool is_blob = (head.flags & record_is_blob) != 0;
  const bool was_sealed = (head.flags & record_is_sealed) != 0;
  head.flags &= record_engine_flags;
  if (!is_blob && !was_sealed && plan_.secrets == nullptr) return false;
  std::string_view content = payload;
  if (is_blob) {
    read_blob(files_, name_of_blob(payload), blob_);
    read_ += blob_.size();
    content = blob_;
  }
  if (was_sealed) {
    if (!cipher_->reseal(head, content, sealed_))
      raise_corrupt(file_->path(), offset_, "the sealed payload of a record does not open");
  } else {
    parts_.clear();
    if (plan_.secrets != nullptr) plan_.secrets(head, content, parts_);
    if (parts_.empty()) return false;
    cipher_->seal(head, {content, parts_}, sealed_);
  }
  head.flags |= record_is_sealed;
  if (!is_blob) {
    add(head, sealed_, lsn, place);
    return true;
  }
  dropped_.push_back(name_of_blob(payload));
  head.flags |= record_is_blob;
  const auto name = encode(write_blob());
  add(head, {name.data(), name.size()}, lsn, place);
  return true;
}

// No other blob has its name: what is sealed differs each time.
blob_name log_compaction::write_blob() {
  const blob_name name = name_blob(sealed_);
  drafts_.push_back({name, draft_blob(files_, name, sealed_, 0)});
  added_.push_back(name);
  return name;
}

blob_name log_compaction::name_of_blob(std::string_view payload) const {
  const auto name = decode_blob_name(payload);
  if (!name) raise_corrupt(file_->path(), offset_, "a record does not name its blob");
  return *name;
}

void log_compaction::add(const record_head& head, std::string_view payload, std::uint64_t lsn,
                         record_place place) {
  rewritten_.resize(record_bytes(payload.size()));
  encode(head, payload, rewritten_, seed_);
  out_->add(rewritten_, lsn, place);
}

bool log_compaction::is_needed(const record_head& head, std::string_view payload) {
  const bool needed =
      head.run == 0 ? head.type == plan_.lasting_type : plan_.keep.contains(head.run);
  if (head.type != plan_.sending_type) return needed;
  if ((head.flags & record_is_blob) != 0) {
    read_blob(files_, name_of_blob(payload), blob_);
    payload = blob_;
  }
  if ((head.flags & record_is_sealed) != 0) {
    if (!blank_secrets(payload, blanked_))
      raise_corrupt(file_->path(), offset_, "a record is not sealed as it says");
    payload = blanked_;
  }
  const compaction_plan::sent_runs sent = plan_.sent(payload);
  const std::size_t before = forgotten_.size();
  for (std::uint64_t run = sent.first; run < sent.first + sent.count; ++run)
    if (!plan_.keep.contains(run)) forgotten_.push_back(run);
  if (needed || forgotten_.size() - before < sent.count) return true;
  forgotten_.resize(before);
  return false;
}

// It stands at the end of the snapshot, and has the last LSN and the last place of what it
// replaces: nobody asks for it by these. Segments without a record have no last LSN; then it is 1,
// because no frame begins with 0.
void log_compaction::write_closing() {
  const std::uint64_t lsn = std::max<std::uint64_t>(next_lsn_after_ - 1, 1);
  const record_place place = make_place(plan_.last_segment + 1, 0) - 1;
  const compaction_plan::closing_record r = plan_.closing(forgotten_);
  add(r.head, r.payload, lsn, place);
}

// ------------------------------------------------------------------ removing

// A recycled file keeps its content for a while, so one that the present key does not protect is
// removed.
void log_compaction::remove_some(log_writer& writer) {
  for (int i = 0; i < removed_at_once && !replaced_.empty(); ++i) {
    const std::string path = std::move(replaced_.back());
    replaced_.pop_back();
    if (!changes_keys_ && writer.recycle(path)) continue;
    (void)try_to_unlink(*files_.disk, path);
  }
  if (replaced_.empty()) stage_ = stage::done;
}

}  // namespace weir::detail
