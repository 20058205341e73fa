// SPDX-License-Identifier: MIT
#pragma once

namespace weir::detail {

/// The key of the local that marks the body of a durable step; its value is the step_source.
extern const char step_mark;

}  // namespace weir::detail
