// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include <weir/agent.hpp>

namespace weir {

namespace detail {

void register_agent(agent_core& agent);
/// Empty if there is no agent of that name and type.
agent_handle find_agent(std::string_view name, const void* type) noexcept;
bool forget_agent(const agent_core& agent) noexcept;

}  // namespace detail

/// The named agents of the process. Any thread.
///
/// A name belongs to an agent from `add`, across restarts, until it terminates permanently: the
/// name is free before join and monitor report the end.
class registry {
 public:
  registry() = delete;

  /// Registers an agent under its `.name`. A name in use: errc::name_taken; no name:
  /// errc::invalid_argument; an ended agent: what a call would throw. Adding it again changes
  /// nothing.
  template <class T>
  static void add(const agent_ref<T>& agent) {
    detail::require_no_run("registry");
    detail::register_agent(agent.core());
  }
  /// The agent of that name and type; empty if there is none.
  template <class T>
  static std::optional<agent_ref<T>> find(std::string_view name) {
    detail::require_no_run("registry");
    detail::agent_handle found = detail::find_agent(name, &detail::type_mark<T>);
    if (!found) return std::nullopt;
    return agent_ref<T>(std::move(found));
  }
  /// Unregisters the agent; false if it was not registered.
  template <class T>
  static bool remove(const agent_ref<T>& agent) {
    detail::require_no_run("registry");
    return detail::forget_agent(agent.core());
  }
};

}  // namespace weir
