// SPDX-License-Identifier: MIT
// The names of a simulated disk: as they are seen, as they would be after a crash, and the changes
// in between.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/disk_content.hpp"

namespace weir::detail {

/// A file or directory; never used again. 0 is none.
using node_id = std::uint64_t;
inline constexpr node_id root_directory = 1;

struct disk_name {
  node_id directory = 0;
  std::string name;

  auto operator<=>(const disk_name&) const = default;
};

/// Which node each name stands for.
///
/// A change is one or two assignments that persist together. Syncing a directory persists the
/// changes that touch it, and those earlier ones of other directories that assign the same names as
/// they do: without these, a file renamed from one directory to another could come back.
class disk_names {
 public:
  struct assignment {
    disk_name name;
    node_id node;  // 0: no longer
  };

  /// 0 if there is none.
  node_id find(const disk_name& name) const;
  std::vector<std::string> list(node_id directory) const;
  void change(std::uint32_t owner, std::vector<assignment> assignments);
  /// True if a node may have lost its last name for good.
  bool sync(node_id directory);
  /// A sync that failed: the changes that it should have synced never will be.
  void drop_unsynced(node_id directory);
  void crash(const disk_crash& how);

  /// The nodes that have a name now.
  std::set<node_id> named() const;
  /// The nodes that have a name now or might have one after a crash. Forgets names in directories
  /// that are no longer among them.
  std::set<node_id> collect();

 private:
  using table = std::map<disk_name, node_id>;
  struct pending {
    std::uint32_t owner;
    bool dropped;
    std::vector<assignment> assignments;
  };

  /// True if the name stood for something before.
  static bool assign(table& to, const assignment& a);
  std::vector<bool> concerned_by(node_id directory) const;
  bool persist(const pending& change);

  table seen_;
  table durable_;
  std::vector<pending> unsynced_;
};

}  // namespace weir::detail
