// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::detail {

/// Throws std::system_error: `<call> '<path>'<where>: <what the errno means>`.
[[noreturn]] void raise_disk(int error, std::string_view call, std::string_view path,
                             std::string_view where = {});

/// For `where`: " at 4096" and " to 4096".
std::string at_offset(std::uint64_t offset);
std::string to_size(std::uint64_t size);

[[noreturn]] void raise_disk_locked(std::string_view path);

}  // namespace weir::detail
