// SPDX-License-Identifier: MIT
// A disk that refuses some writes, or has no space for another segment and can be made to wait
// before it says so.
#pragma once

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "support/forwarding_disk.hpp"

namespace durable_test {

class refusing_disk final : public disk_support::forwarding_disk {
 public:
  using forwarding_disk::forwarding_disk;

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
    return std::make_unique<file>(*this, forwarding_disk::open(path, mode));
  }

 private:
  class file final : public disk_support::forwarding_file {
   public:
    file(refusing_disk& of, std::unique_ptr<weir::disk_file> below)
        : forwarding_file(std::move(below)), of_(of) {}
    std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
      if (of_.refusals > 0 && path().find(of_.part_) != std::string::npos) {
        --of_.refusals;
        throw std::system_error(of_.error_, std::generic_category(), "pwrite");
      }
      return forwarding_file::pwrite(from, offset);
    }
    void preallocate(std::uint64_t size) override {
      if (!of_.full) return forwarding_file::preallocate(size);
      if (of_.hold) of_.waits = true;
      while (of_.hold && !of_.let_go) std::this_thread::yield();
      throw std::system_error(ENOSPC, std::generic_category(), "preallocate");
    }

   private:
    refusing_disk& of_;
  };

  std::string part_;
  int error_ = 0;
};

}  // namespace durable_test
