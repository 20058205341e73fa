// SPDX-License-Identifier: MIT
// The words that HTTP is made of: tokens, lists, numbers, percent-encoding, targets and paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::detail {

/// Why a message is refused: what a server answers, and why. Converts to true if it is.
struct http_fault {
  int status = 0;
  const char* text = "";

  explicit operator bool() const noexcept { return status != 0; }
};

/// 0 to 15; -1 if it is none.
int http_hex_digit(char c) noexcept;
bool is_http_token(std::string_view text) noexcept;
/// Visible characters, bytes from 128 on, spaces and tabs.
bool is_http_value(std::string_view text) noexcept;
bool same_ignoring_case(std::string_view a, std::string_view b) noexcept;
/// Has only characters of a host and a port.
bool is_http_host(std::string_view text) noexcept;
/// Without spaces and tabs at both ends.
std::string_view trim_http(std::string_view text) noexcept;
/// Whether a comma-separated list has this member.
bool http_list_has(std::string_view list, std::string_view member) noexcept;
/// Digits only, at least one; empty if there is anything else, or if it exceeds 64 bits.
std::optional<std::uint64_t> plain_digits(std::string_view text) noexcept;

/// Replaces `%41` by `A`, and, if `plus`, `+` by a space. Empty if a `%` is not followed by two
/// hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text, bool plus = false);

/// A request target in its parts, as sent. They are views of the target.
struct http_target {
  std::string_view path;       // "*", or begins with "/"
  std::string_view query;      // without the "?"
  std::string_view authority;  // of an absolute target
};
/// Takes a request target to pieces: "/path?query", "http://host/path?query", "*" for OPTIONS,
/// "host:port" for CONNECT (all parts are empty then).
http_fault split_target(std::string_view method, std::string_view target, http_target& into);

/// Decodes a path once and removes its dot segments, encoded ones too; an encoded slash stays as it
/// was sent. `segments` are those that are left, as sent: views of `raw`. Refused: a bad `%`, a
/// NUL, a `..` above the root.
http_fault normalize_path(std::string_view raw, std::string& path,
                          std::vector<std::string_view>& segments);

/// The decoded value of the first `key` in a query; a key without `=` is empty. REQUIRES: the
/// percent-encoding was checked.
std::optional<std::string> query_value(std::string_view query, std::string_view key);

}  // namespace weir::detail
