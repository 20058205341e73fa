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
  const bool plain = handler->kind == handler_kind::plain;
  if (!versions.empty() && (versions.begin()->second->kind == handler_kind::plain) != plain)
    raise(errc::invalid_argument,
          "durable engine: the versions of handler '" + std::string(name) +
              "' belong to an object and to none; add all of them with add_object, or none");
  if (!versions.emplace(static_cast<std::uint32_t>(version), std::move(handler)).second)
    raise(errc::invalid_argument, "durable engine: there is a handler '" + std::string(name) +
                                      "' of version " + std::to_string(version) + " already");
  if (!open_) return;
  for (auto& [number, run] : runs_)
    if (run.state == durable::run_state::blocked && run.live == nullptr && run.handler() == name)
      resume(run);
}

const handler_base* engine_core::code_of(const durable_run& run) const {
  const auto versions = handlers_.find(run.handler());
  if (versions == handlers_.end()) return nullptr;
  const auto found = versions->second.find(run.version);
  return found == versions->second.end() ? nullptr : found->second.get();
}

std::uint32_t engine_core::newest_version(std::string_view handler) const {
  const auto versions = handlers_.find(handler);
  return versions == handlers_.end() ? 0 : versions->second.rbegin()->first;
}

const handler_base* engine_core::newest_code(std::string_view handler) const {
  const auto versions = handlers_.find(handler);
  return versions == handlers_.end() ? nullptr : versions->second.rbegin()->second.get();
}

// ------------------------------------------------------------------ starting

engine_core::known_run engine_core::find_known(std::string_view id) const {
  if (durable_run* const known = by_id_.find(id))
    return {known, {}, known->id.str(), known->handler()};
  return ended_with_id(id);
}

engine_core::known_run engine_core::attached(const run_request& request) const {
  if (!request.id.empty())
    if (known_run found = find_known(request.id)) return found;
  if (request.idempotency.empty()) return {};
  const std::string scoped = scoped_idempotency(request.key, request.idempotency);
  const auto known = by_idempotency_.find(idempotency_key(request.handler, scoped));
  if (known != by_idempotency_.end())
    return {known->second, {}, known->second->id.str(), known->second->handler()};
  return ended_with_key(request.handler, scoped);
}

errc engine_core::refuses(const run_request& request, std::string& problem) {
  if (const known_run there = attached(request)) {
    if (there.handler == request.handler) {
      if (request.key.empty() || key_of(there) == request.key) return errc{};
      problem = "run '" + there.id + "' is one of another key than '" + request.key +
                "'; give another id";
      return errc::id_in_use;
    }
    problem = "run '" + there.id + "' is one of handler '" + there.handler + "', not of '" +
              request.handler + "'; give another id";
    return errc::id_in_use;
  }
  const handler_base* const code = newest_code(request.handler);
  if (code == nullptr) {
    problem = "no handler '" + request.handler + "' was added to the durable engine on '" +
              setup_.path + "'";
    return errc::unknown_handler;
  }
  if (code->kind == handler_kind::plain && !request.key.empty()) {
    problem = "handler '" + request.handler + "' belongs to no object, so it takes no key";
    return errc::invalid_argument;
  }
  if (code->kind != handler_kind::plain && request.key.empty()) {
    problem = "handler '" + request.handler +
              "' belongs to an object; give the key of the object in the options";
    return errc::invalid_argument;
  }
  return errc{};
}

engine_core::begun engine_core::begin_run(run_request request) {
  require_open("start");
  std::string problem;
  if (const errc refused = refuses(request, problem); refused != errc{}) raise(refused, problem);
  if (const known_run there = attached(request)) {
    if (there.run == nullptr) return {there.id, 0, there.ended->number};
    return {there.id, there.run->start_lsn, there.run->number()};
  }
  require_room();
  const durable_run* made = start_run(request, 0, 0);
  require_running();
  return {made->id.str(), made->start_lsn, made->number()};
}

std::string engine_core::new_id() {
  for (;;) {
    std::string text("r-");
    const std::uint64_t number = host_.env().random();
    for (int bits = 60; bits >= 0; bits -= 4) text += "0123456789abcdef"[number >> bits & 15U];
    if (!find_known(text)) return text;
  }
}

engine_core::run_map::node_type engine_core::new_run(std::uint64_t number) {
  run_map one;
  return one.extract(one.try_emplace(number, *this, number).first);
}

durable_run& engine_core::make_run(std::uint64_t number, const start_record& from) {
  run_map::node_type node;
  if (spare_runs_.empty()) {
    node = new_run(number);
  } else {
    node = std::move(spare_runs_.back());
    spare_runs_.pop_back();
    node.key() = number;
    node.mapped().renew(number);
  }
  durable_run& made = node.mapped();
  describe(made, from);
  last_number_ = std::max(last_number_, number);
  runs_.insert(runs_.end(), std::move(node));
  if (from.kind != handler_kind::plain) enter_object(made, from);
  return made;
}

void engine_core::describe(durable_run& run, const start_record& from) {
  run.id = from.id;
  auto handler = handler_names_.find(from.handler);
  if (handler == handler_names_.end()) handler = handler_names_.emplace(from.handler).first;
  run.handler_name = &*handler;
  run.version = from.version;
  run.seed = from.seed;
  run.started = from.at;
  run.begins = from.begins;
  run.parent = from.parent;
  run.idempotency = from.scoped_idempotency();
}

void engine_core::add_to_index(durable_run& run) {
  by_id_.add(run);
  if (!run.idempotency.empty())
    by_idempotency_.emplace(idempotency_key(run.handler(), run.idempotency), &run);
}

void engine_core::remove_from_index(durable_run& run) {
  by_id_.remove(run.id);
  if (run.idempotency.empty()) return;
  const auto known = by_idempotency_.find(idempotency_key(run.handler(), run.idempotency));
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

durable_run& engine_core::add_run(std::uint64_t number, const start_record& start,
                                  journal::appended at, std::uint64_t bytes) {
  forget_predecessors(start);
  durable_run& run = make_run(number, start);
  add_to_index(run);
  run.start_place = at.place;
  run.start_lsn = run.depends = at.lsn;
  run.bytes = bytes;
  starting_.push_back(&run);
  resume(run);
  return run;
}

start_record engine_core::new_start(const run_request& request, const std::string& id) {
  start_record start;
  start.at = start.begins = wall_now();
  start.seed = host_.env().random();
  start.version = newest_version(request.handler);
  start.id = id;
  start.handler = request.handler;
  start.key = request.key;
  start.idempotency = request.idempotency;
  start.input = request.input;
  start.kind = newest_code(request.handler)->kind;
  return start;
}

durable_run* engine_core::start_run(const run_request& request, std::uint64_t parent,
                                    std::uint64_t command) {
  const std::string made_id = request.id.empty() ? new_id() : request.id;
  start_record start = new_start(request, made_id);
  if (request.delay > duration::zero())
    start.begins = wall_time(
        saturating_add(time_point(start.at.time_since_epoch()), request.delay).time_since_epoch());
  start.parent = parent;
  start.parent_command = command;
  payload_writer payload;
  start.write(payload);
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::run_start);
  head.flags = static_cast<std::uint16_t>(start.kind);
  head.run = last_number_ + 1;
  const journal::appended at = append_start(head, payload);
  if (at.lsn == never_durable) return nullptr;
  return &add_run(head.run, start, at, bytes_in_log(payload.view().bytes));
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
