// SPDX-License-Identifier: MIT
// Looking at runs: get, list, events.
#include "durable/engine_core.hpp"

namespace weir::detail {

durable::run_info engine_core::info_of(const durable_run& run) const {
  durable::run_info info;
  info.id = run.id;
  info.handler = run.handler;
  info.version = static_cast<int>(run.version);
  info.state = run.state;
  info.message = run.message;
  return info;
}

std::optional<durable::run_info> engine_core::get(std::string_view id) const {
  require_open("get");
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || !is_known(*found->second)) return std::nullopt;
  return info_of(*found->second);
}

std::vector<durable::run_info> engine_core::list(const durable::list_options& options) const {
  require_open("list");
  std::vector<durable::run_info> found;
  for (const auto& [number, run] : runs_) {
    if (!is_known(*run)) continue;
    if (options.state && run->state != *options.state) continue;
    if (!options.handler.empty() && run->handler != options.handler) continue;
    found.push_back(info_of(*run));
  }
  return found;
}

subscription<durable::run_event> engine_core::events() {
  require_here("events");
  if (ended_) raise(errc::not_open, text_of_use("events") + " is closed");
  return events_.subscribe({.overflow = overflow::drop_oldest});
}

bool engine_core::is_known(const durable_run& run) const noexcept {
  return journal_ != nullptr && run.start_lsn <= journal_->durable_lsn();
}

void engine_core::emit(const durable_run& run) {
  const in_loop outside(host_);
  if (events_.subscribers() == 0 || !is_known(run)) return;
  (void)events_.try_emit(durable::run_event{run.id, run.state, run.message});
}

}  // namespace weir::detail
