// SPDX-License-Identifier: MIT
#include "sim/disk_content.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::detail {

namespace {

constexpr std::uint64_t sector_bytes = 512;
// One random draw covers this many sectors, so that a large write does not fill the trace.
constexpr std::uint64_t sectors_per_draw = 32;

bool all_zeros(std::span<const std::byte> bytes) noexcept {
  return bytes.empty() || (bytes.front() == std::byte{} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// Calls `fn(page, begin in page, bytes, bytes before)` for each page of a range.
template <class F>
void for_each_page(std::size_t page_bytes, std::uint64_t offset, std::uint64_t count, F&& fn) {
  for (std::uint64_t done = 0; done < count;) {
    const auto begin = static_cast<std::size_t>((offset + done) % page_bytes);
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(page_bytes - begin, count - done));
    fn((offset + done) / page_bytes, begin, bytes, static_cast<std::size_t>(done));
    done += bytes;
  }
}

}  // namespace

sparse_bytes::page& sparse_bytes::own(std::uint64_t index) {
  std::shared_ptr<page>& place = pages_[index];
  if (place == nullptr) {
    place = std::make_shared<page>();
  } else if (place.use_count() > 1) {
    place = std::make_shared<page>(*place);
  }
  return *place;
}

void sparse_bytes::read(std::span<std::byte> into, std::uint64_t offset) const {
  for_each_page(page_bytes, offset, into.size(),
                [&](std::uint64_t index, std::size_t begin, std::size_t bytes, std::size_t done) {
                  const auto found = pages_.find(index);
                  if (found == pages_.end()) {
                    std::memset(into.data() + done, 0, bytes);
                  } else {
                    std::memcpy(into.data() + done, found->second->data() + begin, bytes);
                  }
                });
}

void sparse_bytes::write(std::span<const std::byte> from, std::uint64_t offset) {
  size_ = std::max(size_, offset + from.size());
  for_each_page(page_bytes, offset, from.size(),
                [&](std::uint64_t index, std::size_t begin, std::size_t bytes, std::size_t done) {
                  const auto piece = from.subspan(done, bytes);
                  if (all_zeros(piece) && !pages_.contains(index)) return;
                  std::memcpy(own(index).data() + begin, piece.data(), bytes);
                });
}

void sparse_bytes::write_zeros(std::uint64_t offset, std::uint64_t count) {
  size_ = std::max(size_, offset + count);
  const std::uint64_t end = offset + count;
  auto at = pages_.lower_bound(offset / page_bytes);
  while (at != pages_.end() && at->first * page_bytes < end) {
    const std::uint64_t start = at->first * page_bytes;
    const std::uint64_t first = std::max(start, offset);
    const std::uint64_t last = std::min(start + page_bytes, end);
    if (last - first == page_bytes) {
      at = pages_.erase(at);
    } else {
      page& owned = own(at->first);
      std::fill(owned.begin() + static_cast<std::ptrdiff_t>(first - start),
                owned.begin() + static_cast<std::ptrdiff_t>(last - start), std::byte{});
      ++at;
    }
  }
}

void sparse_bytes::resize(std::uint64_t size) {
  // Bytes beyond the end are zeros, so that growing again needs no work.
  if (size < size_) write_zeros(size, size_ - size);
  size_ = size;
}

void disk_content::change::apply(sparse_bytes& to) const {
  if (resizes) {
    to.resize(offset);
  } else if (bytes.empty()) {
    to.write_zeros(offset, count);
  } else {
    to.write(bytes, offset);
  }
}

std::size_t disk_content::read(std::span<std::byte> into, std::uint64_t offset) const {
  if (offset >= cached_.size()) return 0;
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), cached_.size() - offset));
  cached_.read(into.first(count), offset);
  return count;
}

void disk_content::write(std::uint32_t owner, std::span<const std::byte> from,
                         std::uint64_t offset) {
  change c{owner, false, offset, from.size(), {}};
  if (!all_zeros(from)) c.bytes.assign(from.begin(), from.end());
  c.apply(cached_);
  unsynced_.push_back(std::move(c));
}

void disk_content::resize(std::uint32_t owner, std::uint64_t size) {
  change c{owner, true, size, 0, {}};
  c.apply(cached_);
  unsynced_.push_back(std::move(c));
}

void disk_content::sync() {
  for (const change& c : unsynced_) c.apply(durable_);
  unsynced_.clear();
}

void disk_content::drop_unsynced() {
  for (const change& c : unsynced_) dropped_of_.insert(c.owner);
  unsynced_.clear();
}

void disk_content::crash(const disk_crash& how) {
  const bool hit =
      std::any_of(unsynced_.begin(), unsynced_.end(),
                  [&](const change& c) { return how.hits(c.owner); }) ||
      std::any_of(dropped_of_.begin(), dropped_of_.end(), [&](auto o) { return how.hits(o); });
  if (!hit) return;
  sparse_bytes after = durable_;  // after each change: what a page cache would have held
  std::vector<change> kept;
  for (change& c : unsynced_) {
    c.apply(after);
    if (how.hits(c.owner)) {
      persist(c, after, how);
    } else {
      kept.push_back(std::move(c));
    }
  }
  unsynced_ = std::move(kept);
  // Data dropped by a failed sync vanishes now, whichever owner wrote it.
  dropped_of_.clear();
  cached_ = durable_;
  for (const change& c : unsynced_) c.apply(cached_);
}

void disk_content::persist(const change& c, const sparse_bytes& after, const disk_crash& how) {
  const bool whole = how.happens(how.faults.reorder);
  if (c.resizes) {
    if (whole) c.apply(durable_);
    return;
  }
  const std::uint64_t first = c.offset / sector_bytes;
  const std::uint64_t end = (c.offset + c.count - 1) / sector_bytes + 1;
  if (whole) {
    persist_sectors(after, first, end);
  } else if (how.happens(how.faults.torn)) {
    std::uint64_t lots = 0;
    for (std::uint64_t sector = first; sector < end; ++sector) {
      const std::uint64_t nth = (sector - first) % sectors_per_draw;
      if (nth == 0)
        lots = how.host.below(std::uint64_t{1} << std::min(sectors_per_draw, end - sector));
      if ((lots >> nth & 1) != 0) persist_sectors(after, sector, sector + 1);
    }
  }
}

void disk_content::persist_sectors(const sparse_bytes& after, std::uint64_t first,
                                   std::uint64_t end) {
  const std::uint64_t last_byte = std::min(end * sector_bytes, after.size());
  std::array<std::byte, 8 * sector_bytes> buffer;
  for (std::uint64_t at = first * sector_bytes; at < last_byte;) {
    const auto count = std::min<std::uint64_t>(buffer.size(), last_byte - at);
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(count));
    after.read(piece, at);
    durable_.write(piece, at);
    at += count;
  }
}

}  // namespace weir::detail
