// SPDX-License-Identifier: MIT
// An in-memory disk with crashes and fault injection, for simulations.
//
// It behaves like the real disk (weir/sim/disk.hpp), also in that reads see written data, but a
// crash keeps only synced data. Faults are off until set, and every random decision is a choice of
// the simulation, so a run that found a bug can be repeated; faults that are off add no choices.
//
// Requires: files and locks do not outlive the disk; otherwise the behaviour is undefined. Threads:
// the simulation's thread only. Costs: memory for non-zero data, once as written and once as
// synced; a crash is linear in the number of files, of pages that are not zero in files that were
// not synced, and of lost writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/detail/sim/sim_disk.hpp>
#include <weir/duration.hpp>
#include <weir/sim/disk.hpp>

namespace weir {

namespace sim {

/// The faults to inject, and their rates: from 0 (never) to 1 (always).
///
/// The first two apply at a crash, to unsynced data; without them all of it is lost. Sectors have
/// 512 bytes and are atomic: a sector that persists has everything written to it until then; a
/// sector that does not keeps its old content, such as that of a recycled file.
struct disk_faults {
  /// For each unsynced write: that only a random subset of its sectors persists (and the file ends
  /// no earlier than these). For the unsynced name changes, once per crash: that a random prefix of
  /// them persists.
  double torn = 0;
  /// For each unsynced write, size change or name change: that it persists completely, even if
  /// earlier ones are lost. A write that does not may still be torn.
  double reorder = 0;
  /// For each pwrite of more than one byte: that it writes fewer, but at least one.
  double short_write = 0;
  /// For each open, pread and pwrite: that it fails with EIO and does nothing.
  double eio = 0;
  /// For each sync of a file or directory: that it fails with EIO. As on Linux, the unsynced data
  /// then counts as clean although it never reached the disk: reads still see it, a later sync
  /// succeeds without it, and the next crash loses it.
  double sync_error = 0;
  /// Total bytes that all files may hold, holes included; existing files may exceed it. A pwrite
  /// writes what still fits; when nothing does, it and other ways of growing fail with ENOSPC.
  std::int64_t space = weir::unbounded;
};

/// Starts with only the directory "/", to which relative paths refer.
///
/// While a crash destroys the caller (disk_host::dead) nothing throws and nothing changes: open and
/// lock return inert objects, reads find the end of the file, writes report success.
class simulated_disk final : public disk {
 public:
  explicit simulated_disk(detail::disk_host& host);
  ~simulated_disk() override;

  /// Rates outside of [0, 1] and negative space: errc::invalid_argument, and nothing is set.
  void set(const disk_faults& faults);
  /// The next sync, of a file or a directory, fails as with `sync_error`.
  void fail_next_sync();

  /// Power failure: unsynced data is lost, subject to the faults. Every open file becomes stale
  /// (calls fail with EBADF), every lock is released.
  void crash();
  /// The same for one owner: its unsynced writes, size changes and name changes, its open files,
  /// its locks. Unsynced data of other owners is unaffected. If two owners write to the same file,
  /// a sync by either syncs both.
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
