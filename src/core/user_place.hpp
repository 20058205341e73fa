// SPDX-License-Identifier: MIT
// Which line of the user's code is running, for errors and reports.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace weir::detail {

struct strand;

/// Whether a source file belongs to the library and is therefore not shown to users.
bool is_library_file(std::string_view file) noexcept;
/// The file and line of the user's code where a strand is, or of the last await before that; line 0
/// if that is unknown.
std::source_location user_place(const strand& s) noexcept;
/// The same for the running code.
std::source_location running_user_place() noexcept;
/// The same as texts.
std::string place_in(const strand& s);
std::string running_place();

}  // namespace weir::detail
