// SPDX-License-Identifier: MIT
// The engine itself: its options, its work strands, where and when it may be used.
#include "durable/engine_core.hpp"

#include "core/error.hpp"
#include "durable/payload_keys.hpp"
#include "toolkit/option.hpp"

namespace weir::detail {

namespace {

constexpr std::int64_t events_kept = 1024;

}  // namespace

engine_setup::engine_setup(const durable::engine_options& options)
    : path(options.path),
      max_resume(options.max_resume),
      retention(options.retention),
      sync(options.sync == durable::sync::always),
      segment_bytes(options.segment_bytes),
      disk(options.disk),
      keys(key_ring::make(options.encryption_key, options.old_keys)),
      max_live(options.max_live),
      report_blocked(options.report_blocked) {
  require_option(!path.empty(), "durable engine",
                 "path is empty; give the directory of the journal");
  require_option(max_resume > 0, "durable engine", "max_resume is not positive; give 1 or more");
  require_option(max_live > 0, "durable engine", "max_live is not positive; give 1 or more");
  require_option(retention >= duration::zero(), "durable engine",
                 "retention is negative; give 0 or more");
  require_option(segment_bytes >= 64 * 1024, "durable engine",
                 "segment_bytes is less than 64 KiB; give that or more");
}

engine_core::engine_core(engine_setup setup)
    : setup_(std::move(setup)),
      host_(require_fiber("durable::engine")),
      host_serial_(host_.serial()),
      host_name_(host_.own_door().name()),
      events_(events_kept),
      pump_(new work_strand(*this, &engine_core::work_on_runs, host_)),
      flusher_(new work_strand(*this, &engine_core::flush, host_)) {
  host_.env().add_watch(alarm_);
}

engine_core::~engine_core() {
  if (!ended_) host_.env().remove_watch(alarm_);
  if (alarm_.armed()) host_.cancel_deadline(alarm_);
  if (room_clock_.armed()) host_.cancel_deadline(room_clock_);
  if (forget_clock_.armed()) host_.cancel_deadline(forget_clock_);
  timers_.clear();
  runs_.clear();
  replaced_.clear();
  writer_.reset();
}

// ------------------------------------------------------------------ work strands

work_strand::work_strand(engine_core& engine, work what, loop& host) noexcept
    : engine_(engine), work_(what), host_(host) {
  top = host.root_scope();
}

void work_strand::wake() noexcept {
  if (!queued) host_.push(*this);
}

bool work_strand::begin_turn() noexcept {
  strand* const self = std::exchange(current, nullptr);
  (engine_.*work_)();
  current = self;
  return false;
}

void work_strand::drop(work_strand* s) noexcept { loop::free(*s); }

// ------------------------------------------------------------------ where and when it may be used

std::string engine_core::text_of_use(const char* what) const {
  return std::string(what) + ": the durable engine on '" + setup_.path + "'";
}

void engine_core::require_process(const char* what) const {
  if (process_.is_here()) return;
  raise_forked(text_of_use(what), "made");
}

void engine_core::require_here(const char* what) const {
  require_no_run("a durable::engine");
  if (ended_) return;  // in any process
  require_process(what);
  if (current_loop_serial() == host_serial_) return;
  raise(errc::wrong_loop, text_of_use(what) + " belongs to loop '" + host_name_ + "'");
}

void engine_core::require_open(const char* what) const {
  require_here(what);
  if (broken_) std::rethrow_exception(failure_);
  if (open_) return;
  raise(
      errc::not_open,
      text_of_use(what) + (opened_ || ended_ ? " is closed" : " is not open; await open() first"));
}

void engine_core::require_running() const {
  if (broken_) std::rethrow_exception(failure_);
}

durable_run* engine_core::find(std::uint64_t number) noexcept {
  const auto found = runs_.find(number);
  return found == runs_.end() ? nullptr : &found->second;
}

}  // namespace weir::detail
