// SPDX-License-Identifier: MIT
#pragma once

namespace weir::detail {

/// The key of the local that marks the body of a step.
extern const char step_key;

}  // namespace weir::detail
