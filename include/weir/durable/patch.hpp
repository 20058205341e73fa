// SPDX-License-Identifier: MIT
// A change of a handler's code that runs begun before it do not take.
#pragma once

#include <source_location>
#include <string_view>

namespace weir {

/// Whether the run takes the branch that was added under this id:
///
///     if (weir::patch("charge in euros"))
///       co_await weir::step("charge in euros", ...);
///     else
///       co_await weir::step("charge", ...);
///
/// True if the run gets here for the first time, which is recorded, or has recorded it before.
/// False if it is replayed and was past this place before the code had this call: its journal is
/// then repeated unchanged. The first answer for an id is valid for the whole run, in all its
/// fibers. When the last run that gets false has ended, the call and the old branch may be removed.
/// Outside of durable runs: true. Errors: errc::inside_step in a step.
bool patch(std::string_view id, std::source_location site = std::source_location::current());

}  // namespace weir
