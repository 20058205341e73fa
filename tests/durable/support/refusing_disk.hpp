// SPDX-License-Identifier: MIT
// A disk that refuses some writes, or has no space for another segment and can be made to wait
// before it says so.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <weir/disk.hpp>

namespace durable_test {

class refusing_disk final : public weir::disk {
 public:
  explicit refusing_disk(weir::disk& real = weir::real_disk()) : real_(real) {}

  /// The next `times` writes to files whose path has this part fail.
  void refuse(std::string part, int error, int times) {
    part_ = std::move(part);
    error_ = error;
    refusals = times;
  }
  std::atomic<int> refusals{0};  // that are left

  std::atomic<bool> full{false};   // no space is reserved any more
  std::atomic<bool> hold{false};   // and to say so waits until `let_go`
  std::atomic<bool> waits{false};  // it does
  std::atomic<bool> let_go{false};

  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    return std::make_unique<file>(*this, real_.open(path, mode));
  }
  void rename(const std::string& from, const std::string& to) override { real_.rename(from, to); }
  void unlink(const std::string& path) override { real_.unlink(path); }
  void make_directory(const std::string& path) override { real_.make_directory(path); }
  std::vector<std::string> list(const std::string& path) override { return real_.list(path); }
  bool exists(const std::string& path) override { return real_.exists(path); }
  void sync_directory(const std::string& path) override { real_.sync_directory(path); }
  std::unique_ptr<weir::disk_lock> lock(const std::string& path) override {
    return real_.lock(path);
  }

 private:
  class file final : public weir::disk_file {
   public:
    file(refusing_disk& of, std::unique_ptr<weir::disk_file> real)
        : disk_file(real->path()), of_(of), real_(std::move(real)) {}
    std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
      return real_->pread(into, offset);
    }
    std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
      if (of_.refusals > 0 && path().find(of_.part_) != std::string::npos) {
        --of_.refusals;
        throw std::system_error(of_.error_, std::generic_category(), "pwrite");
      }
      return real_->pwrite(from, offset);
    }
    std::uint64_t size() const override { return real_->size(); }
    void truncate(std::uint64_t size) override { real_->truncate(size); }
    void preallocate(std::uint64_t size) override {
      if (!of_.full) return real_->preallocate(size);
      if (of_.hold) of_.waits = true;
      while (of_.hold && !of_.let_go) std::this_thread::yield();
      throw std::system_error(ENOSPC, std::generic_category(), "preallocate");
    }
    void sync() override { real_->sync(); }

   private:
    refusing_disk& of_;
    std::unique_ptr<weir::disk_file> real_;
  };

  weir::disk& real_;
  std::string part_;
  int error_ = 0;
};

}  // namespace durable_test
