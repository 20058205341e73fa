// SPDX-License-Identifier: MIT
// Which line of the user's code is running, for errors and reports.
#pragma once

#include <string>
#include <string_view>

namespace weir::detail {

struct strand;

/// Whether a source file belongs to the library and is therefore not shown to users.
bool is_library_file(std::string_view file) noexcept;
/// The file and line of the user's code where a strand is, or of the last await before that.
std::string place_in(const strand& s);
/// The same for the running code.
std::string running_place();

}  // namespace weir::detail
