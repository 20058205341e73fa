// SPDX-License-Identifier: MIT
// The public interface of a simulated disk. Each call first checks whether the caller is in a dead
// world, where it must neither throw nor change anything.
#include <weir/sim/sim_disk.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include <weir/error.hpp>

#include "sim/disk_state.hpp"

namespace weir::sim {

namespace {

using detail::disk_state;
using detail::handle_id;

class simulated_file final : public disk_file {
 public:
  simulated_file(std::string path, disk_state& state, handle_id handle)
      : disk_file(std::move(path)), state_(state), handle_(handle) {}
  ~simulated_file() override {
    if (!state_.dead()) state_.close(handle_);
  }

  std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
    if (!state_.dead()) return state_.pread(handle_, path(), into, offset);
    std::fill(into.begin(), into.end(), std::byte{0});
    return into.size();
  }
  std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
    return state_.dead() ? from.size() : state_.pwrite(handle_, path(), from, offset);
  }
  std::uint64_t size() const override { return state_.dead() ? 0 : state_.size(handle_, path()); }
  void truncate(std::uint64_t size) override {
    if (!state_.dead()) state_.truncate(handle_, path(), size);
  }
  void preallocate(std::uint64_t size) override {
    if (!state_.dead()) state_.preallocate(handle_, path(), size);
  }
  void sync() override {
    if (!state_.dead()) state_.sync(handle_, path());
  }

 private:
  disk_state& state_;
  handle_id handle_;
};

class simulated_lock final : public disk_lock {
 public:
  simulated_lock(std::string path, disk_state& state, handle_id handle)
      : disk_lock(std::move(path)), state_(state), handle_(handle) {}
  ~simulated_lock() override {
    if (!state_.dead()) state_.unlock(handle_);
  }

 private:
  disk_state& state_;
  handle_id handle_;
};

void require_rate(std::string_view name, double rate) {
  if (rate >= 0 && rate <= 1) return;  // both comparisons are false for NaN
  detail::raise(errc::invalid_argument, "disk_faults: ." + std::string(name) + " is " +
                                            std::to_string(rate) + "; a rate is from 0 to 1");
}

}  // namespace

simulated_disk::simulated_disk(detail::disk_host& host)
    : state_(std::make_unique<disk_state>(host)) {}
simulated_disk::~simulated_disk() = default;

void simulated_disk::set(const disk_faults& faults) {
  if (state_->dead()) return;
  require_rate("torn", faults.torn);
  require_rate("reorder", faults.reorder);
  require_rate("short_write", faults.short_write);
  require_rate("eio", faults.eio);
  require_rate("sync_error", faults.sync_error);
  if (faults.space < 0)
    detail::raise(errc::invalid_argument, "disk_faults: .space is " + std::to_string(faults.space) +
                                              "; it is 0 or more bytes, or weir::unbounded");
  state_->set(faults);
}

void simulated_disk::fail_next_sync() {
  if (!state_->dead()) state_->fail_next_sync();
}

void simulated_disk::crash() {
  if (!state_->dead()) state_->crash(std::nullopt);
}
void simulated_disk::crash(std::uint32_t owner) {
  if (!state_->dead()) state_->crash(owner);
}

std::unique_ptr<disk_file> simulated_disk::open(const std::string& path, open_mode mode) {
  const handle_id handle = state_->dead() ? 0 : state_->open(path, mode);
  return std::make_unique<simulated_file>(path, *state_, handle);
}

void simulated_disk::rename(const std::string& from, const std::string& to) {
  if (!state_->dead()) state_->rename(from, to);
}

void simulated_disk::unlink(const std::string& path) {
  if (!state_->dead()) state_->unlink(path);
}

void simulated_disk::make_directory(const std::string& path) {
  if (!state_->dead()) state_->make_directory(path);
}

std::vector<std::string> simulated_disk::list(const std::string& directory) {
  if (state_->dead()) return {};
  return state_->list(directory);
}

bool simulated_disk::exists(const std::string& path) {
  return !state_->dead() && state_->exists(path);
}

void simulated_disk::sync_directory(const std::string& directory) {
  if (!state_->dead()) state_->sync_directory(directory);
}

std::unique_ptr<disk_lock> simulated_disk::lock(const std::string& path) {
  const handle_id handle = state_->dead() ? 0 : state_->lock(path);
  return std::make_unique<simulated_lock>(path, *state_, handle);
}

}  // namespace weir::sim
