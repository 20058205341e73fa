// SPDX-License-Identifier: MIT
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/durable/command.hpp>
#include <weir/durable/serde.hpp>
#include <weir/local.hpp>
#include <weir/policy/retry.hpp>

namespace weir {

struct step_options {
  retry_options retry{};
};

}  // namespace weir

#include <weir/detail/durable/step.hpp>

namespace weir {

/// Runs `fn` (a plain function or one that returns a task, without arguments) and records its
/// result; a replay reads the result from the journal.
///
/// `fn` runs at least once, on the loop of the engine, outside the run: it may use everything
/// except the run's own objects. A weir::terminal_error is recorded and rethrown; any other error
/// is retried by `.retry`, and after the last attempt it becomes a terminal_error with its message.
/// An attempt that a crash interrupted is repeated and not counted. Outside a durable run it runs
/// `fn` by the same rules. Inside a step: errc::inside_step.
template <class F>
auto step(std::string_view name, F&& fn, step_options options = {},
          std::source_location site = std::source_location::current()) {
  return detail::make_step(detail::command_kind::step, "step", name, std::forward<F>(fn), options,
                           site);
}

/// In the body of a step: its idempotency key, to pass to the called service, so that a repeated
/// request takes effect once. The same for every attempt and after every crash, different for every
/// other step of every run. Outside durable runs it is the same for all attempts, and new for each
/// step.
///
/// Requires: the fiber of the body, or its children on the same loop; pass the text to other
/// threads
/// (`blocking`, `on`). Elsewhere errc::not_durable.
std::string step_key();

/// As step, but at most once: if a crash leaves unknown whether `fn` ran, it is not run again, and
/// the error is errc::outcome_unknown. By default errors are not retried either.
template <class F>
auto step_once(std::string_view name, F&& fn, step_options options = {.retry = {.attempts = 1}},
               std::source_location site = std::source_location::current()) {
  return detail::make_step(detail::command_kind::step_once, "step_once", name, std::forward<F>(fn),
                           options, site);
}

}  // namespace weir
