// SPDX-License-Identifier: MIT
// Payloads that are too large for the log: each in a file of its own, named by its SHA-256.
//
// Ensures: a blob lasts before the record that names it is written, so a record that was read has
// its blob, or the journal is damaged. The same content is the same file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "durable/journal_files.hpp"

namespace weir::detail {

inline constexpr std::size_t blob_name_bytes = 40;

/// What a record keeps of a payload that is a blob.
struct blob_name {
  std::array<unsigned char, 32> hash{};
  std::uint64_t bytes = 0;

  bool operator==(const blob_name&) const = default;
};

blob_name name_blob(std::string_view content);
std::array<char, blob_name_bytes> encode(const blob_name& name) noexcept;
/// nullopt if it has another length.
std::optional<blob_name> decode_blob_name(std::string_view payload) noexcept;
/// blob/<64 hex digits>
std::string blob_path(const journal_files& files, const blob_name& name);

void write_blob(const journal_files& files, const blob_name& name, std::string_view content);
/// A blob that is missing or has another content is errc::journal_corrupt.
void read_blob(const journal_files& files, const blob_name& name, std::string& into);

}  // namespace weir::detail
