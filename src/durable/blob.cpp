// SPDX-License-Identifier: MIT
#include "durable/blob.hpp"

#include <openssl/evp.h>

#include <cstring>
#include <new>
#include <span>

#include "core/error.hpp"
#include "durable/journal_error.hpp"
#include "durable/little_endian.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t hash_bytes = 32;

std::string hex(const std::array<unsigned char, hash_bytes>& hash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * hash.size());
  for (const unsigned char b : hash) text.append({digits[b >> 4], digits[b & 15]});
  return text;
}

}  // namespace

std::size_t blob_name_hash::operator()(const blob_name& name) const noexcept {
  std::size_t part = 0;
  std::memcpy(&part, name.hash.data(), sizeof part);
  return part;
}

blob_name name_blob(std::string_view content) {
  blob_name name{.hash = {}, .bytes = content.size()};
  unsigned int size = 0;
  // It fails only if memory runs out.
  if (EVP_Digest(content.data(), content.size(), name.hash.data(), &size, EVP_sha256(), nullptr) !=
      1)
    throw std::bad_alloc();
  return name;
}

std::array<char, blob_name_bytes> encode(const blob_name& name) noexcept {
  std::array<char, blob_name_bytes> payload{};
  std::memcpy(payload.data(), name.hash.data(), hash_bytes);
  store(std::as_writable_bytes(std::span(payload)).data() + hash_bytes, name.bytes);
  return payload;
}

std::optional<blob_name> decode_blob_name(std::string_view payload) noexcept {
  if (payload.size() != blob_name_bytes) return std::nullopt;
  blob_name name;
  std::memcpy(name.hash.data(), payload.data(), hash_bytes);
  name.bytes = load<std::uint64_t>(std::as_bytes(std::span(payload)).data() + hash_bytes);
  return name;
}

std::string blob_path(const journal_files& files, const blob_name& name) {
  return files.path(blob_directory) + "/" + hex(name.hash);
}

std::string draft_blob(const journal_files& files, const blob_name& name, std::string_view content,
                       std::uint64_t serial) {
  const std::string directory = files.path(blob_directory);
  if (!files.disk->exists(directory)) {
    files.disk->make_directory(directory);
    files.sync_names(files.directory);
  }
  std::string path = blob_path(files, name);
  path.append(".").append(std::to_string(serial)).append(unfinished);
  const auto file = files.disk->open(path, open_mode::create);
  try {
    file->truncate(0);
    file->preallocate(content.size());
    write_all(*file, std::as_bytes(std::span(content)), 0);
  } catch (...) {
    (void)try_to_unlink(*files.disk, path);
    throw;
  }
  return path;
}

// Even if the file exists already: that one may not be durable.
void finish_blobs(const journal_files& files, std::vector<blob_draft>& drafts) {
  if (drafts.empty()) return;
  for (; !drafts.empty(); drafts.pop_back()) {
    const blob_draft& d = drafts.back();
    files.sync_file(*files.disk->open(d.path, open_mode::read_write));
    try {
      files.disk->rename(d.path, blob_path(files, d.name));
    } catch (const std::exception& e) {
      if (is_no_space(e)) throw no_room(what_of(e));
      throw;
    }
  }
  files.sync_names(files.path(blob_directory));
}

void read_blob(const journal_files& files, const blob_name& name, std::string& into) {
  const std::string path = blob_path(files, name);
  if (!files.disk->exists(path)) raise_corrupt(path, 0, "the blob is missing");
  const auto file = files.disk->open(path, open_mode::read);
  const std::uint64_t size = file->size();
  if (size != name.bytes)
    raise_corrupt(
        path, 0,
        "the blob has " + std::to_string(size) + " bytes instead of " + std::to_string(name.bytes));
  into.resize(static_cast<std::size_t>(size));
  read_exactly(*file, std::as_writable_bytes(std::span(into)), 0);
  if (name_blob(into) != name) raise_corrupt(path, 0, "the blob is not what its name says");
}

}  // namespace weir::detail
