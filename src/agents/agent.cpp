// SPDX-License-Identifier: MIT
#include <weir/agent.hpp>
#include <weir/agent_pool.hpp>
#include <weir/stream/emit.hpp>

#include <string>

#include "agents/agent_extra.hpp"
#include "core/cancel_tree.hpp"
#include "core/home.hpp"

namespace weir::detail {

agent_setup setup_of(const agent_options& options) {
  agent_setup setup;
  setup.name = kept_name(options.name);
  setup.capacity = options.capacity;
  setup.overflow = options.overflow;
  setup.on = options.on;
  setup.on_error = options.on_error;
  setup.on_restart = options.on_restart;
  setup.site = options.site;
  return setup;
}

void begin_in(scope& s, agent_core& agent, std::source_location site) {
  const std::uint32_t fibers = agent.fibers_to_begin();
  for (std::uint32_t i = 0; i < fibers; ++i) {
    const core_ref dropped =
        core_ref::adopt(agent.begin_life(s, scope::launch::background, nullptr, site));
  }
}

agent_setup pool_setup(const agent_options& options, std::int64_t n) {
  if (n <= 0 || n > 1'000'000)
    raise(errc::invalid_argument, text_of({"agent_pool", options.name.view()}) +
                                      ": the number of agents is not between 1 and 1000000");
  agent_setup setup = setup_of(options);
  setup.lives = static_cast<std::uint32_t>(n);
  setup.keeps = n > 1;
  return setup;
}

namespace {

agent_core* agent_around(const context& inside) noexcept {
  for (const context* c = &inside; c != nullptr; c = cancel_tree::parent(*c)) {
    if (cancel_tree::kind(*c) != region_kind::fiber) continue;
    const auto& f = static_cast<const fiber&>(*c);
    if (f.driven) return &static_cast<const agent_life&>(f).core();
  }
  return nullptr;
}

}  // namespace

void count_missed_emit() noexcept {
  agent_core* const agent = current == nullptr ? nullptr : agent_around(*current->top);
  if (agent != nullptr) agent->count_dropped(1);
  if (loop* here = loop::here())
    here->emit("emit_dropped", agent == nullptr ? std::string_view("emit") : agent->name());
}

agent_core& current_agent(const void* type) {
  agent_core* const found = current == nullptr ? nullptr : agent_around(*current->top);
  if (found == nullptr)
    raise(errc::no_current_agent, "self: called outside of an agent; use a ref instead");
  if (found->type() == type) return *found;
  raise(errc::no_current_agent, "self: " + text_of({"agent", found->name()}) +
                                    ", which runs this code, is of another type");
}

}  // namespace weir::detail
