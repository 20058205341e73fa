// SPDX-License-Identifier: MIT
// The content of simulated files: the cached bytes, the bytes that survive a crash, and the changes
// in between.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <weir/sim/sim_disk.hpp>

namespace weir::detail {

/// One crash: whose data it hits, and its random draws.
struct disk_crash {
  disk_host& host;
  const sim::disk_faults& faults;
  std::optional<std::uint32_t> owner;  // nullopt: all owners

  bool hits(std::uint32_t whose) const noexcept { return !owner || *owner == whose; }
  bool happens(double rate) const { return rate > 0 && host.chance(rate); }
};

/// A byte sequence in which zeros cost nothing and copies share their pages: journals preallocate
/// segments of zeros, and every crash copies files.
class sparse_bytes {
 public:
  std::uint64_t size() const noexcept { return size_; }
  /// REQUIRES: the range is within size().
  void read(std::span<std::byte> into, std::uint64_t offset) const;
  /// Grows as needed.
  void write(std::span<const std::byte> from, std::uint64_t offset);
  void write_zeros(std::uint64_t offset, std::uint64_t count);
  void resize(std::uint64_t size);

 private:
  static constexpr std::size_t page_bytes = 4096;
  using page = std::array<std::byte, page_bytes>;

  /// The page, unshared (copy on write); a page of zeros if there is none.
  page& own(std::uint64_t index);

  std::uint64_t size_ = 0;
  std::map<std::uint64_t, std::shared_ptr<page>> pages_;
};

/// One file.
class disk_content {
 public:
  std::uint64_t size() const noexcept { return cached_.size(); }
  /// Returns the number of bytes read.
  std::size_t read(std::span<std::byte> into, std::uint64_t offset) const;
  void write(std::uint32_t owner, std::span<const std::byte> from, std::uint64_t offset);
  void resize(std::uint32_t owner, std::uint64_t size);
  void sync();
  /// After a failed sync: unsynced changes are never synced.
  void drop_unsynced();
  void crash(const disk_crash& how);

 private:
  struct change {
    std::uint32_t owner;
    bool resizes;          // to size `offset`
    std::uint64_t offset;  // of a write
    std::uint64_t count;
    std::vector<std::byte> bytes;  // empty if all of them are zeros

    void apply(sparse_bytes& to) const;
  };

  void persist(const change& c, const sparse_bytes& after, const disk_crash& how);
  void persist_sectors(const sparse_bytes& after, std::uint64_t first, std::uint64_t end);

  sparse_bytes cached_;
  sparse_bytes durable_;
  std::vector<change> unsynced_;
  // Owners whose writes are still in cached_ although a failed sync dropped them.
  std::set<std::uint32_t> dropped_of_;
};

}  // namespace weir::detail
