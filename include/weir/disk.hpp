// SPDX-License-Identifier: MIT
// The disk as the durable layers see it: files, names, and what it takes to make them last.
//
// `real_disk()` is the machine's; sim::simulated_disk loses, tears and refuses on purpose.
//
// Ensures: what was written lasts through a power failure once `disk_file::sync` has returned, a
// name (created, renamed, unlinked) once `sync_directory` of its directory has; neither implies the
// other. After a `sync` that failed nothing is known about what was written since the last good
// one, and a later `sync` that succeeds says nothing about it: do not retry, write it elsewhere.
// Errors: std::system_error with the errno (generic category) and a text that names the call and
// the path: `pwrite 'journal/seg-1' at 4096: No space left on device`.
// Threads: calls block. The real disk and its files may be used on any thread, also by several at
// once (destroying a file is not for while others use it); a simulated one on its simulation's.
// Costs: one or two system calls each; nothing is buffered here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir {

enum class open_mode {
  read,        // must exist
  read_write,  // must exist
  create,      // read and write; made if there is none
  create_new,  // read and write; EEXIST if there is one
};

/// An open file. Destroying it closes it; that syncs nothing.
class disk_file {
 public:
  disk_file(const disk_file&) = delete;
  disk_file& operator=(const disk_file&) = delete;
  virtual ~disk_file() = default;

  /// Reads at most `into.size()` bytes and returns how many; 0 only at or behind the end of the
  /// file, or if none were asked for.
  virtual std::size_t pread(std::span<std::byte> into, std::uint64_t offset) = 0;
  /// Writes at least one and at most `from.size()` bytes and returns how many. Behind the end of
  /// the file it grows; a gap reads as zeros.
  virtual std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) = 0;
  virtual std::uint64_t size() const = 0;
  /// Cuts the file, or lets it grow by zeros.
  virtual void truncate(std::uint64_t size) = 0;
  /// Lets the file have at least `size` bytes and room for all of them, so that writing there does
  /// not run out of space; new ones are zeros. Never shrinks. ENOSPC may leave it grown in part.
  virtual void preallocate(std::uint64_t size) = 0;
  /// Makes content and size last (fdatasync).
  virtual void sync() = 0;
  /// As it was opened; a rename does not change it.
  const std::string& path() const noexcept { return path_; }

 protected:
  explicit disk_file(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

/// An exclusive lock on a path, until it is destroyed or the process dies.
class disk_lock {
 public:
  disk_lock(const disk_lock&) = delete;
  disk_lock& operator=(const disk_lock&) = delete;
  virtual ~disk_lock() = default;

  const std::string& path() const noexcept { return path_; }

 protected:
  explicit disk_lock(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

/// Requires: its files and locks do not outlive it.
class disk {
 public:
  disk(const disk&) = delete;
  disk& operator=(const disk&) = delete;
  virtual ~disk() = default;

  /// Opens a file; a directory is EISDIR. New files are for their user only (mode 0600).
  virtual std::unique_ptr<disk_file> open(const std::string& path, open_mode mode) = 0;
  /// Replaces `to` if it exists: everybody sees the one or the other.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Removes the name of a file; whoever has it open keeps the content.
  virtual void unlink(const std::string& path) = 0;
  /// Does nothing if the directory exists. Its parent must exist. Mode 0700.
  virtual void make_directory(const std::string& path) = 0;
  /// The names of files and directories in it, sorted by bytes.
  virtual std::vector<std::string> list(const std::string& directory) = 0;
  virtual bool exists(const std::string& path) = 0;
  /// Makes the names in this directory last (not those further below).
  virtual void sync_directory(const std::string& directory) = 0;
  /// Locks the file at `path`, which is made if there is none; do not rename or unlink it. Does not
  /// wait: a path that is locked, by this process or another one, is EAGAIN
  /// (std::errc::resource_unavailable_try_again). A child made by fork does not have the lock, with
  /// or without exec; for it the path is locked by its parent, until that one dies.
  virtual std::unique_ptr<disk_lock> lock(const std::string& path) = 0;

 protected:
  disk() = default;
};

/// The machine's disk.
disk& real_disk();

/// Reads until `into` is full or the file ends; returns how many bytes it read.
std::size_t read_up_to(disk_file& file, std::span<std::byte> into, std::uint64_t offset);
/// Reads until `into` is full; a file that ends before is EIO, with a text that says so.
void read_exactly(disk_file& file, std::span<std::byte> into, std::uint64_t offset);
/// Writes all of `from`. If it throws, some of it may have been written.
void write_all(disk_file& file, std::span<const std::byte> from, std::uint64_t offset);

}  // namespace weir
