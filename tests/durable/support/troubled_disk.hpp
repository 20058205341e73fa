// SPDX-License-Identifier: MIT
// A disk whose syncs wait, or fail, when a test says so, and runs that wait for something on it.
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

#include "durable/support/crashes.hpp"

namespace durable_test {

/// Says when it is gone: then the journal knows that it has failed, its engine not yet.
struct disk_error : std::system_error {
  explicit disk_error(std::shared_ptr<void> at_the_end)
      : std::system_error(EIO, std::generic_category(), "fdatasync"), end(std::move(at_the_end)) {}
  std::shared_ptr<void> end;
};

/// What is wrong with a disk.
struct trouble {
  bool fails = true;
  std::atomic<bool> armed{false};    // the next sync waits, then it fails
  std::atomic<bool> entered{false};  // it waits
  std::atomic<bool> let_go{false};
  std::atomic<bool> known{false};    // the journal knows that it failed
  std::atomic<bool> no_sync{false};  // every sync fails at once
  std::atomic<bool> no_read{false};

  void sync() {
    if (no_sync) throw std::system_error(EIO, std::generic_category(), "fdatasync");
    if (!armed) return;
    entered = true;
    while (!let_go) std::this_thread::yield();
    if (!fails) return;
    throw disk_error(std::shared_ptr<void>(nullptr, [this](void*) { known = true; }));
  }
  /// On the loop, which hears nothing meanwhile.
  void fail_behind_the_back_of_the_loop() {
    let_go = true;
    while (!known) std::this_thread::yield();
  }
};

class troubled_disk final : public weir::disk {
 public:
  explicit troubled_disk(trouble& with) : with_(with) {}
  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    return std::make_unique<file>(with_, real_.open(path, mode));
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
    file(trouble& with, std::unique_ptr<weir::disk_file> real)
        : disk_file(real->path()), with_(with), real_(std::move(real)) {}
    std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
      if (with_.no_read) throw std::system_error(EIO, std::generic_category(), "pread");
      return real_->pread(into, offset);
    }
    std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
      return real_->pwrite(from, offset);
    }
    std::uint64_t size() const override { return real_->size(); }
    void truncate(std::uint64_t size) override { real_->truncate(size); }
    void preallocate(std::uint64_t size) override { real_->preallocate(size); }
    void sync() override {
      with_.sync();
      real_->sync();
    }

   private:
    trouble& with_;
    std::unique_ptr<weir::disk_file> real_;
  };

  trouble& with_;
  weir::disk& real_ = weir::real_disk();
};

inline durable::engine_options options_with(const stage& on, weir::disk& disk) {
  durable::engine_options options = options_for(on);
  options.sync = durable::sync::always;
  options.disk = &disk;
  return options;
}

template <class F>
std::error_code code_of_plain(F f) {
  return aid::code_of(aid::thrown_by(f));
}

inline task<std::string> quick(int) { co_return "at once"; }

inline task<std::string> hears(int) {
  co_return std::to_string(co_await weir::signal<int>("x").wait());
}

inline void add_waiting(durable::engine& e) {
  e.add("at once", quick);
  e.add("hears", hears);
  e.add("asks", asks);
}

}  // namespace durable_test
