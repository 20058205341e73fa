// SPDX-License-Identifier: MIT
// A process that a scope owns.
//
// Its guard is a polite service of the scope: a fiber that feeds its input, waits for its end, and
// ends it when the scope asks. It is not cancelled but asked, so also a guard that has not run yet
// ends its process in order. A guard that is unwound all the same (the grace is over, the loop is
// deadlocked, or it never ran) has a `process_keeper` among its parameters, which kills and reaps.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <weir/event.hpp>
#include <weir/io/process.hpp>
#include <weir/scope.hpp>

#include "io/process_start.hpp"

namespace weir::detail {

class process_core final : public polite_service {
 public:
  process_core(started_process started, duration grace, std::optional<std::string> input) noexcept;

  /// Starts the process and its guard.
  static std::shared_ptr<process_core> start(scope& s, const io::command& what,
                                             const io::process_options& options, bool open_input);

  void ask_to_end() noexcept override { asked_.set(); }
  /// Its input ends after what was written.
  void close_input() noexcept;
  /// It is not guarded any more: kills it if it runs.
  void abandon() noexcept;

  child_process& child() noexcept { return *process_.child; }
  /// Null if it has no input to write to.
  stream_core* in() noexcept { return process_.in.get(); }
  stream_core& out() noexcept { return *process_.out; }
  stream_core& err() noexcept { return *process_.err; }
  /// Set when it was reaped, and what was left of its group was ended if that was asked.
  event& ended() noexcept { return ended_; }

 private:
  class keeper;
  static task<> guard(keeper k);
  task<> watch_over(scope& s);
  task<> feed();
  task<> end(scope& s);
  task<> await_group(time_point until);
  static task<> discard(stream_core& from);
  auto exited() { return pending<exit_wait>({process_.child.get()}); }

  started_process process_;
  duration grace_;
  std::optional<std::string> input_;
  event asked_;
  event ended_;
};

/// In a durable run: errc::not_journaled; in a simulation, and for bad options:
/// errc::invalid_argument.
void require_processes(const io::command& what, const io::process_options& options);

}  // namespace weir::detail
