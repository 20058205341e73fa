// SPDX-License-Identifier: MIT
// A disk that passes every call on to another one: the base of those that count, refuse or fail.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weir/sim/disk.hpp>

namespace disk_support {

class forwarding_file : public weir::disk_file {
 public:
  explicit forwarding_file(std::unique_ptr<weir::disk_file> below)
      : disk_file(below->path()), below_(std::move(below)) {}
  std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
    return below_->pread(into, offset);
  }
  std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
    return below_->pwrite(from, offset);
  }
  std::uint64_t size() const override { return below_->size(); }
  void truncate(std::uint64_t size) override { below_->truncate(size); }
  void preallocate(std::uint64_t size) override { below_->preallocate(size); }
  void sync() override { below_->sync(); }

 private:
  std::unique_ptr<weir::disk_file> below_;
};

/// Requires: `below` outlives it.
class forwarding_disk : public weir::disk {
 public:
  explicit forwarding_disk(weir::disk& below = weir::real_disk()) noexcept : below_(below) {}
  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    return below_.open(path, mode);
  }
  void rename(const std::string& from, const std::string& to) override { below_.rename(from, to); }
  void unlink(const std::string& path) override { below_.unlink(path); }
  void make_directory(const std::string& path) override { below_.make_directory(path); }
  std::vector<std::string> list(const std::string& path) override { return below_.list(path); }
  bool exists(const std::string& path) override { return below_.exists(path); }
  void sync_directory(const std::string& path) override { below_.sync_directory(path); }
  std::unique_ptr<weir::disk_lock> lock(const std::string& path) override {
    return below_.lock(path);
  }

 private:
  weir::disk& below_;
};

}  // namespace disk_support
