// SPDX-License-Identifier: MIT
// The names of a simulated disk: as seen now, as they survive a crash, and the changes in between.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/disk_content.hpp"

namespace weir::detail {

/// A file or directory; ids are never reused. 0 is none.
using node_id = std::uint64_t;
inline constexpr node_id root_directory = 1;

struct disk_name {
  node_id directory = 0;
  std::string name;

  auto operator<=>(const disk_name&) const = default;
};

/// Maps names to nodes.
///
/// A change is one or two assignments that persist together. Syncing a directory persists the
/// changes that touch it, and earlier changes of other directories that assign the same names:
/// otherwise a file renamed from one directory to another could reappear.
class disk_names {
 public:
  struct assignment {
    disk_name name;
    node_id node;  // 0: the name is removed
  };

  /// 0 if there is none.
  node_id find(const disk_name& name) const;
  std::vector<std::string> list(node_id directory) const;
  void change(std::uint32_t owner, std::vector<assignment> assignments);
  /// True if a node may have lost its last name permanently.
  bool sync(node_id directory);
  /// After a failed sync: the changes that it covered are never synced.
  void drop_unsynced(node_id directory);
  void crash(const disk_crash& how);

  /// The nodes that have a name now.
  std::set<node_id> named() const;
  /// The nodes that have a name now or may have one after a crash. Drops the names in directories
  /// that are not among them.
  std::set<node_id> collect();

 private:
  using table = std::map<disk_name, node_id>;
  struct pending {
    std::uint32_t owner;
    bool dropped;
    std::vector<assignment> assignments;
  };

  /// True if the name was assigned before.
  static bool assign(table& to, const assignment& a);
  std::vector<bool> concerned_by(node_id directory) const;
  bool persist(const pending& change);

  table seen_;
  table durable_;
  std::vector<pending> unsynced_;
};

}  // namespace weir::detail
