// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/cancel_reason.hpp>
#include <weir/duration.hpp>

namespace weir {

/// An event of a loop: see docs/events.md.
struct event_info {
  std::string_view name;
  std::string_view object;
  std::uint64_t number;
  time_point when;
  scope_id scope;
  std::exception_ptr error;  ///< why it happened; null if the event has no error
};

/// The same, owned.
struct event_record {
  std::string name;
  std::string object;
  std::uint64_t number;
  time_point when;
  scope_id scope;
  std::exception_ptr error;
};

struct event_log {
  std::vector<event_record> events;  ///< oldest first
  std::uint64_t dropped = 0;         ///< older events that were overwritten
};

/// The last events of the current loop. Outside a fiber: errc::no_current_fiber. In a durable run,
/// outside of steps, this and `on_event`: errc::not_journaled.
event_log recent_events();

/// Selects the events of every loop of the process; see `on_event`.
struct all_loops_t {
  explicit all_loops_t() = default;
};
inline constexpr all_loops_t all_loops{};

}  // namespace weir

#include <weir/detail/core/loop_events.hpp>

namespace weir {

/// Watches the events of the current loop for as long as the returned object lives. `fn(const
/// event_info&)` is called synchronously where the event happens and must not change weir's state;
/// if it throws, the error is ignored and counted (event `observer_failed`).
template <class F>
[[nodiscard]] auto on_event(F&& fn) {
  return std::make_unique<detail::event_function<std::decay_t<F>>>(std::forward<F>(fn));
}

/// Watches the events of every loop of the process, including loops that start later. `fn` is
/// called on the loop where the event happens, from several threads at once, under the same rules.
/// Threads: any, also outside loops; the returned object may be destroyed on any thread, and its
/// destructor waits for calls running on other threads.
template <class F>
[[nodiscard]] auto on_event(all_loops_t, F&& fn) {
  return std::make_unique<detail::process_watch>(
      std::make_shared<detail::process_function<std::decay_t<F>>>(std::forward<F>(fn)));
}

}  // namespace weir
