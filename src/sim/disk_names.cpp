// SPDX-License-Identifier: MIT
#include "sim/disk_names.hpp"

#include <algorithm>
#include <utility>

namespace weir::detail {

bool disk_names::assign(table& to, const assignment& a) {
  if (a.node == 0) return to.erase(a.name) > 0;
  return !to.insert_or_assign(a.name, a.node).second;
}

node_id disk_names::find(const disk_name& name) const {
  const auto found = seen_.find(name);
  return found == seen_.end() ? 0 : found->second;
}

std::vector<std::string> disk_names::list(node_id directory) const {
  std::vector<std::string> names;
  for (auto at = seen_.lower_bound({directory, {}});
       at != seen_.end() && at->first.directory == directory; ++at)
    names.push_back(at->first.name);
  return names;
}

void disk_names::change(std::uint32_t owner, std::vector<assignment> assignments) {
  for (const assignment& a : assignments) assign(seen_, a);
  unsynced_.push_back({owner, false, std::move(assignments)});
}

/// The changes that a sync of this directory persists, found from the last to the first: those in
/// it, and earlier ones that assign the same names.
std::vector<bool> disk_names::concerned_by(node_id directory) const {
  std::vector<bool> concerned(unsynced_.size());
  std::set<disk_name> names;
  for (std::size_t i = unsynced_.size(); i-- > 0;) {
    const auto& assignments = unsynced_[i].assignments;
    concerned[i] = !unsynced_[i].dropped &&
                   std::any_of(assignments.begin(), assignments.end(), [&](const assignment& a) {
                     return a.name.directory == directory || names.contains(a.name);
                   });
    if (!concerned[i]) continue;
    for (const assignment& a : assignments) names.insert(a.name);
  }
  return concerned;
}

bool disk_names::persist(const pending& change) {
  bool displaced = false;
  for (const assignment& a : change.assignments) displaced |= assign(durable_, a);
  return displaced;
}

bool disk_names::sync(node_id directory) {
  const std::vector<bool> concerned = concerned_by(directory);
  bool displaced = false;
  for (std::size_t i = 0; i < unsynced_.size(); ++i)
    if (concerned[i]) displaced |= persist(unsynced_[i]);
  // Changes that a failed sync dropped stay in the list, to be lost in a crash, unless a later
  // change of the same name was persisted.
  std::set<disk_name> settled;
  for (std::size_t i = unsynced_.size(); i-- > 0;) {
    auto& assignments = unsynced_[i].assignments;
    if (concerned[i]) {
      for (const assignment& a : assignments) settled.insert(a.name);
      assignments.clear();
    } else {
      std::erase_if(assignments, [&](const assignment& a) { return settled.contains(a.name); });
    }
  }
  std::erase_if(unsynced_, [](const pending& p) { return p.assignments.empty(); });
  return displaced;
}

void disk_names::drop_unsynced(node_id directory) {
  const std::vector<bool> concerned = concerned_by(directory);
  for (std::size_t i = 0; i < unsynced_.size(); ++i)
    if (concerned[i]) unsynced_[i].dropped = true;
}

void disk_names::crash(const disk_crash& how) {
  const auto lost = static_cast<std::uint64_t>(
      std::count_if(unsynced_.begin(), unsynced_.end(),
                    [&](const pending& p) { return how.hits(p.owner) && !p.dropped; }));
  std::uint64_t prefix = 0;
  if (lost > 0 && how.happens(how.faults.torn)) prefix = how.host.below(lost + 1);
  std::vector<pending> kept;
  for (pending& p : unsynced_) {
    if (!how.hits(p.owner)) {
      kept.push_back(std::move(p));
    } else if (!p.dropped) {
      if (prefix > 0) {
        --prefix;
        persist(p);
      } else if (how.happens(how.faults.reorder)) {
        persist(p);
      }
    }
  }
  unsynced_ = std::move(kept);
  seen_ = durable_;
  for (const pending& p : unsynced_)
    for (const assignment& a : p.assignments) assign(seen_, a);
}

std::set<node_id> disk_names::named() const {
  std::set<node_id> nodes{root_directory};
  for (const auto& [name, node] : seen_) nodes.insert(node);
  return nodes;
}

std::set<node_id> disk_names::collect() {
  std::set<node_id> known{root_directory};
  std::vector<node_id> unvisited{root_directory};
  const auto meet = [&](node_id node) {
    if (node != 0 && known.insert(node).second) unvisited.push_back(node);
  };
  for (const pending& p : unsynced_)
    for (const assignment& a : p.assignments) meet(a.node);
  while (!unvisited.empty()) {
    const node_id directory = unvisited.back();
    unvisited.pop_back();
    for (const table* names : {&seen_, &durable_})
      for (auto at = names->lower_bound({directory, {}});
           at != names->end() && at->first.directory == directory; ++at)
        meet(at->second);
  }
  const auto unreachable = [&](const auto& entry) {
    return !known.contains(entry.first.directory);
  };
  std::erase_if(seen_, unreachable);
  std::erase_if(durable_, unreachable);
  return known;
}

}  // namespace weir::detail
