// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weir {

/// Overflow policy: what happens when a container is full. A policy that an object does not support
/// is errc::invalid_argument.
enum class overflow : std::uint8_t {
  wait,          ///< the producer waits for room
  reject,        ///< the item is refused, and nothing changes
  drop_oldest,   ///< the oldest item makes room
  drop_newest,   ///< the new item is dropped
  conflate,      ///< only the latest item is kept
  disconnect,    ///< the slow consumer is cut off
  fail_emitter,  ///< the producer gets an error
  stop,          ///< the object stops
};

namespace detail {

/// Throws errc::invalid_argument and lists the supported policies.
[[noreturn]] void raise_overflow(const char* object, overflow given, const char* supported);

}  // namespace detail
}  // namespace weir
