// SPDX-License-Identifier: MIT
// A disk that counts what is asked of it and passes it on to another one.
#pragma once

#include <weir/disk.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir_test {

/// Requires: outlives its files. The counts may be read on any thread.
class counting_disk final : public weir::disk {
 public:
  explicit counting_disk(weir::disk& below) noexcept : below_(below) {}

  std::atomic<std::int64_t> syncs{0};            // of files
  std::atomic<std::int64_t> directory_syncs{0};  // of names
  std::atomic<std::int64_t> writes{0};
  std::atomic<std::int64_t> bytes{0};  // written

  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    return std::make_unique<file>(*this, below_.open(path, mode));
  }
  void rename(const std::string& from, const std::string& to) override { below_.rename(from, to); }
  void unlink(const std::string& path) override { below_.unlink(path); }
  void make_directory(const std::string& path) override { below_.make_directory(path); }
  std::vector<std::string> list(const std::string& directory) override {
    return below_.list(directory);
  }
  bool exists(const std::string& path) override { return below_.exists(path); }
  void sync_directory(const std::string& directory) override {
    ++directory_syncs;
    below_.sync_directory(directory);
  }
  std::unique_ptr<weir::disk_lock> lock(const std::string& path) override {
    return below_.lock(path);
  }

 private:
  class file final : public weir::disk_file {
   public:
    file(counting_disk& counts, std::unique_ptr<weir::disk_file> below)
        : disk_file(below->path()), counts_(counts), below_(std::move(below)) {}
    std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
      return below_->pread(into, offset);
    }
    std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
      const std::size_t n = below_->pwrite(from, offset);
      ++counts_.writes;
      counts_.bytes += static_cast<std::int64_t>(n);
      return n;
    }
    std::uint64_t size() const override { return below_->size(); }
    void truncate(std::uint64_t size) override { below_->truncate(size); }
    void preallocate(std::uint64_t size) override { below_->preallocate(size); }
    void sync() override {
      ++counts_.syncs;
      below_->sync();
    }

   private:
    counting_disk& counts_;
    std::unique_ptr<weir::disk_file> below_;
  };

  weir::disk& below_;
};

}  // namespace weir_test
