// SPDX-License-Identifier: MIT
// `emit(b, value)`: publishes to a broadcast from code that must not wait, such as the handler of
// an agent. It owns nothing and uses the broadcast's home loop. What a subscriber missed is
// counted, so that it is seen in the agent's statistics and as an event.
#pragma once

#include <utility>

#include <weir/broadcast.hpp>

namespace weir {

namespace detail {

/// Counts an item that a subscriber missed: event `emit_dropped`, and the agent's `dropped`.
void count_missed_emit() noexcept;

}  // namespace detail

/// Publishes from a handler: `b.try_emit(value)`; dropped and refused items are counted.
template <class T, class V>
emit_result emit(broadcast<T>& b, V&& value) {
  const emit_result how = b.try_emit(T(std::forward<V>(value)));
  if (how != emit_result::delivered) detail::count_missed_emit();
  return how;
}

}  // namespace weir
