// SPDX-License-Identifier: MIT
// Names of functions as compilers write them, for people.
#pragma once

#include <string>
#include <string_view>

namespace weir::detail {

/// The name without return type, parameters, template arguments and qualifiers; a lambda is
/// `name()::lambda`. At most 120 bytes, of which the last ones are kept. Knows the forms of g++ and
/// clang.
std::string short_function_name(std::string_view pretty);

/// A type without template arguments.
std::string short_type_name(std::string_view pretty);

/// Whether it is a function of weir: of no use to whoever reads a chain of awaits. Allocates
/// nothing.
bool is_own_function(std::string_view pretty) noexcept;

}  // namespace weir::detail
