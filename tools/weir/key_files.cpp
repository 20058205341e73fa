// SPDX-License-Identifier: MIT
#include "key_files.hpp"

#include <string.h>

#include <cstddef>
#include <exception>

#include <weir/error.hpp>
#include <weir/sim/disk.hpp>

namespace weir_tool {

namespace {

int digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// False if the text is not 64 hexadecimal digits.
bool from_hex(std::string_view text, std::string& key) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.size() != 2 * weir::detail::key_bytes) return false;
  key.assign(weir::detail::key_bytes, '\0');
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    key[i] = static_cast<char>(high * 16 + low);
  }
  return true;
}

[[noreturn]] void refuse_key(const std::string& name, const std::string& why) {
  weir::detail::raise(weir::errc::invalid_argument, "key file '" + name + "' " + why);
}

std::string read_key(const std::string& name) {
  std::string bytes(2 * weir::detail::key_bytes + 2, '\0');  // one more than the longest
  try {
    const auto file = weir::real_disk().open(name, weir::open_mode::read);
    bytes.resize(weir::read_up_to(*file, std::as_writable_bytes(std::span(bytes)), 0));
  } catch (const std::exception& e) {
    refuse_key(name, std::string("cannot be read: ") + e.what());
  }
  std::string key;
  const bool is_raw = bytes.size() == weir::detail::key_bytes;
  if (is_raw) key = bytes;
  const bool found = is_raw || from_hex(bytes, key);
  ::explicit_bzero(bytes.data(), bytes.size());
  if (!found) refuse_key(name, "does not hold a key: 32 bytes, or 64 hexadecimal digits");
  return key;
}

}  // namespace

key_files::key_files(const std::vector<std::string>& names) {
  keys_.reserve(names.size());
  for (const std::string& name : names) keys_.push_back(read_key(name));
}

key_files::~key_files() {
  for (std::string& key : keys_) ::explicit_bzero(key.data(), key.size());
}

std::string_view key_files::present() const noexcept {
  return keys_.empty() ? std::string_view() : std::string_view(keys_.front());
}

std::vector<std::string_view> key_files::old() const {
  return keys_.empty() ? std::vector<std::string_view>()
                       : std::vector<std::string_view>(keys_.begin() + 1, keys_.end());
}

std::shared_ptr<const weir::detail::key_ring> key_files::ring() const {
  const std::vector<std::string_view> others = old();
  return weir::detail::key_ring::make(present(), others);
}

}  // namespace weir_tool
