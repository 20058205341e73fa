// SPDX-License-Identifier: MIT
// A disk that counts the calls and passes them on to another one.
#pragma once

#include <atomic>

#include "support/forwarding_disk.hpp"

namespace weir_test {

/// Requires: outlives its files. The counts may be read on any thread.
class counting_disk final : public disk_support::forwarding_disk {
 public:
  using forwarding_disk::forwarding_disk;

  std::atomic<std::int64_t> syncs{0};            // of files
  std::atomic<std::int64_t> directory_syncs{0};  // of names
  std::atomic<std::int64_t> writes{0};
  std::atomic<std::int64_t> bytes{0};  // written

  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    return std::make_unique<file>(*this, forwarding_disk::open(path, mode));
  }
  void sync_directory(const std::string& path) override {
    ++directory_syncs;
    forwarding_disk::sync_directory(path);
  }

 private:
  class file final : public disk_support::forwarding_file {
   public:
    file(counting_disk& counts, std::unique_ptr<weir::disk_file> below)
        : forwarding_file(std::move(below)), counts_(counts) {}
    std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
      const std::size_t n = forwarding_file::pwrite(from, offset);
      ++counts_.writes;
      counts_.bytes += static_cast<std::int64_t>(n);
      return n;
    }
    void sync() override {
      ++counts_.syncs;
      forwarding_file::sync();
    }

   private:
    counting_disk& counts_;
  };
};

}  // namespace weir_test
