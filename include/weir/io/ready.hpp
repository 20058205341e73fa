// SPDX-License-Identifier: MIT
// Waiting for the descriptors of other libraries.
#pragma once

#include <weir/detail/io/ready_wait.hpp>

namespace weir {

/// Waits until the descriptor can be read, or has hung up; it stays open meanwhile. A second reader
/// of one: errc::busy. A plain file, which is always ready: errc::invalid_argument.
[[nodiscard]] inline auto readable(int descriptor) {
  return detail::pending<detail::ready_wait>({descriptor, detail::io_side::read});
}
/// The same for writing.
[[nodiscard]] inline auto writable(int descriptor) {
  return detail::pending<detail::ready_wait>({descriptor, detail::io_side::write});
}

}  // namespace weir
