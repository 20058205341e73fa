// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace weir::detail {

/// Prints what happened and the dump of this thread's loop to stderr, then aborts. For misuse that
/// cannot be reported as an error, because it is found in a destructor.
[[noreturn]] void fatal(std::string_view what) noexcept;

}  // namespace weir::detail
