// SPDX-License-Identifier: MIT
// What the error sites of the library share; `raise` is in <weir/detail/core/error.hpp>.
#pragma once

#include <exception>
#include <string>

#include <weir/error.hpp>

namespace weir::detail {

/// The error that `raise` would throw.
std::exception_ptr make_error(errc code, const std::string& what);
errc errc_of(const error& e) noexcept;
/// Its `what()`, which may be null in classes of users: then a text that says so.
const char* what_of(const std::exception& e) noexcept;

/// "loop 'main'", or "a thread without a loop".
std::string running_loop_text();
/// Throws errc::wrong_loop: another thread did `what` to a simulated loop.
[[noreturn]] void raise_outside_simulation(const std::string& what);
/// Throws errc::wrong_loop: `what` was used in a forked child.
[[noreturn]] void raise_forked(const std::string& what, const char* maker);

}  // namespace weir::detail
