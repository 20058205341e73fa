// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

/// The awakeable that an id stands for.
struct awakeable_ref {
  std::uint64_t run;
  std::uint64_t command;
};

/// An id that can be put into a URL and cannot be guessed: 24 bytes in base64url, of which the last
/// eight authenticate the others with the secret of the journal.
std::string awakeable_id(const awakeable_ref& of, const std::array<unsigned char, 16>& secret);
/// nullopt if this journal did not make the id.
std::optional<awakeable_ref> parse_awakeable_id(std::string_view id,
                                                const std::array<unsigned char, 16>& secret);

}  // namespace weir::detail
