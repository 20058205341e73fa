// SPDX-License-Identifier: MIT
// Payloads that are too large for the log: each in its own file, named by its SHA-256.
//
// Ensures: a blob is durable before the record that names it is written, so if the blob of a record
// is missing, the journal is damaged. Equal contents share one file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "durable/journal_files.hpp"

namespace weir::detail {

inline constexpr std::size_t blob_name_bytes = 40;

/// What a record stores of a payload that is in a blob.
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
/// nullopt if the length is wrong.
std::optional<blob_name> decode_blob_name(std::string_view payload) noexcept;
/// blob/<64 hex digits>
std::string blob_path(const journal_files& files, const blob_name& name);

/// Writes a blob in two steps. `draft_blob` does everything that can fail for lack of space, before
/// any record refers to the blob. It returns the path of an unfinished file, fully written and not
/// synced; `serial` distinguishes drafts of the same content. `finish_blobs` syncs drafts and
/// renames them to their names; those that have them are taken out of `drafts`. If there is no
/// space for a name it throws `no_room` and may be called again with the rest.
struct blob_draft {
  blob_name name;
  std::string path;
};
std::string draft_blob(const journal_files& files, const blob_name& name, std::string_view content,
                       std::uint64_t serial);
void finish_blobs(const journal_files& files, std::vector<blob_draft>& drafts);
/// A blob that is missing or has another content is errc::journal_corrupt.
void read_blob(const journal_files& files, const blob_name& name, std::string& into);

}  // namespace weir::detail
