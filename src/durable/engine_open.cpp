// SPDX-License-Identifier: MIT
// The lifetime of an engine: recovery, service, shutdown.
#include "durable/engine_core.hpp"

#include <weir/context.hpp>
#include <weir/time.hpp>

#include "core/cancel_tree.hpp"
#include "durable/journal_error.hpp"
#include "durable/journal_files.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t runs_at_a_time = 1024;
constexpr std::size_t places_at_first = 8;
constexpr std::size_t spare_places_max = 64;

/// In a simulation the ids of awakeables must be the same in every run and differ between journals;
/// otherwise the system's generator makes an unguessable secret.
std::array<unsigned char, 16> drawn_secret(environment& env, std::string_view path) {
  std::array<unsigned char, 16> secret{};
  for (std::size_t i = 0; i < secret.size(); i += 8) {
    const std::uint64_t drawn = env.random() ^ digest_of(path);
    for (std::size_t k = 0; k < 8; ++k) secret[i + k] = static_cast<unsigned char>(drawn >> 8 * k);
  }
  return secret;
}

}  // namespace

void engine_core::open() {
  if (current_run != nullptr) refuse_in_run("a durable::engine");
  require_process("open");
  if (ended_ || closing_.is_set())
    raise(errc::not_open,
          "open: the durable engine on '" + setup_.path + "' is closed; make another one");
  if (opened_)
    raise(errc::already_open,
          "open: the durable engine on '" + setup_.path + "' was opened before; make another one");
  journal_options options;
  options.path = setup_.path;
  options.segment_bytes = static_cast<std::uint64_t>(setup_.segment_bytes);
  options.sync = setup_.sync;
  options.disk = setup_.disk;
  if (host_.env().simulated()) options.secret = drawn_secret(host_.env(), setup_.path);
  auto opened = std::make_unique<journal>(std::move(options));
  seen_.resize(runs_at_a_time);
  try {
    opened->open(*this);
    writer_ = commit_writer::make(*this, *opened, host_);
  } catch (...) {
    by_id_.clear();
    by_idempotency_.clear();
    runs_.clear();
    forget_recovery();
    throw;
  }
  journal_ = std::move(opened);
  opened_ = open_ = true;
  recovered();
}

// ------------------------------------------------------------------ recovery

void engine_core::see(const record_head& head, std::string_view payload, std::uint64_t lsn,
                      record_place place) {
  if (!is_record_type(head.type))
    raise_corrupt(setup_.path + "/" + segment_name(segment_of(place)), offset_of(place),
                  "a record of type " + std::to_string(head.type) +
                      ", which this version of weir does not know; open the journal with the "
                      "version that wrote it");
  const auto type = static_cast<record_type>(head.type);
  if (type == record_type::run_start) return see_start(head, payload, lsn, place);
  durable_run* const found = seen(head.run);
  if (found == nullptr)
    raise(errc::journal_corrupt, "the journal '" + setup_.path + "' has record " +
                                     std::to_string(lsn) + " of run " + std::to_string(head.run) +
                                     ", which it does not start");
  durable_run& run = *found;
  if (type == record_type::run_end) return see_end(run, head, payload, lsn, place);
  run.places.push_back(place);
  if (steers(type)) run.depends = lsn;
  if (type != record_type::cancel && type != record_type::signal) run.begun = true;
  if (type == record_type::cancel) {
    run.cancel_asked = true;
    if (head.index != 0) run.caller_asked = true;
  }
  if (type == record_type::resolved) run.resolved.insert(command_key(head.fiber, head.index));
}

void engine_core::see_start(const record_head& head, std::string_view payload, std::uint64_t lsn,
                            record_place place) {
  durable_run& run = make_run(head.run, start_record::read(payload));
  run.start_place = place;
  run.start_lsn = run.depends = lsn;
  if (spare_places_.empty()) {
    run.places.reserve(places_at_first);
  } else {
    run.places = std::move(spare_places_.back());
    spare_places_.pop_back();
  }
}

// The log interleaves the records of a few hundred runs at a time, not of all: a small cache
// suffices.
durable_run* engine_core::seen(std::uint64_t number) noexcept {
  durable_run*& kept = seen_[number % seen_.size()];
  if (kept == nullptr || kept->number() != number) kept = find(number);
  return kept;
}

void engine_core::forget_recovery() noexcept {
  seen_ = {};
  spare_places_ = {};
}

void engine_core::see_end(durable_run& run, const record_head& head, std::string_view payload,
                          std::uint64_t lsn, record_place place) {
  run.end_lsn = lsn;
  run.end_place = place;
  run.final = true;
  if (run.places.capacity() <= spare_places_max) {
    run.places.clear();
    spare_places_.push_back(std::move(run.places));
  }
  run.places = {};
  run.resolved = {};
  switch (static_cast<command_answer::kind>(head.flags & 0xffU)) {
    case command_answer::kind::value:
      run.state = durable::run_state::completed;
      return;
    case command_answer::kind::cancelled:
      run.state = durable::run_state::cancelled;
      break;
    default:
      run.state = durable::run_state::failed;
  }
  run.message = answer_record::read(payload).text;
}

void engine_core::recovered() {
  forget_recovery();
  by_id_.reserve(runs_.size());
  for (const auto& [number, run] : runs_) {
    add_to_index(*run);
    if (run->ended()) continue;
    resume(*run);
    if (!run->resuming) continue;  // delayed: not begun yet
    run->recovering = true;
    ++to_recover_;
  }
  arm_alarm();
}

// ------------------------------------------------------------------ service and shutdown

// Steps are children of the inner scope; the rest of the engine is shut down after they have ended.
task<> engine_core::serve() {
  const std::shared_ptr<engine_core> self = shared_from_this();
  this_context().defer([self]() -> task<> { return self->shut_down(); });
  scope_options how;
  how.name = "durable steps";
  how.failure = failure::isolate;
  struct leave_steps {
    engine_core& of;
    ~leave_steps() { of.steps_ = nullptr; }
  };
  auto body = [this](scope& s) -> task<> {
    const leave_steps at_the_end{*this};
    steps_ = &s;
    begun_.set();
    co_await closing_.wait();
    s.cancel(cancel_reason(cancel_kind::scope_ended, "the durable engine was closed"));
    co_await yield();
  };
  const outcome<void> ended = co_await settle(with_scope(how, body));
}

// Everything acknowledged is already on the disk: an error here only loses the proof of a clean
// close.
void engine_core::close_journal() noexcept {
  try {
    journal_->close();
  } catch (...) {
    host_.emit("journal_close_failed", setup_.path);
  }
}

task<> engine_core::shut_down() {
  shutting_down_ = true;
  if (stalled_ != nullptr) look_for_room();
  while (running() && journal_ != nullptr && journal_->durable_lsn() < journal_->last_lsn()) {
    flush();
    if (!running()) break;
    const outcome<void> written = co_await settle(durable(journal_->last_lsn()));
    if (!written.is_value()) break;
  }
  if (running() && journal_ != nullptr) finish_durable_runs();
  open_ = false;
  if (alarm_.armed()) host_.cancel_deadline(alarm_);
  if (room_clock_.armed()) host_.cancel_deadline(room_clock_);
  stalled_.reset();
  for (const auto& [number, run] : runs_) {
    if (run->live != nullptr) run->evict("the durable engine was closed");
    wake_askers(*run);
  }
  forget_timers();
  ready_.clear();
  resuming_.clear();
  parked_.clear();
  waiting_steps_.clear();
  starting_.clear();
  if (journal_ != nullptr) wake_durable();
  writer_.reset();
  looked_for_room_.set();  // the writer's last result was dropped: wake the callers
  if (journal_ != nullptr) close_journal();
  journal_.reset();
  events_.close();
  host_.env().remove_watch(alarm_);
  pump_.reset();
  flusher_.reset();
  ended_ = true;
}

}  // namespace weir::detail
