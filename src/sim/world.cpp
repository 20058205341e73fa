// SPDX-License-Identifier: MIT
#include <weir/sim/explore.hpp>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "sim/settings.hpp"
#include "sim/simulation.hpp"

namespace weir {

namespace detail {

std::optional<std::uint64_t> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, problem] = std::from_chars(text, end, value);
  if (problem != std::errc() || stopped != end)
    raise(errc::invalid_argument,
          std::string(name) + " is '" + text +
              "' in the environment; give a number of 0 or more, or unset it");
  return value;
}

void check_strategy(const sim::strategy& s, const char* what, bool explore) {
  using kind = sim::strategy::kind;
  const std::string where = std::string(what) + ": ";
  if (s.what == kind::pct && (s.depth < 1 || s.depth > 1000))
    raise(errc::invalid_argument,
          where + "pct(" + std::to_string(s.depth) + "): the depth is 1 to 1000");
  if (s.what != kind::dfs) return;
  if (s.depth < 0)
    raise(errc::invalid_argument,
          where + "dfs(" + std::to_string(s.depth) + "): the number of preemptions is 0 or more");
  if (!explore)
    raise(errc::invalid_argument,
          where + "dfs enumerates runs, so it is for sim::explore only; replay its trace instead");
}

namespace {

std::unique_ptr<simulation> make_simulation(sim::options options) {
  if (options.max_steps <= 0)
    raise(errc::invalid_argument, "sim: max_steps is " + std::to_string(options.max_steps) +
                                      "; give 1 or more, or unbounded");
  check_strategy(options.strategy, "sim", false);
  if (const auto seed = environment_number("WEIR_SIM_SEED")) options.seed = *seed;
  return std::make_unique<simulation>(options, adversary(options.strategy, options.seed));
}

}  // namespace

sim::world make_replay(const sim::trace& trace) {
  if (!trace.has_choices()) check_strategy(trace.strategy(), "sim::replay", false);
  sim::options options;
  options.max_steps = trace.max_steps();
  return world_maker::of(std::make_unique<simulation>(options, adversary(trace)));
}

sim::world make_replay(std::uint64_t seed, sim::strategy strategy) {
  check_strategy(strategy, "sim::replay", false);
  return world_maker::of(std::make_unique<simulation>(sim::options{}, adversary(strategy, seed)));
}

namespace {

simulation* current_simulation() noexcept {
  loop* here = loop::here();
  return here == nullptr ? nullptr : dynamic_cast<simulation*>(&here->env());
}

}  // namespace

}  // namespace detail

namespace sim {

world::world(const options& options) : core_(detail::make_simulation(options)) {}
world::world(std::unique_ptr<detail::simulation> core, detail::simulation*) noexcept
    : core_(std::move(core)) {}
world::~world() = default;

loop_ref world::loop(std::string_view name) { return core_->named_loop(name); }
void world::crash(std::string_view name) { core_->crash(name); }
void world::pause(std::string_view name, duration d) { core_->pause(name, d); }
void world::shift_wall_clock(duration d) noexcept { core_->shift_wall_clock(d); }

void world::set_cpu_pressure(std::optional<double> percent) noexcept {
  core_->set_cpu_pressure(percent);
}
simulated_disk& world::disk() noexcept { return core_->disk(); }
sim::network& world::network() noexcept { return core_->network(); }
void world::run_root(detail::fiber& root, std::source_location site) { core_->run(root, site); }

void always(std::string_view name, bool condition) {
  if (condition || detail::in_dead_world()) return;
  if (detail::simulation* world = detail::current_simulation()) return world->always_violated(name);
  throw failure(errc::always_violated, "always '" + std::string(name) + "' does not hold");
}

void sometimes(std::string_view name, bool condition) {
  if (detail::in_dead_world()) return;
  if (detail::simulation* world = detail::current_simulation()) world->sometimes(name, condition);
}

}  // namespace sim
}  // namespace weir
