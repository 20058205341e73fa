// SPDX-License-Identifier: MIT
// Part of <weir/error.hpp>, which includes it after the declarations it needs.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <weir/cancel_reason.hpp>

namespace weir {

namespace detail {

/// Destroys errors without recursion, however deep they nest.
void bury(std::vector<std::exception_ptr> dying) noexcept;
void bury(std::exception_ptr&& dying) noexcept;

/// Throws weir::error; out of line, to keep the many cold throw sites small.
[[noreturn]] void raise(errc code, const std::string& what);
[[noreturn]] void raise_no_current_fiber(const char* what);
[[noreturn]] void raise_cancelled(const cancel_reason& reason);

}  // namespace detail
}  // namespace weir
