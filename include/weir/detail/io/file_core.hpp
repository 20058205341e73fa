// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

namespace weir::detail {

/// An open file, shared by its owner and the calls that run on it. In src/io/file_core.hpp.
class file_core;
using file_ref = std::shared_ptr<file_core>;

}  // namespace weir::detail
