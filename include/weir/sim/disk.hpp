// SPDX-License-Identifier: MIT
// The disk interface of the durable layers: files, names, and how to make them durable.
//
// `real_disk()` is the machine's; sim::simulated_disk injects lost and torn writes and I/O errors.
//
// Ensures: written data survives a power failure once `disk_file::sync` has returned, a name
// (created, renamed, unlinked) once `sync_directory` of its directory has; neither implies the
// other. After a failed `sync`, the state of everything written since the last successful one is
// unknown, and a later successful `sync` says nothing about it: do not retry, write it elsewhere.
// Errors: std::system_error with the errno (generic category) and a text that names the call and
// the path: `pwrite 'journal/seg-1' at 4096: No space left on device`. Threads: calls block. The
// real disk and its files may be used on any thread, also by several at once (do not destroy a file
// while another thread uses it); a simulated disk only on its simulation's thread. Costs: one or
// two system calls each; nothing is buffered here.
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
  create,      // read and write; created if missing
  create_new,  // read and write; EEXIST if it exists
};

/// An open file. Destroying it closes it without a sync.
class disk_file {
 public:
  disk_file(const disk_file&) = delete;
  disk_file& operator=(const disk_file&) = delete;
  virtual ~disk_file() = default;

  /// Reads at most `into.size()` bytes and returns how many; 0 only at or beyond the end of the
  /// file, or if `into` is empty.
  virtual std::size_t pread(std::span<std::byte> into, std::uint64_t offset) = 0;
  /// Writes at least one and at most `from.size()` bytes and returns how many. A write beyond the
  /// end extends the file; a gap reads as zeros.
  virtual std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) = 0;
  virtual std::uint64_t size() const = 0;
  /// Shortens the file, or extends it with zeros.
  virtual void truncate(std::uint64_t size) = 0;
  /// Extends the file to at least `size` bytes, filled with zeros, and reserves space for all of
  /// them, so that writing there does not run out of space. Never shrinks. ENOSPC may leave it
  /// partly extended.
  virtual void preallocate(std::uint64_t size) = 0;
  /// Makes content and size durable (fdatasync).
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

  /// Opens a file; a directory is EISDIR. New files have mode 0600.
  virtual std::unique_ptr<disk_file> open(const std::string& path, open_mode mode) = 0;
  /// Atomically replaces `to` if it exists.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Removes the name of a file; open handles keep the content.
  virtual void unlink(const std::string& path) = 0;
  /// Does nothing if the directory exists. Its parent must exist. Mode 0700.
  virtual void make_directory(const std::string& path) = 0;
  /// The names of files and directories in it, sorted by bytes.
  virtual std::vector<std::string> list(const std::string& directory) = 0;
  virtual bool exists(const std::string& path) = 0;
  /// Makes the names in this directory durable (not those in subdirectories).
  virtual void sync_directory(const std::string& directory) = 0;
  /// Locks the file at `path`, which is created if missing; do not rename or unlink it. Does not
  /// wait: a path that is locked, by this process or another one, is EAGAIN
  /// (std::errc::resource_unavailable_try_again). A forked child does not inherit the lock, with or
  /// without exec; to it, the path is locked until its parent dies.
  virtual std::unique_ptr<disk_lock> lock(const std::string& path) = 0;

 protected:
  disk() = default;
};

/// The machine's disk.
disk& real_disk();

/// Reads until `into` is full or the file ends; returns how many bytes it read.
std::size_t read_up_to(disk_file& file, std::span<std::byte> into, std::uint64_t offset);
/// Reads until `into` is full; a shorter file is EIO, with a text that says so.
void read_exactly(disk_file& file, std::span<std::byte> into, std::uint64_t offset);
/// Writes all of `from`. If it throws, some of it may have been written.
void write_all(disk_file& file, std::span<const std::byte> from, std::uint64_t offset);

}  // namespace weir
