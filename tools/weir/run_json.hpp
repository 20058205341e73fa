// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "run_index.hpp"

namespace weir_tool {

/// A run as one JSON object, without a line feed.
std::string run_json(const run_entry& run, const run_index& index);

}  // namespace weir_tool
