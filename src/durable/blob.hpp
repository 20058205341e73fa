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
#include <span>
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

struct blob_name_hash {
  std::size_t operator()(const blob_name& name) const noexcept;
};

blob_name name_blob(std::string_view content);
std::array<char, blob_name_bytes> encode(const blob_name& name) noexcept;
/// nullopt if it has another length.
std::optional<blob_name> decode_blob_name(std::string_view payload) noexcept;
/// blob/<64 hex digits>
std::string blob_path(const journal_files& files, const blob_name& name);

/// Writes a blob in two parts. What can fail for want of space is done by `draft_blob`, before
/// anything refers to the blob: it gives the path of an unfinished file, which is all written and
/// not synced. `serial` tells drafts of the same content apart. `finish_blobs` makes drafts last,
/// under their names.
struct blob_draft {
  blob_name name;
  std::string path;
};
std::string draft_blob(const journal_files& files, const blob_name& name, std::string_view content,
                       std::uint64_t serial);
void finish_blobs(const journal_files& files, std::span<const blob_draft> drafts);
/// A blob that is missing or has another content is errc::journal_corrupt.
void read_blob(const journal_files& files, const blob_name& name, std::string& into);

}  // namespace weir::detail
