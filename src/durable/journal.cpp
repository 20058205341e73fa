// SPDX-License-Identifier: MIT
#include "durable/journal.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include <weir/error.hpp>

#include "core/error.hpp"
#include "core/fork_watch.hpp"
#include "durable/compaction.hpp"
#include "durable/journal_error.hpp"
#include "durable/log_batch.hpp"
#include "durable/log_writer.hpp"
#include "durable/payload_keys.hpp"
#include "durable/record_files.hpp"
#include "durable/recovery.hpp"

namespace weir::detail {

namespace {

constexpr std::uint64_t segment_bytes_max = (std::uint64_t{1} << 32) - frame_alignment;
constexpr std::uint64_t inline_payload_max = std::uint64_t{64} << 10;

void check(const journal_options& options) {
  if (options.path.empty())
    raise(errc::invalid_argument, "the path of a journal is empty; give it a directory");
  if (options.segment_bytes < segment_bytes_min || options.segment_bytes > segment_bytes_max)
    raise(errc::invalid_argument, "journal '" + options.path + "': segment_bytes is " +
                                      std::to_string(options.segment_bytes) +
                                      "; give at least 64 KiB and less than 4 GiB");
}

journal_secret make_secret() {
  journal_secret secret{};
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1)
    raise(errc::journal_failed, "the system's generator gives no random bytes");
  return secret;
}

std::string parent_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "/";
  const std::size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void make_journal_directory(const journal_files& files) {
  try {
    files.disk->make_directory(files.directory);
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::no_such_file_or_directory)
      raise(errc::invalid_argument, "journal '" + files.directory +
                                        "': its parent directory does not exist; make it first");
    if (e.code() != std::errc::file_exists && e.code() != std::errc::not_a_directory) throw;
    raise(errc::invalid_argument, "journal '" + files.directory +
                                      "' is a file, or below one; give the path of a directory");
  }
  // The manifest of a new journal is written last; once it exists, the directory's name is durable.
  if (!files.disk->exists(files.path(manifest_name))) files.sync_names(parent_of(files.directory));
}

std::unique_ptr<disk_lock> lock_journal(const journal_files& files) {
  try {
    return files.disk->lock(files.path(lock_name));
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::resource_unavailable_try_again) throw;
    raise(errc::journal_locked, "journal '" + files.directory +
                                    "' is in use by another engine or process; close that one "
                                    "first, or give another path");
  }
}

}  // namespace

/// Invariants: `pending_` and `layout_` (but for its constant seed) belong to the loop, `writer_`
/// to the committing thread. `cause_` is written once, before `broken_` is set.
class journal::state {
 public:
  explicit state(journal_options options)
      : options_(std::move(options)),
        files_{options_.disk != nullptr ? options_.disk : &real_disk(), options_.path,
               options_.sync},
        reader_(files_) {}

  void open(record_reader& reader);
  void look_at_segments(std::uint64_t first, std::uint64_t last, record_reader& reader);
  appended append(const record_head& head, const payload_view& payload);
  std::unique_ptr<journal_batch> take(bool look_for_room);
  void commit(journal_batch& batch);
  void committed(std::unique_ptr<journal_batch> batch) noexcept;
  void close();
  bool is_here() const noexcept { return process_.is_here(); }
  bool failed() const noexcept { return broken_.load(std::memory_order_acquire); }
  record_head read(record_place place, std::string& payload);
  replaceable may_be_replaced() const noexcept;
  void end_segment();
  void begin_compaction(compaction_plan plan);
  bool compacting() const noexcept { return compaction_ != nullptr || !orphans_.empty(); }
  void compaction_may_end_after(std::uint64_t lsn) noexcept;
  void abandon_compaction(std::exception_ptr why) noexcept;
  std::unique_ptr<journal_batch> take_to_compact();
  std::exception_ptr compaction_error() const noexcept { return compaction_error_; }

  const journal_secret& secret() const noexcept { return state_.secret; }
  std::uint64_t last_lsn() const noexcept { return layout_ ? layout_->next_lsn() - 1 : 0; }
  std::uint64_t durable_lsn() const noexcept { return durable_lsn_; }
  bool short_of_space() const noexcept { return short_of_space_; }

 private:
  void start(const recovered& found);
  void require_usable() const;
  std::string_view seal(const record_head& head, const payload_view& payload);
  record_place append_inline(const record_head& head, std::string_view payload);
  blob_name write_payload(std::string_view payload);
  bool read_from(const log_batch& batch, record_place place, record_head& head,
                 std::string& payload);
  void fail(const std::exception_ptr& cause);
  void compact(log_batch& batch);
  void note_compaction(log_batch& batch);
  compaction_keys keys_of_compaction();

  journal_options options_;
  const process_mark process_;
  journal_files files_;
  std::unique_ptr<disk_lock> lock_;
  recovered state_;
  std::optional<log_layout> layout_;
  std::optional<log_writer> writer_;
  std::optional<payload_cipher> cipher_;
  record_files reader_;

  std::shared_ptr<log_batch> pending_;
  std::shared_ptr<log_batch> out_;        // taken and not yet given back
  std::unique_ptr<journal_batch> spare_;  // given back, to be used again
  std::uint64_t durable_lsn_ = 0;
  std::uint64_t drafts_ = 0;  // of blobs, made so far
  std::string sealed_;        // the payload that was sealed last
  bool short_of_space_ = false;
  std::uint64_t first_segment_ = 1;
  std::uint64_t written_segment_ = 1;  // the last one that was begun on the disk
  std::shared_ptr<const snapshot_index> snapshot_;
  std::shared_ptr<log_compaction> compaction_;
  std::exception_ptr compaction_error_;
  std::uint64_t compactions_ = 0;   // begun so far
  std::vector<blob_name> orphans_;  // no record needs them; to be removed

  std::once_flag failing_;
  std::optional<error> cause_;
  std::atomic<bool> broken_{false};
};

void journal::state::open(record_reader& reader) {
  if (lock_ != nullptr)
    raise(errc::already_open, "journal '" + files_.directory + "' was opened before");
  check(options_);
  try {
    make_journal_directory(files_);
    auto lock = lock_journal(files_);
    recovery r(files_, options_.segment_bytes, options_.secret ? *options_.secret : make_secret(),
               options_.keys);
    start(r.run(reader));
    lock_ = std::move(lock);
  } catch (const std::system_error&) {
    // From the disk or from weir itself; other exceptions of a reader belong to the caller.
    throw error(journal_error(files_.directory, std::current_exception()));
  }
}

void journal::state::look_at_segments(std::uint64_t first, std::uint64_t last,
                                      record_reader& reader) {
  require_usable();
  try {
    recovery(files_, options_.segment_bytes, {}, options_.keys)
        .look_at_segments(first, last, reader);
  } catch (const std::system_error&) {
    throw error(read_error(files_.directory, std::current_exception()));
  }
}

void journal::state::start(const recovered& found) {
  state_ = found;
  first_segment_ = found.known.first_segment;
  written_segment_ = found.segment;
  if (found.snapshot != nullptr) reader_.use(snapshot_ = found.snapshot);
  durable_lsn_ = found.next_lsn - 1;
  const std::uint32_t key = options_.keys != nullptr ? options_.keys->present() : 0;
  if (key != 0) cipher_.emplace(options_.keys, found.secret, options_.salt);
  layout_.emplace(log_layout::start{
      .segment = found.segment,
      .offset = found.offset,
      // Nothing more goes into a segment with another key.
      .capacity = key == found.key_id ? found.capacity : found.offset,
      .next_lsn = found.next_lsn,
      .segment_bytes = options_.segment_bytes & ~std::uint64_t{7},
      .frame_bytes = std::min<std::uint64_t>(options_.frame_bytes, frame_bytes_max),
      .epoch = found.epoch,
      .key_id = key,
      .secret = found.secret});
  writer_.emplace(
      files_, log_writer::start{.file = files_.disk->open(files_.path(segment_name(found.segment)),
                                                          open_mode::read_write),
                                .segment = found.segment,
                                .capacity = found.capacity,
                                .segment_bytes = options_.segment_bytes & ~std::uint64_t{7},
                                .next_ready = found.next_ready,
                                .known = found.known});
  pending_ = std::make_shared<log_batch>();
}

void journal::state::require_usable() const {
  if (!process_.is_here()) raise_forked("journal '" + files_.directory + "'", "opened");
  if (broken_.load(std::memory_order_acquire)) throw error(*cause_);
  if (!layout_) raise(errc::not_open, "journal '" + files_.directory + "' is not open; open it");
}

journal::appended journal::state::append(const record_head& head, const payload_view& given) {
  require_usable();
  record_head kept = head;
  kept.flags &= record_engine_flags;
  std::string_view payload = given.bytes;
  if (cipher_ && !given.secrets.empty()) {
    payload = seal(kept, given);
    kept.flags |= record_is_sealed;
  }
  const std::uint64_t largest = std::min(inline_payload_max, options_.segment_bytes / 4);
  const std::uint64_t lsn = layout_->next_lsn();
  if (payload.size() <= largest) return {lsn, append_inline(kept, payload)};
  const blob_name blob = write_payload(payload);
  const auto name = encode(blob);
  kept.flags |= record_is_blob;
  ++state_.blobs[blob];
  return {lsn, append_inline(kept, {name.data(), name.size()})};
}

std::string_view journal::state::seal(const record_head& head, const payload_view& payload) {
  try {
    cipher_->seal(head, payload, sealed_);
    return sealed_;
  } catch (...) {
    fail(std::current_exception());  // memory ran out
    throw error(*cause_);
  }
}

record_place journal::state::append_inline(const record_head& head, std::string_view payload) {
  try {
    return layout_->append(*pending_, head, payload);
  } catch (...) {
    // Memory ran out in the middle of a frame, which must not be written incomplete.
    fail(std::current_exception());
    throw error(*cause_);
  }
}

/// Nothing refers to the payload yet, so an error here fails only this operation.
blob_name journal::state::write_payload(std::string_view payload) {
  const blob_name name = name_blob(payload);
  if (pending_->find(name) != nullptr) return name;
  try {
    std::string path = draft_blob(files_, name, payload, ++drafts_);
    pending_->drafts.push_back({name, std::move(path)});
    pending_->blobs.emplace(name, payload);
    return name;
  } catch (const std::exception& e) {
    throw payload_error(is_no_space(e) ? errc::journal_full : errc::journal_failed,
                        "a payload of " + std::to_string(payload.size()) +
                            " bytes could not be written to the journal '" + files_.directory +
                            "': " + what_of(e) +
                            "; nothing of it was recorded, check the disk and "
                            "try again");
  }
}

std::unique_ptr<journal_batch> journal::state::take(bool look_for_room) {
  require_usable();
  if (out_ != nullptr || (pending_->empty() && !look_for_room)) return nullptr;
  layout_->close_frame(*pending_);
  std::unique_ptr<journal_batch> batch = std::move(spare_);
  if (batch == nullptr) batch.reset(new journal_batch(std::make_shared<log_batch>()));
  std::swap(batch->content_, pending_);
  out_ = batch->content_;
  out_->durable_lsn = durable_lsn_;
  out_->look_for_room = look_for_room;
  return batch;
}

void journal::state::commit(journal_batch& batch) {
  require_usable();
  try {
    log_batch& content = *batch.content_;
    content.seal(state_.epoch, layout_->seed());
    writer_->write(content);
    compact(content);
  } catch (const no_room& e) {
    raise(errc::journal_full, "no space for the journal '" + files_.directory + "': " + e.what() +
                                  "; free some on its disk");
  } catch (...) {
    fail(std::current_exception());
    throw error(*cause_);
  }
}

// ------------------------------------------------------------------ compaction

journal::replaceable journal::state::may_be_replaced() const noexcept {
  const std::uint64_t segments = written_segment_ - first_segment_;
  return {.segments = segments,
          .last_segment = written_segment_ - 1,
          .bytes = segments * options_.segment_bytes +
                   (snapshot_ != nullptr ? snapshot_->header.bytes : 0)};
}

void journal::state::end_segment() {
  require_usable();
  layout_->end_segment(*pending_);
}

void journal::state::begin_compaction(compaction_plan plan) {
  require_usable();
  compaction_error_ = nullptr;
  compaction_ =
      std::make_shared<log_compaction>(files_, std::move(plan), state_.epoch, keys_of_compaction());
}

// Two ciphers with one salt would use the same nonces, so a given one is changed for each.
compaction_keys journal::state::keys_of_compaction() {
  compaction_keys keys{options_.keys, options_.salt};
  std::uint64_t number = ++compactions_;
  if (keys.salt)
    for (std::size_t i = 0; i < sizeof number; ++i, number >>= 8)
      (*keys.salt)[i] ^= static_cast<unsigned char>(number);
  return keys;
}

void journal::state::compaction_may_end_after(std::uint64_t lsn) noexcept {
  if (compaction_ != nullptr) compaction_->may_end_after(lsn);
}

void journal::state::abandon_compaction(std::exception_ptr why) noexcept {
  if (compaction_ == nullptr || compaction_->switched()) return;
  compaction_error_ = std::move(why);
  compaction_ = nullptr;
}

// Blobs whose content was appended again meanwhile are needed.
std::unique_ptr<journal_batch> journal::state::take_to_compact() {
  require_usable();
  constexpr std::size_t removed_at_once = 16;
  std::unique_ptr<journal_batch> batch(new journal_batch(std::make_shared<log_batch>()));
  out_ = batch->content_;
  out_->durable_lsn = durable_lsn_;
  out_->compaction = compaction_;
  while (!orphans_.empty() && out_->orphans.size() < removed_at_once) {
    if (!state_.blobs.contains(orphans_.back())) out_->orphans.push_back(orphans_.back());
    orphans_.pop_back();
  }
  return batch;
}

/// On the writer's thread. Everything but the change of the manifest may fail without consequences.
void journal::state::compact(log_batch& batch) {
  for (const blob_name& name : batch.orphans)
    (void)try_to_unlink(*files_.disk, blob_path(files_, name));
  if (batch.compaction == nullptr) return;
  try {
    batch.compaction->step(*writer_, batch.durable_lsn);
  } catch (const switch_failed&) {
    throw;
  } catch (const std::exception&) {
    batch.compaction_error = std::current_exception();
  }
}

void journal::state::note_compaction(log_batch& batch) {
  if (batch.compaction == nullptr) return;
  if (batch.compaction_error) {
    compaction_error_ = batch.compaction_error;
    compaction_ = nullptr;
  } else if (compaction_->done()) {
    compaction_ = nullptr;
  } else if (compaction_->switched() && compaction_->snapshot() != snapshot_) {
    snapshot_ = compaction_->snapshot();
    reader_.use(snapshot_);
    first_segment_ = snapshot_->header.number + 1;
    for (const blob_name& name : compaction_->added_blobs()) ++state_.blobs[name];
    for (const blob_name& name : compaction_->dropped_blobs()) {
      const auto counted = state_.blobs.find(name);
      if (counted == state_.blobs.end() || --counted->second > 0) continue;
      state_.blobs.erase(counted);
      orphans_.push_back(name);
    }
    compaction_->added_blobs() = {};
    compaction_->dropped_blobs() = {};
    compaction_->adopted();
  }
}

void journal::state::close() {
  if (!layout_ || failed() || !is_here()) return;
  try {
    writer_->note_close(durable_lsn_);
  } catch (const std::system_error&) {
    throw error(journal_error(files_.directory, std::current_exception()));
  }
}

/// Both threads may fail; the first cause is kept.
void journal::state::fail(const std::exception_ptr& cause) {
  std::call_once(failing_, [&] {
    cause_.emplace(journal_error(files_.directory, cause));
    broken_.store(true, std::memory_order_release);
  });
}

void journal::state::committed(std::unique_ptr<journal_batch> batch) noexcept {
  if (!out_->empty()) durable_lsn_ = out_->last_lsn;
  if (!out_->extents.empty()) written_segment_ = out_->extents.back().segment;
  try {
    note_compaction(*out_);
  } catch (...) {  // the snapshot cannot be opened for reading
    fail(std::current_exception());
  }
  short_of_space_ = out_->short_of_space;
  out_->clear();
  out_ = nullptr;
  spare_ = std::move(batch);
}

record_head journal::state::read(record_place place, std::string& payload) {
  if (!layout_) raise(errc::not_open, "journal '" + files_.directory + "' is not open; open it");
  record_head head;
  if (read_from(*pending_, place, head, payload)) return head;
  if (out_ != nullptr && read_from(*out_, place, head, payload)) return head;
  try {
    return reader_.read(place, layout_->seed(), cipher_ ? &*cipher_ : nullptr, payload);
  } catch (const std::system_error&) {
    throw error(read_error(files_.directory, std::current_exception()));
  }
}

/// False if the place is not in the batch.
bool journal::state::read_from(const log_batch& batch, record_place place, record_head& head,
                               std::string& payload) {
  const auto bytes = batch.find(place);
  if (!bytes) return false;
  const auto record = decode_record(*bytes, layout_->seed());
  if (!record) record_files::raise_no_record(files_, place);
  head = record->head;
  head.flags &= record_engine_flags;
  payload = record->payload;
  if ((record->head.flags & record_is_blob) != 0)
    if (const auto name = decode_blob_name(payload))
      if (const std::string* found = batch.find(*name)) payload = *found;
  if ((record->head.flags & record_is_sealed) != 0)
    open_payload(head, std::string(payload), cipher_ ? &*cipher_ : nullptr,
                 files_.path(segment_name(segment_of(place))), offset_of(place), payload);
  return true;
}

// ------------------------------------------------------------------ journal

std::size_t journal_batch::records() const noexcept {
  std::size_t all = 0;
  for (const log_batch::frame& f : content_->frames) all += f.head.records;
  return all;
}

journal::journal(journal_options options) : state_(std::make_unique<state>(std::move(options))) {}
journal::~journal() = default;

void journal::open(record_reader& reader) { state_->open(reader); }
void journal::look_at_segments(std::uint64_t first, std::uint64_t last, record_reader& reader) {
  state_->look_at_segments(first, last, reader);
}
const journal_secret& journal::secret() const noexcept { return state_->secret(); }
journal::appended journal::append(const record_head& head, const payload_view& payload) {
  return state_->append(head, payload);
}
std::uint64_t journal::last_lsn() const noexcept { return state_->last_lsn(); }
std::uint64_t journal::durable_lsn() const noexcept { return state_->durable_lsn(); }
std::unique_ptr<journal_batch> journal::take() { return state_->take(false); }
std::unique_ptr<journal_batch> journal::take_to_look_for_room() { return state_->take(true); }
bool journal::failed() const noexcept { return state_->failed(); }
void journal::close() { state_->close(); }
void journal::commit(journal_batch& batch) { state_->commit(batch); }
void journal::committed(std::unique_ptr<journal_batch> batch) noexcept {
  state_->committed(std::move(batch));
}
record_head journal::read(record_place place, std::string& payload) {
  return state_->read(place, payload);
}
journal::replaceable journal::may_be_replaced() const noexcept { return state_->may_be_replaced(); }
void journal::end_segment() { state_->end_segment(); }
void journal::begin_compaction(compaction_plan plan) { state_->begin_compaction(std::move(plan)); }
void journal::compaction_may_end_after(std::uint64_t lsn) noexcept {
  state_->compaction_may_end_after(lsn);
}
void journal::abandon_compaction(std::exception_ptr why) noexcept {
  state_->abandon_compaction(std::move(why));
}
bool journal::compacting() const noexcept { return state_->compacting(); }
std::unique_ptr<journal_batch> journal::take_to_compact() { return state_->take_to_compact(); }
std::exception_ptr journal::compaction_error() const noexcept { return state_->compaction_error(); }
bool journal::short_of_space() const noexcept { return state_->short_of_space(); }

}  // namespace weir::detail
