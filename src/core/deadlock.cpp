// SPDX-License-Identifier: MIT
#include "core/deadlock.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "core/dump_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

namespace {

std::string who(const fiber& f) {
  std::string text;
  if (f.name != nullptr && *f.name != '\0') {
    text.append("'").append(f.name).append("'");
  } else {
    text.append("the fiber spawned at ").append(f.site.file_name()).append(":");
    text.append(std::to_string(f.site.line()));
  }
  return text;
}

std::vector<const fiber*> blockers_of(const fiber& f) {
  blocker_list found;
  if (f.parked != nullptr && !f.needs_start) f.parked->blockers(found);
  return found.fibers;
}

/// Searches for a cycle of fibers that wait for each other; without recursion.
class cycle_search {
 public:
  /// The cycle, in waiting order; empty if none can be reached from `start`.
  std::vector<const fiber*> from(const fiber& start) {
    if (seen_.contains(&start)) return {};
    enter(start);
    while (!path_.empty()) {
      place& last = path_.back();
      if (last.next == last.blockers.size()) {
        seen_[last.at] = state::left;
        path_.pop_back();
        continue;
      }
      const fiber* following = last.blockers[last.next++];
      const auto known = seen_.find(following);
      if (known == seen_.end()) {
        enter(*following);
      } else if (known->second == state::on_path) {
        return cut(following);
      }
    }
    return {};
  }

 private:
  enum class state : std::uint8_t { on_path, left };
  struct place {
    const fiber* at;
    std::vector<const fiber*> blockers;
    std::size_t next = 0;
  };
  void enter(const fiber& f) {
    seen_[&f] = state::on_path;
    path_.push_back({&f, blockers_of(f)});
  }
  std::vector<const fiber*> cut(const fiber* first) const {
    std::vector<const fiber*> cycle;
    for (const place& p : path_)
      if (!cycle.empty() || p.at == first) cycle.push_back(p.at);
    return cycle;
  }

  std::map<const fiber*, state> seen_;  // used for lookup only, never iterated
  std::vector<place> path_;
};

}  // namespace

std::string waiting_cycle(std::span<loop* const> stuck) {
  cycle_search search;
  for (loop* l : stuck) {
    const active_loop active(*l);
    for (const fiber* f : fibers_of(*l)) {
      const std::vector<const fiber*> cycle = search.from(*f);
      if (cycle.empty()) continue;
      std::string text;
      for (const fiber* part : cycle) {
        if (!text.empty()) text.append(", ");
        text.append(who(*part)).append(" waits on ");
        dump_line line(text);
        part->parked->describe(line);
      }
      return text;
    }
  }
  return {};
}

std::string deadlock_text(std::span<loop* const> stuck) {
  std::string text = "deadlock: nothing is ready and nothing can ever wake this loop\n";
  const std::string cycle = waiting_cycle(stuck);
  if (!cycle.empty()) text.append("waiting for each other in a cycle: ").append(cycle).append("\n");
  for (loop* l : stuck) {
    const active_loop active(*l);
    text.append(dump_of(*l));
  }
  return text;
}

}  // namespace weir::detail
