// SPDX-License-Identifier: MIT
// The lifetime of an engine: open, service, shutdown.
#include "durable/engine_core.hpp"

#include <weir/context.hpp>
#include <weir/time.hpp>

namespace weir::detail {

namespace {

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
  require_no_run("a durable::engine");
  require_process("open");
  if (ended_ || closing_.is_set())
    raise(errc::not_open, text_of_use("open") + " is closed; make another one");
  if (opened_)
    raise(errc::already_open, text_of_use("open") + " was opened before; make another one");
  journal_options options;
  options.path = setup_.path;
  options.segment_bytes = static_cast<std::uint64_t>(setup_.segment_bytes);
  options.sync = setup_.sync;
  options.disk = setup_.disk;
  options.keys = setup_.keys;
  if (host_.env().simulated()) {
    options.secret = drawn_secret(host_.env(), setup_.path);
    if (setup_.keys != nullptr) options.salt = drawn_secret(host_.env(), setup_.path);
  }
  auto opened = std::make_unique<journal>(std::move(options));
  prepare_recovery();
  try {
    opened->open(*this);
    writer_ = commit_writer::make(*this, *opened, host_);
  } catch (...) {
    by_id_.clear();
    by_idempotency_.clear();
    runs_.clear();
    past_.clear();
    objects_.clear();
    forget_recovery();
    throw;
  }
  journal_ = std::move(opened);
  secret_ = journal_->secret();
  opened_ = open_ = true;
  recovered();
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
  if (forget_clock_.armed()) host_.cancel_deadline(forget_clock_);
  stalled_.reset();
  for (auto& [number, run] : runs_) {
    if (run.live != nullptr) run.evict("the durable engine was closed");
    wake_askers(run);
  }
  for (auto& run : replaced_)
    if (run.mapped().live != nullptr) run.mapped().evict("the durable engine was closed");
  timers_.clear();
  ready_.clear();
  resuming_.clear();
  waiting_steps_.clear();
  starting_.clear();
  if (journal_ != nullptr) wake_durable();
  writer_.reset();
  compacted_.set();
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
