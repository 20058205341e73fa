// SPDX-License-Identifier: MIT
// Readable function names, from what compilers write.
#pragma once

#include <string>
#include <string_view>

namespace weir::detail {

/// The name without return type, parameters, template arguments and qualifiers; a lambda is
/// `name()::lambda`. At most 120 bytes, keeping the end. Understands the formats of g++ and clang.
std::string short_function_name(std::string_view pretty);

/// A type without template arguments.
std::string short_type_name(std::string_view pretty);

/// Whether it is a function of weir, which is of no use in a chain of awaits. Allocates nothing.
bool is_own_function(std::string_view pretty) noexcept;

}  // namespace weir::detail
