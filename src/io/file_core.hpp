// SPDX-License-Identifier: MIT
// An open file, and the calls on it. All of this blocks: it runs on threads of the blocking pool.
//
// Why a call uses no descriptor of another file: it holds `use_` shared, and `close` takes it
// exclusively after `closed_` was set. So a call finds `closed_`, or the descriptor stays open
// until it has ended. The owner and each call hold the file_core; the last of them closes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <string>

#include <weir/detail/core/home.hpp>
#include <weir/io/file.hpp>

#include "io/system.hpp"

namespace weir::detail {

/// Opens a file; close-on-exec, and without blocking on what is not a plain file.
owned_descriptor open_file(const std::string& path, io::mode how);
/// Throws errc::invalid_argument for a path that the system would cut off.
void require_path(const std::string& path);
/// Writes everything at the place of the descriptor. An error of the system, or 0.
int write_fully(int descriptor, std::span<const std::byte> bytes) noexcept;
/// Reads until `into` is full or the file ends. Negative: an error of the system.
std::int64_t read_fully(int descriptor, std::span<std::byte> into) noexcept;

class file_core {
 public:
  /// On the loop that it will belong to.
  file_core(owned_descriptor opened, std::string path, io::mode how) noexcept
      : descriptor_(std::move(opened)), path_(std::move(path)), mode_(how) {}

  // ---- The home loop.

  void require_home() {
    if (!home_.is_here())
      home_.settle({"file", path_}, "open it on each loop; it is not used", true);
  }
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  /// False if it was closed before.
  bool begin_close() noexcept { return !closed_.exchange(true, std::memory_order_acq_rel); }
  [[noreturn]] void raise_closed(const char* what) const;

  // ---- Any thread.

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void append(std::span<const std::byte> bytes);
  void sync();
  std::uint64_t size();
  /// REQUIRES: begin_close.
  void close();

 private:
  std::shared_lock<std::shared_mutex> enter(const char* what);
  void require_mode(const char* what, bool allowed, const char* instead) const;
  void require_offset(const char* what, std::uint64_t offset) const;
  [[noreturn]] void fail(int error, const char* what) const;
  [[noreturn]] void fail_write(int error, const char* what, std::size_t done,
                               std::size_t size) const;
  bool reads() const noexcept {
    return mode_ == io::mode::read || mode_ == io::mode::update || mode_ == io::mode::create;
  }

  std::shared_mutex use_;
  owned_descriptor descriptor_;
  const std::string path_;
  const io::mode mode_;
  std::atomic<bool> closed_{false};
  home home_;
};

}  // namespace weir::detail
