// SPDX-License-Identifier: MIT
// Durable runs that start other runs.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include <weir/detail/durable/command.hpp>
#include <weir/durable/serde.hpp>
#include <weir/duration.hpp>
#include <weir/task.hpp>

namespace weir {

struct call_options {
  std::string_view id{};           ///< of the run; empty: derived from the calling run
  std::string_view key{};          ///< of the object, for a handler of an object
  std::string_view idempotency{};  ///< the same key on the same handler attaches to that run
};

struct send_options {
  duration delay{};  ///< from now until the run starts
  std::string_view id{};
  std::string_view key{};
};

}  // namespace weir

#include <weir/detail/durable/call.hpp>

namespace weir {

/// Runs another handler as a separate durable run, once across all crashes, and returns its result.
/// Its failure is a weir::terminal_error with its message. Cancels: the called run is cancelled,
/// and the caller continues unwinding when that run has ended.
template <class T = void, class In>
[[nodiscard]] auto call(std::string_view handler, const In& input, call_options options = {},
                        std::source_location site = std::source_location::current()) {
  return detail::make_call<T>(handler, detail::encode_given(input), options, site);
}
/// The same for a handler without input.
template <class T = void>
[[nodiscard]] auto call(std::string_view handler,
                        std::source_location site = std::source_location::current()) {
  return detail::make_call<T>(handler, detail::encode<void>(), {}, site);
}

/// Starts another handler as a separate durable run and returns its id without waiting for it.
template <class In>
task<std::string> send(std::string_view handler, const In& input, send_options options = {},
                       std::source_location site = std::source_location::current()) {
  return detail::begin_send(handler, detail::encode_given(input), options, site);
}
inline task<std::string> send(std::string_view handler,
                              std::source_location site = std::source_location::current()) {
  return detail::begin_send(handler, detail::encode<void>(), {}, site);
}

}  // namespace weir
