// SPDX-License-Identifier: MIT
#include <weir/registry.hpp>

#include <functional>
#include <map>
#include <string>

#include "agents/agent_extra.hpp"

namespace weir::detail {

namespace {

struct names {
  std::mutex mutex;
  std::map<std::string, agent_handle, std::less<>> agents;
};

names& all_names() {
  static names* const instance = new names;  // never destroyed: threads may outlive main
  return *instance;
}

}  // namespace

// The agent may end concurrently: see agent_core::claim_name.
void register_agent(agent_core& agent) {
  const std::string name(agent.name());
  if (name.empty())
    raise(errc::invalid_argument, "registry: an agent without a name; give it one by .name");
  names& all = all_names();
  const std::lock_guard lock(all.mutex);
  const auto holder = all.agents.find(name);
  if (holder != all.agents.end()) {
    if (holder->second.get() == &agent) return;
    raise(errc::name_taken, "registry: the name '" + name +
                                "' is taken by another agent; stop that first, or use another one");
  }
  if (!agent.claim_name()) std::rethrow_exception(agent.problem(agent.ended_code()));
  all.agents.emplace(name, agent_handle::share(&agent));
}

agent_handle find_agent(std::string_view name, const void* type) noexcept {
  names& all = all_names();
  const std::lock_guard lock(all.mutex);
  const auto found = all.agents.find(name);
  if (found == all.agents.end() || found->second->type() != type) return {};
  return found->second;
}

bool forget_agent(const agent_core& agent) noexcept {
  names& all = all_names();
  agent_handle dropped;  // the last reference is dropped after the lock is released
  const std::lock_guard lock(all.mutex);
  const auto found = all.agents.find(agent.name());
  if (found == all.agents.end() || found->second.get() != &agent) return false;
  dropped = std::move(found->second);
  all.agents.erase(found);
  return true;
}

}  // namespace weir::detail
