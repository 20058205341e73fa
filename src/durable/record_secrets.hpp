// SPDX-License-Identifier: MIT
// Which parts of a payload are secret, for payloads that were written without a key.
#pragma once

#include <string_view>
#include <vector>

#include "durable/record.hpp"

namespace weir::detail {

/// Appends the parts that the engine would mark as secret if it wrote the record now; all of the
/// payload if its type is not known or it is not what its type says.
void find_secrets(const record_head& head, std::string_view payload,
                  std::vector<secret_part>& parts);

}  // namespace weir::detail
