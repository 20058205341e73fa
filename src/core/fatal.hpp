// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace weir::detail {

/// Prints `what` and the dump of this thread's loop to stderr, then aborts. For misuse detected
/// where no error can be reported, such as in a destructor.
[[noreturn]] void fatal(std::string_view what) noexcept;

}  // namespace weir::detail
