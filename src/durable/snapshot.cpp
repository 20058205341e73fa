// SPDX-License-Identifier: MIT
#include "durable/snapshot.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "durable/crc32c.hpp"
#include "durable/journal_error.hpp"
#include "durable/little_endian.hpp"

namespace weir::detail {

namespace {

constexpr std::string_view snapshot_magic = "WEIRSNP1";
constexpr std::size_t snapshot_checksum_at = 76;
constexpr std::string_view snapshot_prefix = "snap-";
constexpr std::string_view snapshot_suffix = ".wsnap";
constexpr std::size_t snapshot_digits = 16;
constexpr std::size_t directory_entry_bytes = 16;
/// A frame is ended when it has this much: reading one record reads one frame.
constexpr std::size_t snapshot_frame_bytes = std::size_t{16} << 10;

}  // namespace

std::string snapshot_name(std::uint64_t number) {
  std::string name = segment_name(number);  // seg-%016x.wlog
  const std::size_t digits_at = name.find('-') + 1;
  return std::string(snapshot_prefix)
      .append(name, digits_at, snapshot_digits)
      .append(snapshot_suffix);
}

std::optional<std::uint64_t> snapshot_number(std::string_view name) {
  if (!name.starts_with(snapshot_prefix) || !name.ends_with(snapshot_suffix)) return std::nullopt;
  const std::string_view digits = name.substr(snapshot_prefix.size(), snapshot_digits);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || snapshot_name(number) != name) return std::nullopt;
  return number;
}

void encode(const snapshot_header& h, std::span<std::byte, snapshot_header_bytes> into) noexcept {
  std::byte* at = into.data();
  std::memcpy(at, snapshot_magic.data(), snapshot_magic.size());
  store(at + 8, h.version);
  store(at + 12, h.key_id);
  store(at + 16, h.number);
  store(at + 24, h.epoch);
  store(at + 32, h.next_lsn);
  std::memcpy(at + 40, h.secret.data(), h.secret.size());
  store(at + 56, h.bytes);
  store(at + 64, std::uint64_t{0});
  store(at + 72, std::uint32_t{0});
  store(at + snapshot_checksum_at, crc32c(into.first(snapshot_checksum_at)));
}

std::optional<snapshot_header> decode_snapshot_header(
    std::span<const std::byte, snapshot_header_bytes> bytes) noexcept {
  const std::byte* at = bytes.data();
  if (std::memcmp(at, snapshot_magic.data(), snapshot_magic.size()) != 0) return std::nullopt;
  if (load<std::uint32_t>(at + snapshot_checksum_at) != crc32c(bytes.first(snapshot_checksum_at)))
    return std::nullopt;
  snapshot_header h{.version = load<std::uint32_t>(at + 8),
                    .key_id = load<std::uint32_t>(at + 12),
                    .number = load<std::uint64_t>(at + 16),
                    .epoch = load<std::uint64_t>(at + 24),
                    .next_lsn = load<std::uint64_t>(at + 32),
                    .secret = {},
                    .bytes = load<std::uint64_t>(at + 56)};
  std::memcpy(h.secret.data(), at + 40, h.secret.size());
  return h;
}

const snapshot_index::frame* snapshot_index::find(record_place place) const noexcept {
  const auto after = std::upper_bound(frames.begin(), frames.end(), place,
                                      [](record_place p, const frame& f) { return p < f.first; });
  return after == frames.begin() ? nullptr : &*(after - 1);
}

// ------------------------------------------------------------------ writing

snapshot_writer::snapshot_writer(const journal_files& files, snapshot_header header)
    : files_(files),
      index_(std::make_shared<snapshot_index>()),
      seed_(checksum_seed(header.secret)) {
  index_->header = header;
  index_->path = files.path(snapshot_name(header.number));
  file_ = files.disk->open(index_->path + std::string(unfinished), open_mode::create);
  file_->truncate(0);
}

snapshot_writer::~snapshot_writer() {
  if (finished_) return;
  file_.reset();
  (void)try_to_unlink(*files_.disk, index_->path + std::string(unfinished));
}

void snapshot_writer::add(std::span<const std::byte> record, std::uint64_t lsn,
                          record_place place) {
  const std::size_t bytes =
      records_.size() + record.size() + (directory_.size() + 1) * directory_entry_bytes;
  if (!directory_.empty() && bytes > snapshot_frame_bytes) flush();
  directory_.emplace_back(lsn, place);
  records_.insert(records_.end(), record.begin(), record.end());
}

void snapshot_writer::flush() {
  if (directory_.empty()) return;
  std::string entries(directory_.size() * directory_entry_bytes, '\0');
  std::byte* at = std::as_writable_bytes(std::span(entries)).data();
  for (const auto& [lsn, place] : directory_) {
    store(at, lsn);
    store(at + 8, place);
    at += directory_entry_bytes;
  }
  const std::size_t directory_bytes = record_header_bytes + entries.size();
  const std::uint64_t whole = aligned(frame_header_bytes + directory_bytes + records_.size());
  frame_.assign(static_cast<std::size_t>(whole), std::byte{0});
  const auto frame = std::span(frame_);
  encode(record_head{.type = directory_type}, entries,
         frame.subspan(frame_header_bytes, directory_bytes), seed_);
  std::copy(records_.begin(), records_.end(),
            frame_.begin() + static_cast<std::ptrdiff_t>(frame_header_bytes + directory_bytes));
  seal({.bytes = static_cast<std::uint32_t>(whole),
        .records = static_cast<std::uint32_t>(directory_.size() + 1),
        .first_lsn = directory_.front().first,
        .durable_lsn = directory_.front().first - 1,
        .epoch = index_->header.epoch,
        .segment = static_cast<std::uint32_t>(index_->header.number)},
       frame, seed_);
  write_all(*file_, frame, end_);
  index_->frames.push_back({directory_.front().second, end_});
  end_ += whole;
  directory_.clear();
  records_.clear();
}

void snapshot_writer::sync() { files_.sync_file(*file_); }

std::shared_ptr<const snapshot_index> snapshot_writer::finish() {
  flush();
  index_->header.bytes = end_;
  std::array<std::byte, snapshot_header_bytes> bytes{};
  encode(index_->header, bytes);
  write_all(*file_, bytes, 0);
  files_.sync_file(*file_);
  file_.reset();
  files_.disk->rename(index_->path + std::string(unfinished), index_->path);
  finished_ = true;
  files_.sync_names(files_.directory);
  return index_;
}

// ------------------------------------------------------------------ reading

snapshot_reader::snapshot_reader(const journal_files& files, std::uint64_t number)
    : index_(std::make_shared<snapshot_index>()) {
  const std::string path = files.path(snapshot_name(number));
  if (!files.disk->exists(path)) raise_corrupt(path, 0, "the snapshot is missing");
  file_ = files.disk->open(path, open_mode::read);
  std::array<std::byte, snapshot_header_bytes> bytes{};
  (void)read_up_to(*file_, bytes, 0);
  const auto header = decode_snapshot_header(bytes);
  if (!header) raise_corrupt(path, 0, "the header of the snapshot is damaged");
  if (header->version != snapshot_version)
    raise_corrupt(path, 8,
                  "format version " + std::to_string(header->version) +
                      ", this weir reads version " + std::to_string(snapshot_version));
  if (header->number != number) raise_corrupt(path, 16, "the header is of another snapshot");
  if (const std::uint64_t size = file_->size(); size != header->bytes)
    raise_corrupt(path, std::min(size, header->bytes),
                  "the file has " + std::to_string(size) + " bytes and was made with " +
                      std::to_string(header->bytes));
  index_->header = *header;
  index_->path = path;
  seed_ = checksum_seed(header->secret);
  window_.look_at(*file_);
}

void snapshot_reader::next(std::vector<snapshot_record>& into) {
  const std::string& path = index_->path;
  const auto head = peek_frame(window_.at(end_, frame_header_bytes));
  const bool plausible = head &&
                         head->segment == static_cast<std::uint32_t>(index_->header.number) &&
                         end_ + head->bytes <= index_->header.bytes && head->first_lsn >= last_lsn_;
  if (!plausible) raise_corrupt(path, end_, "a frame of the snapshot is damaged");
  const auto frame = window_.at(end_, head->bytes);
  if (frame.size() < head->bytes || !checksum_fits(frame, seed_))
    raise_corrupt(path, end_, "a frame of the snapshot is damaged");
  const std::size_t from = into.size();
  read_directory(frame, *head, path, end_, into);
  index_->frames.push_back({into[from].place, end_});
  last_lsn_ = into.back().lsn;
  end_ += head->bytes;
}

void read_directory(std::span<const std::byte> frame, const frame_head& head,
                    const std::string& path, std::uint64_t offset,
                    std::vector<snapshot_record>& into) {
  const auto bad = [&] { raise_corrupt(path, offset, "a frame of the snapshot has no directory"); };
  record_cursor cursor(frame);
  record_view view;
  if (!cursor.next(view) || view.head.type != directory_type) bad();
  const auto directory = std::as_bytes(std::span(view.payload));
  if (head.records < 2 || directory.size() != (head.records - 1) * directory_entry_bytes) bad();
  for (std::size_t i = 0; i < directory.size(); i += directory_entry_bytes) {
    const std::size_t at = cursor.offset();
    if (!cursor.next(view)) bad();
    into.push_back({.head = view.head,
                    .payload = view.payload,
                    .bytes = frame.subspan(at, cursor.offset() - at),
                    .lsn = load<std::uint64_t>(directory.data() + i),
                    .place = load<std::uint64_t>(directory.data() + i + 8),
                    .offset = offset + at});
  }
  if (!cursor.at_end()) bad();
}

}  // namespace weir::detail
