// SPDX-License-Identifier: MIT
// The errors of a journal: one text for each kind, with the file and what to do.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include <weir/error.hpp>

namespace weir::detail {

/// Throws errc::journal_corrupt.
[[noreturn]] void raise_corrupt(const std::string& file, std::uint64_t offset,
                                const std::string& why);

/// Converts any error of a call on the journal's files: no space becomes errc::journal_full, errors
/// of weir stay unchanged, everything else becomes errc::journal_failed.
error journal_error(const std::string& directory, const std::exception_ptr& cause);

bool is_no_space(const std::exception& e) noexcept;

}  // namespace weir::detail
