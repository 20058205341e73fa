// SPDX-License-Identifier: MIT
// A disk in memory that a simulation can crash, and that fails on purpose.
//
// It behaves like the real one (weir/disk.hpp) and keeps the difference that matters: reads see
// what was written, a crash leaves what was synced. Faults are off until set, and every random
// decision is a choice of the simulation, so a run that found a bug can be repeated; faults that
// are off add no choices.
//
// Requires: files and locks do not outlive the disk; that is a bug, and undefined.
// Threads: the simulation's one thread.
// Costs: memory for what is not zero, once as written and once as synced; a crash is linear in the
// number of files, of pages that are not zero in files that were not synced, and of lost writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/disk.hpp>
#include <weir/duration.hpp>

namespace weir {

namespace detail {

class disk_state;

/// What a simulated disk asks of the simulation it is in.
class disk_host {
 public:
  disk_host(const disk_host&) = delete;
  disk_host& operator=(const disk_host&) = delete;

  /// True with this probability; asked only for rates above 0.
  virtual bool chance(double rate) = 0;
  /// One of 0 to n - 1.
  virtual std::uint64_t below(std::uint64_t n) = 0;
  /// The simulated loop that calls, 0 outside of all.
  virtual std::uint32_t owner() const noexcept = 0;
  /// The caller is being destroyed by a crash: every call is a no-op that changes nothing.
  virtual bool dead() const noexcept = 0;

 protected:
  disk_host() = default;
  ~disk_host() = default;
};

}  // namespace detail

namespace sim {

/// What goes wrong, and how often: rates from 0 (never) to 1 (always).
///
/// The first two act at a crash, on what was not synced; without them all of it is lost. Sectors
/// have 512 bytes and are atomic: one that reaches the disk brings everything that had been written
/// to it until then, one that does not leaves what was there before, such as a recycled file's.
struct disk_faults {
  /// For each unsynced write: that only some of its sectors persist, a random subset (and the file
  /// ends no earlier than these). For the unsynced changes of names, once per crash: that a random
  /// prefix of them persists.
  double torn = 0;
  /// For each unsynced write, change of size or change of a name: that it persists wholly, even if
  /// earlier ones are lost. A write that does not may still be torn.
  double reorder = 0;
  /// For each pwrite of more than one byte: that it writes fewer, but at least one.
  double short_write = 0;
  /// For each open, pread and pwrite: that it fails with EIO and does nothing.
  double eio = 0;
  /// For each sync of a file or directory: that it fails with EIO. As on Linux, what was not synced
  /// then counts as clean although the disk never got it: reads still see it, a later sync succeeds
  /// without it, and the next crash loses it.
  double sync_error = 0;
  /// Bytes that all files together may hold, holes included; what exists already may be more. A
  /// pwrite writes what still fits; when nothing does, it and growing by other means are ENOSPC.
  std::int64_t space = weir::unbounded;
};

/// Starts empty but for the directory "/", where relative paths begin.
///
/// In a dead world (disk_host::dead) nothing throws and nothing changes: open and lock give objects
/// that do nothing, reads find the end of the file, writes claim to be done.
class simulated_disk final : public disk {
 public:
  explicit simulated_disk(detail::disk_host& host);
  ~simulated_disk() override;

  /// Rates outside of [0, 1] and negative space: errc::invalid_argument, and nothing is set.
  void set(const disk_faults& faults);
  /// The next sync, of a file or a directory, fails as with `sync_error`.
  void fail_next_sync();

  /// Power failure: what nobody synced is lost as the faults say. Every open file is stale
  /// (calls give EBADF), every lock is free.
  void crash();
  /// The same for one owner: what it has written, resized or named and nobody has synced, the files
  /// it has opened, its locks. What others have not synced stays as it is. Where two owners write
  /// to the same file, a sync by either syncs both.
  void crash(std::uint32_t owner);

  std::unique_ptr<disk_file> open(const std::string& path, open_mode mode) override;
  void rename(const std::string& from, const std::string& to) override;
  void unlink(const std::string& path) override;
  void make_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  bool exists(const std::string& path) override;
  void sync_directory(const std::string& directory) override;
  std::unique_ptr<disk_lock> lock(const std::string& path) override;

 private:
  std::unique_ptr<detail::disk_state> state_;
};

}  // namespace sim
}  // namespace weir
