// SPDX-License-Identifier: MIT
// Looking at runs: get, list, events.
#include "durable/engine_core.hpp"

namespace weir::detail {

durable::run_info engine_core::info_of(const durable_run& run) const {
  durable::run_info info;
  info.id = run.id.view();
  info.handler = run.handler();
  info.version = static_cast<int>(run.version);
  info.state = run.state;
  info.message = message_of_run(run);
  return info;
}

std::optional<durable::run_info> engine_core::get(std::string_view id) const {
  require_open("get");
  const known_run found = find_known(id);
  if (found.ended) return info_of(*found.ended);
  if (found.run == nullptr || !is_known(*found.run)) return std::nullopt;
  return info_of(*found.run);
}

std::vector<durable::run_info> engine_core::list(const durable::list_options& options) const {
  require_open("list");
  std::vector<durable::run_info> found;
  const auto wanted = [&](durable::run_state state) {
    return !options.state || state == *options.state;
  };
  const auto add = [&](durable::run_info info) {
    if (options.handler.empty() || info.handler == options.handler)
      found.push_back(std::move(info));
  };
  // Both in the order of their starts.
  const std::vector<std::uint64_t> ended = past_.numbers();
  auto next_ended = ended.begin();
  const auto add_ended_before = [&](std::uint64_t number) {
    for (; next_ended != ended.end() && *next_ended < number; ++next_ended)
      if (const auto e = past_.find(*next_ended); wanted(e->state) && !is_over(*e))
        add(info_of(*e));
  };
  for (const auto& [number, run] : runs_) {
    add_ended_before(number);
    if (is_known(run) && wanted(run.state)) add(info_of(run));
  }
  add_ended_before(~std::uint64_t{0});
  return found;
}

subscription<durable::run_event> engine_core::events() {
  require_here("events");
  if (ended_) raise(errc::not_open, text_of_use("events") + " is closed");
  return events_.subscribe({.overflow = overflow::drop_oldest});
}

bool engine_core::is_known(const durable_run& run) const noexcept {
  return journal_ != nullptr && (run.life > 1 || run.start_lsn <= journal_->durable_lsn());
}

void engine_core::emit(const durable_run& run) {
  const in_loop outside(host_);
  if (events_.subscribers() == 0 || !is_known(run)) return;
  (void)events_.try_emit(durable::run_event{run.id.str(), run.state, message_of_run(run)});
}

}  // namespace weir::detail
