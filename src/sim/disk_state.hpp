// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/sim/sim_disk.hpp>

#include "sim/disk_content.hpp"
#include "sim/disk_names.hpp"

namespace weir::detail {

/// An open file or a held lock. Ids are never reused, so a stale one is simply unknown. 0 is none.
using handle_id = std::uint64_t;

/// All state of a simulated disk. REQUIRES for every call: dead() is false.
class disk_state {
 public:
  explicit disk_state(disk_host& host) : host_(host) { nodes_[root_directory].directory = true; }

  bool dead() const noexcept { return host_.dead(); }
  void set(const sim::disk_faults& faults) { faults_ = faults; }
  void fail_next_sync() noexcept { next_sync_fails_ = true; }
  void crash(std::optional<std::uint32_t> owner);

  handle_id open(const std::string& path, open_mode mode);
  void rename(const std::string& from, const std::string& to);
  void unlink(const std::string& path);
  void make_directory(const std::string& path);
  std::vector<std::string> list(const std::string& directory);
  bool exists(const std::string& path) const;
  void sync_directory(const std::string& directory);
  handle_id lock(const std::string& path);
  void unlock(handle_id id) noexcept;

  std::size_t pread(handle_id file, const std::string& path, std::span<std::byte> into,
                    std::uint64_t offset);
  std::size_t pwrite(handle_id file, const std::string& path, std::span<const std::byte> from,
                     std::uint64_t offset);
  std::uint64_t size(handle_id file, const std::string& path) const;
  void truncate(handle_id file, const std::string& path, std::uint64_t size);
  void preallocate(handle_id file, const std::string& path, std::uint64_t size);
  void sync(handle_id file, const std::string& path);
  void close(handle_id file) noexcept;

 private:
  struct node {
    bool directory = false;
    bool unlinked = false;  // at some time; sweep decides whether it has any name left
    disk_content content;
  };
  struct opened {
    node_id node;
    std::uint32_t owner;
    bool writable;
  };
  struct held {
    handle_id handle;
    std::uint32_t owner;
  };
  /// The result of resolving a path: its name in its directory, and the node there now. The root
  /// has no name.
  struct place {
    disk_name name;
    node_id node = 0;
  };

  place resolve(std::string_view call, const std::string& path) const;
  node_id directory_at(std::string_view call, const std::string& path) const;
  node_id make_node(const disk_name& name, bool directory);
  const opened& handle(handle_id file, std::string_view call, const std::string& path) const;
  void require_movable(const place& from, const place& to, const std::string& from_path,
                       const std::string& to_path) const;
  bool is_inside(const std::string& path, node_id directory) const;
  bool happens(double rate) { return rate > 0 && host_.chance(rate); }
  bool sync_fails();
  std::uint64_t room() const;
  void grow(node& file, std::string_view call, const std::string& path, std::uint64_t size);
  void mark_unlinked(node_id id);
  void sweep();

  disk_host& host_;
  sim::disk_faults faults_;
  bool next_sync_fails_ = false;
  node_id last_node_ = root_directory;
  handle_id last_handle_ = 0;
  std::map<node_id, node> nodes_;
  disk_names names_;
  std::map<handle_id, opened> files_;
  std::map<std::string, held> locks_;  // by path, not by node: a crash may remove the name
};

}  // namespace weir::detail
