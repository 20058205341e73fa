// SPDX-License-Identifier: MIT
// URLs of http and https, read strictly: what two readers could understand differently is refused.
//
// Accepted: "http" or "https" (any case), a host (a name, an IPv4 address, or an IPv6 address in
// brackets), perhaps a port from 1 to 65535, a path, a query, and a fragment, which is not sent.
// Refused: user info, an empty host, control characters, spaces, backslashes, bytes beyond ASCII,
// and a `%` without two hexadecimal digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

struct http_url {
  bool tls = false;
  std::string host;  // as given, without brackets
  int port = 80;
  std::string target;  // path and query: "/a?b"

  /// "http://host:port", in lower case: what connections are kept for.
  std::string origin() const;
  /// The value of a `host` field: with brackets, without a default port.
  std::string authority() const;
  /// "http://host/path?query", for errors.
  std::string str() const;
  bool same_host(const http_url& other) const noexcept;
  bool same_origin(const http_url& other) const noexcept {
    return tls == other.tls && port == other.port && same_host(other);
  }
};

/// Throws errc::invalid_argument, naming the URL.
http_url parse_url(std::string_view text);
/// What a `location` means that came from `base`; empty if it cannot be followed.
std::optional<http_url> resolve_location(const http_url& base, std::string_view location);

}  // namespace weir::detail
