// SPDX-License-Identifier: MIT
// A disk whose syncs wait, or fail, when a test says so, and runs that wait for something on it.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>

#include "durable/support/crashes.hpp"
#include "support/forwarding_disk.hpp"

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

class troubled_disk final : public disk_support::forwarding_disk {
 public:
  explicit troubled_disk(trouble& with) : with_(with) {}
  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    return std::make_unique<file>(with_, forwarding_disk::open(path, mode));
  }

 private:
  class file final : public disk_support::forwarding_file {
   public:
    file(trouble& with, std::unique_ptr<weir::disk_file> below)
        : forwarding_file(std::move(below)), with_(with) {}
    std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
      if (with_.no_read) throw std::system_error(EIO, std::generic_category(), "pread");
      return forwarding_file::pread(into, offset);
    }
    void sync() override {
      with_.sync();
      forwarding_file::sync();
    }

   private:
    trouble& with_;
  };

  trouble& with_;
};

inline durable::engine_options options_with(const stage& on, weir::disk& disk) {
  durable::engine_options options = options_for(on);
  options.sync = durable::sync::always;
  options.disk = &disk;
  return options;
}

template <class F>
std::error_code code_of_plain(F f) {
  return test_support::code_of(test_support::thrown_by(f));
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
