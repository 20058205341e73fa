// SPDX-License-Identifier: MIT
// A journal's files: where they are, their names, and how they are made durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weir/sim/disk.hpp>

namespace weir::detail {

struct journal_files {
  weir::disk* disk;
  std::string directory;
  bool sync;  // off: nothing is synced, for tests of other things

  std::string path(std::string_view name) const { return directory + "/" + std::string(name); }
  void sync_file(disk_file& file) const {
    if (sync) file.sync();
  }
  void sync_names(const std::string& in) const {
    if (sync) disk->sync_directory(in);
  }
};

inline constexpr std::string_view lock_name = "LOCK";
inline constexpr std::string_view manifest_name = "MANIFEST";
inline constexpr std::string_view blob_directory = "blob";
/// A file is written under its name plus this suffix and renamed when complete. So a file without
/// the suffix is complete, and a file with it can be removed.
inline constexpr std::string_view unfinished = ".new";

inline constexpr std::uint64_t segment_bytes_min = std::uint64_t{64} << 10;

/// seg-%016x.wlog
std::string segment_name(std::uint64_t number);
/// nullopt if the name is not of that form.
std::optional<std::uint64_t> segment_number(std::string_view name);

/// What cannot be removed now is removed by the next open; the caller reports the error that led
/// here.
bool try_to_unlink(disk& on, const std::string& path) noexcept;

/// Writes a small file atomically and makes it durable.
void write_whole(const journal_files& files, const std::string& directory, const std::string& name,
                 std::span<const std::byte> content);
/// Writes zeros from a constant buffer, because zeros are what is written most.
void write_zeros(disk_file& file, std::uint64_t from, std::uint64_t to);

/// Makes a segment file of zeros, in steps, because writing all of it at once would delay commits
/// too long.
class segment_maker {
 public:
  /// `from`: a file of this size that becomes the segment; empty: a new file.
  segment_maker(const journal_files& files, std::uint64_t number, std::uint64_t bytes,
                std::string from = {});
  segment_maker(const segment_maker&) = delete;
  segment_maker& operator=(const segment_maker&) = delete;
  ~segment_maker();

  /// The bytes at the beginning instead of zeros.
  void begin_with(std::span<const std::byte> header) { header_ = header; }
  /// Writes up to `at_most` bytes; returns true when the file is complete and durable. A failure is
  /// undone as far as possible; retry with another maker.
  bool step(std::uint64_t at_most);
  std::uint64_t number() const noexcept { return number_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void start();
  void finish();

  const journal_files& files_;
  std::uint64_t number_;
  std::uint64_t bytes_;
  std::string path_;
  std::string from_;
  std::span<const std::byte> header_;
  std::unique_ptr<disk_file> file_;
  std::uint64_t written_ = 0;
};

}  // namespace weir::detail
