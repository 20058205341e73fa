// SPDX-License-Identifier: MIT
#include "durable/journal_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>

namespace weir::detail {

namespace {

constexpr std::string_view segment_prefix = "seg-";
constexpr std::string_view segment_suffix = ".wlog";
constexpr std::size_t segment_digits = 16;

constexpr std::size_t zero_bytes = std::size_t{64} << 10;
constexpr std::array<std::byte, zero_bytes> zeros{};

}  // namespace

bool try_to_unlink(disk& on, const std::string& path) noexcept {
  try {
    on.unlink(path);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string segment_name(std::uint64_t number) {
  std::array<char, segment_digits> digits{};
  digits.fill('0');
  std::array<char, segment_digits> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, 16).ptr;
  std::copy_backward(text.data(), end, digits.end());
  return std::string(segment_prefix).append(digits.data(), digits.size()).append(segment_suffix);
}

std::optional<std::uint64_t> segment_number(std::string_view name) {
  if (!name.starts_with(segment_prefix) || !name.ends_with(segment_suffix)) return std::nullopt;
  if (name.size() != segment_prefix.size() + segment_digits + segment_suffix.size())
    return std::nullopt;
  const std::string_view digits = name.substr(segment_prefix.size(), segment_digits);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (segment_name(number) != name) return std::nullopt;
  return number;
}

void write_whole(const journal_files& files, const std::string& directory, const std::string& name,
                 std::span<const std::byte> content) {
  const std::string path = directory + "/" + name;
  const std::string draft = path + std::string(unfinished);
  const auto file = files.disk->open(draft, open_mode::create);
  try {
    file->truncate(0);
    write_all(*file, content, 0);
    files.sync_file(*file);
  } catch (...) {
    (void)try_to_unlink(*files.disk, draft);
    throw;
  }
  files.disk->rename(draft, path);
  files.sync_names(directory);
}

void write_zeros(disk_file& file, std::uint64_t from, std::uint64_t to) {
  while (from < to) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(to - from, zeros.size()));
    write_all(file, std::span(zeros).first(n), from);
    from += n;
  }
}

segment_maker::segment_maker(const journal_files& files, std::uint64_t number, std::uint64_t bytes,
                             std::string from)
    : files_(files),
      number_(number),
      bytes_(bytes),
      path_(files.path(segment_name(number))),
      from_(std::move(from)) {}

segment_maker::~segment_maker() = default;

bool segment_maker::step(std::uint64_t at_most) {
  try {
    if (file_ == nullptr) start();
    const std::uint64_t end = std::min(bytes_, written_ + at_most);
    write_zeros(*file_, written_, end);
    written_ = end;
    if (written_ == bytes_ && !header_.empty()) write_all(*file_, header_, 0);
    files_.sync_file(*file_);
  } catch (...) {
    file_.reset();
    (void)try_to_unlink(*files_.disk, path_ + std::string(unfinished));
    throw;
  }
  if (written_ < bytes_) return false;
  finish();
  return true;
}

void segment_maker::start() {
  if (!from_.empty()) {
    files_.disk->rename(from_, path_ + std::string(unfinished));
    file_ = files_.disk->open(path_ + std::string(unfinished), open_mode::read_write);
    return;
  }
  file_ = files_.disk->open(path_ + std::string(unfinished), open_mode::create);
  file_->truncate(0);
  file_->preallocate(bytes_);
}

void segment_maker::finish() {
  file_.reset();
  files_.disk->rename(path_ + std::string(unfinished), path_);
  files_.sync_names(files_.directory);
}

}  // namespace weir::detail
