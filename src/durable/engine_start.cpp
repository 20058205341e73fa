// SPDX-License-Identifier: MIT
// Handlers, and the start of runs.
#include "durable/engine_core.hpp"

#include "core/error.hpp"
#include "durable/journal_error.hpp"
#include "toolkit/option.hpp"

namespace weir::detail {

namespace {

std::string idempotency_key(std::string_view handler, std::string_view key) {
  return std::string(handler).append(1, '\0').append(key);
}

}  // namespace

void engine_core::add_handler(std::string_view name, std::shared_ptr<const handler_base> handler,
                              int version) {
  require_here("add");
  require_option(!name.empty(), "durable engine",
                 "add: the name of a handler is empty; give it one");
  require_option(version >= 1, "durable engine",
                 "add: the version of a handler is less than 1; give 1 or more");
  auto& versions = handlers_[std::string(name)];
  if (!versions.emplace(static_cast<std::uint32_t>(version), std::move(handler)).second)
    raise(errc::invalid_argument, "durable engine: there is a handler '" + std::string(name) +
                                      "' of version " + std::to_string(version) + " already");
  if (!open_) return;
  for (const auto& [number, run] : runs_)
    if (run->state == durable::run_state::blocked && run->live == nullptr && run->handler == name)
      resume(*run);
}

const handler_base* engine_core::code_of(const durable_run& run) const {
  const auto versions = handlers_.find(run.handler);
  if (versions == handlers_.end()) return nullptr;
  const auto found = versions->second.find(run.version);
  return found == versions->second.end() ? nullptr : found->second.get();
}

std::uint32_t engine_core::newest_version(std::string_view handler) const {
  const auto versions = handlers_.find(handler);
  return versions == handlers_.end() ? 0 : versions->second.rbegin()->first;
}

// ------------------------------------------------------------------ starting

engine_core::known_run engine_core::find_known(std::string_view id) const {
  const auto known = by_id_.find(id);
  if (known != by_id_.end()) return {known->second, {}, known->second->id, known->second->handler};
  return ended_with_id(id);
}

engine_core::known_run engine_core::attached(const run_request& request) const {
  if (!request.id.empty())
    if (known_run found = find_known(request.id)) return found;
  if (request.idempotency.empty()) return {};
  const auto known = by_idempotency_.find(idempotency_key(request.handler, request.idempotency));
  if (known != by_idempotency_.end())
    return {known->second, {}, known->second->id, known->second->handler};
  return ended_with_key(request.handler, request.idempotency);
}

errc engine_core::refuses(const run_request& request, std::string& problem) {
  if (const known_run there = attached(request)) {
    if (there.handler == request.handler) return errc{};
    problem = "run '" + there.id + "' is one of handler '" + there.handler + "', not of '" +
              request.handler + "'; give another id";
    return errc::id_in_use;
  }
  if (!request.key.empty()) {
    problem = "handler '" + request.handler + "' is no object's, so it has no key";
    return errc::invalid_argument;
  }
  if (newest_version(request.handler) == 0) {
    problem = "no handler '" + request.handler + "' was added to the durable engine on '" +
              setup_.path + "'";
    return errc::unknown_handler;
  }
  return errc{};
}

engine_core::begun engine_core::begin_run(run_request request) {
  require_open("start");
  std::string problem;
  if (const errc refused = refuses(request, problem); refused != errc{}) raise(refused, problem);
  if (const known_run there = attached(request))
    return {there.id, there.run != nullptr ? there.run->start_lsn : 0};
  require_room();
  const durable_run* made = start_run(request, 0, 0);
  require_running();
  return {made->id, made->start_lsn};
}

std::string engine_core::new_id() {
  for (;;) {
    char text[20];
    std::snprintf(text, sizeof text, "r-%016llx",
                  static_cast<unsigned long long>(host_.env().random()));
    if (!find_known(text)) return text;
  }
}

durable_run& engine_core::make_run(std::uint64_t number, const start_record& from) {
  run_map::node_type node;
  if (spare_runs_.empty()) {
    run_map one;
    one.emplace(number, std::make_unique<durable_run>(*this, number));
    node = one.extract(one.begin());
  } else {
    node = std::move(spare_runs_.back());
    spare_runs_.pop_back();
    node.key() = number;
    node.mapped()->renew(number);
  }
  durable_run* const made = node.mapped().get();
  describe(*made, from);
  last_number_ = std::max(last_number_, number);
  runs_.insert(runs_.end(), std::move(node));
  return *made;
}

void engine_core::describe(durable_run& run, const start_record& from) {
  run.id = from.id;
  run.handler = from.handler;
  run.version = from.version;
  run.seed = from.seed;
  run.started = from.at;
  run.begins = from.begins;
  run.parent = from.parent;
  run.idempotency = from.idempotency;
}

void engine_core::add_to_index(durable_run& run) {
  by_id_.emplace(run.id, &run);
  if (!run.idempotency.empty())
    by_idempotency_.emplace(idempotency_key(run.handler, run.idempotency), &run);
}

void engine_core::remove_from_index(durable_run& run) {
  by_id_.erase(run.id);
  if (run.idempotency.empty()) return;
  const auto known = by_idempotency_.find(idempotency_key(run.handler, run.idempotency));
  if (known != by_idempotency_.end() && known->second == &run) by_idempotency_.erase(known);
}

journal::appended engine_core::append_start(const record_head& head,
                                            const payload_writer& payload) {
  try {
    const journal::appended at = journal_->append(head, payload.view());
    want_flush();
    return at;
  } catch (const payload_error&) {
    throw;
  } catch (...) {
    break_down(std::current_exception());
    return {never_durable, 0};
  }
}

durable_run* engine_core::start_run(const run_request& request, std::uint64_t parent,
                                    std::uint64_t command) {
  const std::string made_id = request.id.empty() ? new_id() : request.id;
  start_record start;
  start.at = wall_now();
  start.begins =
      request.delay > duration::zero()
          ? wall_time(saturating_add(time_point(start.at.time_since_epoch()), request.delay)
                          .time_since_epoch())
          : start.at;
  start.seed = host_.env().random();
  start.version = newest_version(request.handler);
  start.parent = parent;
  start.parent_command = command;
  start.id = made_id;
  start.handler = request.handler;
  start.key = request.key;
  start.idempotency = request.idempotency;
  start.input = request.input;
  payload_writer payload;
  start.write(payload);
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::run_start);
  head.run = last_number_ + 1;
  const journal::appended at = append_start(head, payload);
  if (at.lsn == never_durable) return nullptr;
  durable_run& run = make_run(head.run, start);
  add_to_index(run);
  run.start_place = at.place;
  run.start_lsn = run.depends = at.lsn;
  run.bytes = bytes_in_log(payload.view().bytes);
  starting_.push_back(&run);
  resume(run);
  return &run;
}

errc engine_core::start_sent(const run_request& request, std::string& problem) {
  try {
    if (!attached(request)) (void)start_run(request, 0, 0);
    return errc{};
  } catch (const payload_error& e) {
    problem = e.what();
    return errc_of(e);
  }
}

}  // namespace weir::detail
