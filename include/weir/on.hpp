// SPDX-License-Identifier: MIT
#pragma once

#include <source_location>
#include <utility>

#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/toolkit/remote.hpp>
#include <weir/scope.hpp>

namespace weir {

/// Runs `op` on another loop, as a remote child of the caller: its value or error comes back; the
/// caller's cancellation, deadline and locals go with it. The caller waits until the other side has
/// ended, even when the caller is cancelled.
///
/// The caller's loop enforces the deadline: it cancels the operation when it is due. On the other
/// loop `context::deadline()` returns it, if both loops have the same clock.
///
/// Errors: errc::loop_gone if that loop has ended or ends before the operation does;
/// errc::not_journaled in a durable run, outside of steps. Threads: `op` runs on the other loop's
/// thread; it may capture by reference, because the caller waits. The result is moved across.
template <detail::operation Op>
auto on(loop_ref there, Op&& op, std::source_location site = std::source_location::current()) {
  using plain = detail::held_t<Op>;
  using value = detail::result_t<plain>;
  using wait_type = detail::remote_wait<value>;
  detail::require_no_run("on", {}, site);
  return detail::pending<wait_type>(
      typename wait_type::args(detail::make_remote<value, plain>(std::forward<Op>(op)), there));
}

template <detail::operation Op>
child<detail::result_t<Op>> scope::spawn_on(loop_ref there, Op&& op, spawn_options options,
                                            std::source_location site) {
  return spawn(weir::on(there, std::forward<Op>(op), site), options, site);
}

}  // namespace weir
