// SPDX-License-Identifier: MIT
// Part of <weir/agent.hpp>, which includes it after the declarations it needs.
#pragma once

#include <source_location>
#include <type_traits>
#include <utility>

#include <weir/detail/agents/agent_call.hpp>
#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/agents/agent_life.hpp>
#include <weir/detail/agents/agent_timer.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/overflow.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

agent_setup setup_of(const agent_options& options);
/// Starts an agent, or the agents of a pool, as a service of `s`.
void begin_in(scope& s, agent_core& agent, std::source_location site);
/// The agent whose constructor, handler or destructor runs; errc::no_current_agent if there is none
/// or it has another type.
agent_core& current_agent(const void* type);

template <class T, class... A>
agent_ref<T> make_agent(agent_setup&& setup, A&&... args) {
  return agent_ref<T>(agent_handle(
      new agent_core_of<T, std::decay_t<A>...>(std::move(setup), std::forward<A>(args)...)));
}

}  // namespace detail
}  // namespace weir
