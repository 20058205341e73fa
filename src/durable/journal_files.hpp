// SPDX-License-Identifier: MIT
// Where a journal's files are, what they are called, and how they are made to last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weir/disk.hpp>

namespace weir::detail {

struct journal_files {
  weir::disk* disk;
  std::string directory;
  bool sync;  // off: nothing is made to last, for tests of other things

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
/// A file is written under its name and this, and renamed when it is complete; so whatever has
/// its own name is complete, and whatever has this one can be thrown away.
inline constexpr std::string_view unfinished = ".new";

inline constexpr std::uint64_t segment_bytes_min = std::uint64_t{64} << 10;

/// seg-%016x.wlog
std::string segment_name(std::uint64_t number);
/// nullopt if the name is not of that form.
std::optional<std::uint64_t> segment_number(std::string_view name);

/// What cannot be removed is thrown away by the next open; the error that led here is the one to
/// tell.
bool try_to_unlink(disk& on, const std::string& path) noexcept;

/// Writes a small file so that it is there completely or not at all, and lasts.
void write_whole(const journal_files& files, const std::string& directory, const std::string& name,
                 std::span<const std::byte> content);
/// Writes zeros; they are what is written most, so from a page that is always there.
void write_zeros(disk_file& file, std::uint64_t from, std::uint64_t to);

/// Makes a segment file of zeros, in steps, because writing all of it takes longer than anybody
/// who waits for a commit likes to wait.
class segment_maker {
 public:
  segment_maker(const journal_files& files, std::uint64_t number, std::uint64_t bytes);
  segment_maker(const segment_maker&) = delete;
  segment_maker& operator=(const segment_maker&) = delete;
  ~segment_maker();

  /// What stands at the beginning instead of zeros.
  void begin_with(std::span<const std::byte> header) { header_ = header; }
  /// Writes up to so many bytes; true when the file is there, complete, and lasts. What fails is
  /// undone as far as possible and may be tried again, with another maker.
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
  std::span<const std::byte> header_;
  std::unique_ptr<disk_file> file_;
  std::uint64_t written_ = 0;
};

}  // namespace weir::detail
