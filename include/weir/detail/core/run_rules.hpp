// SPDX-License-Identifier: MIT
// What a durable run may use. Every refusal is decided and worded here and in run_rules.cpp; other
// files ask with one call.
//
// A replay must find everything that a run uses as it was the first time. Therefore:
// 1. What a run waits for is local to its loop, or journaled (`wait::fits_run`): require_fits_run,
//    asked wherever a strand parks.
// 2. What belongs to a loop (queues, locks, governors, scopes, futures) belongs to the run's own
//    inner loop: require_same_run, asked when the home check fails.
// 3. What has no home but state of its own (shared governors, breakers, budgets, tokens) was
//    created by the run itself, in its present life: made_in_run.
// 4. What other threads take part in (channels, agents, pools, loop_refs, engines, ...) is never
//    used: require_no_run.
// 5. Journaled operations are called by the run itself, not in its steps: run_outside_step and
//    require_run.
// Conversely, only a run uses what it created (2, 3). Rules 1 to 4 raise errc::not_journaled, rule
// 5 errc::inside_step or errc::not_durable. Steps are not part of the run: in them `current_run` is
// null, and everything from outside is allowed.
//
// Costs: while no run is current, one test or comparison; the rest is out of line.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#include <weir/detail/core/home.hpp>
#include <weir/error.hpp>

namespace weir::detail {

class wait;

/// Whether `code` reports a broken rule: a programming error, which another attempt would repeat.
constexpr bool is_refusal(errc code) noexcept {
  return code == errc::inside_step || code == errc::not_journaled;
}

// ------------------------------------------------------------------ waits

/// Refuses a wait that a replay could not reproduce. REQUIRES: current_run.
void check_fits_run(const wait& w);
inline void require_fits_run(const wait& w) {
  if (current_run != nullptr) [[unlikely]]
    check_fits_run(w);
}

// ------------------------------------------------------------------ objects of a loop

/// Refuses an object of the loop numbered `home` if that loop, or the running one, belongs to a
/// durable run. REQUIRES: `home` is not the running loop.
void require_same_run(std::uint32_t home, const std::string& what);
/// The same refusal, unconditionally.
[[noreturn]] void raise_other_run(const std::string& what);

// ------------------------------------------------------------------ objects without a home

/// The durable run, if any, that created an object without a home. Only that run may use it, and a
/// run may use only its own.
///
/// A run is identified by its current life in memory: objects of an earlier life do not belong to
/// it either.
class made_in_run {
 public:
  made_in_run() noexcept : serial_(run_serial) {}
  made_in_run(const made_in_run&) = delete;
  made_in_run& operator=(const made_in_run&) = delete;

  /// The quick check before each use; if it fails, call `refuse`.
  bool is_here() const noexcept { return serial_ == run_serial; }
  [[noreturn]] void refuse(const object_name& whose) const;
  void require_here(const object_name& whose) const {
    if (!is_here()) [[unlikely]]
      refuse(whose);
  }
  /// Refuses an object of a run that is given to a step.
  void require_for_step(const char* kind) const;
  /// The number of the run's inner loop; 0: not created by a run.
  std::uint32_t serial() const noexcept { return serial_; }

 private:
  std::uint32_t serial_;
};

// ------------------------------------------------------------------ objects of several threads

/// `site`, if known, is the line of the use. REQUIRES: current_run.
[[noreturn]] void refuse_in_run(const char* kind, std::string_view name, std::source_location site);

/// The check of objects that can never belong to a run. A run that is being destroyed is exempt:
/// nothing it does has an effect outside.
inline void require_no_run(const char* kind, std::string_view name = {},
                           std::source_location site = {}) {
  if (current_run != nullptr && !crashing) [[unlikely]]
    refuse_in_run(kind, name, site);
}
/// The same for each use of an object, whose name is determined only if it is refused.
template <class T>
void require_no_run_for(const char* kind, const T& object) {
  if (current_run != nullptr) [[unlikely]]
    require_no_run(kind, object.name());
}

// ------------------------------------------------------------------ journaled operations

/// The key of the local that marks the body of a durable step; its value is the step_source.
extern const char step_mark;

/// The run of the running code, null outside of runs. Inside a step: errc::inside_step.
run_seam* run_outside_step(const char* what);
/// The same, but errc::not_durable outside of runs.
run_seam& require_run(const char* what);
/// The same, but errc::no_object outside the handlers of objects, also outside of runs.
run_seam& require_object(const char* what);
/// Throws errc::no_object.
[[noreturn]] void raise_no_object(const char* what);
/// The same, but errc::not_journaled in a run other than the one that created the awakeable.
run_seam& require_run_of_awakeable(const run_seam* creator);
/// Throws errc::not_durable: `what` is for the bodies of steps.
[[noreturn]] void raise_outside_step(const char* what);

}  // namespace weir::detail
