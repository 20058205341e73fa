// SPDX-License-Identifier: MIT
#include "io/http_url.hpp"

#include <algorithm>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <weir/error.hpp>

#include "io/http_text.hpp"

namespace weir::detail {

namespace {

constexpr int default_port(bool tls) noexcept { return tls ? 443 : 80; }

bool is_url_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Empty, or why it is not a part of a URL.
const char* fault_of_characters(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c <= ' ' || c == 0x7f) return "it has a space or control character; encode it";
    if (c > 0x7f) return "it has a character beyond ASCII; encode it";
    if (c == '\\') return "it has a backslash; encode it";
    if (c == '%' && (i + 2 >= text.size() || http_hex_digit(text[i + 1]) < 0 ||
                     http_hex_digit(text[i + 2]) < 0))
      return "a % is not followed by two hexadecimal digits";
  }
  return nullptr;
}

bool is_host_name(std::string_view host) noexcept {
  return !host.empty() && host.size() <= 253 && host.front() != '.' && host.front() != '-' &&
         host.find("..") == host.npos && std::all_of(host.begin(), host.end(), [](char c) {
           return is_url_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                  c == '.' || c == '_';
         });
}

/// Reads "host", "host:port", "[::1]:port". Returns null, or why not.
const char* read_authority(std::string_view text, http_url& into) {
  if (text.find('@') != text.npos) return "it has user info; send an authorization header";
  std::string_view port;
  if (!text.empty() && text.front() == '[') {
    const std::size_t end = text.find(']');
    if (end == text.npos) return "a bracket is not closed";
    into.host = text.substr(1, end - 1);
    in6_addr room;
    if (::inet_pton(AF_INET6, into.host.c_str(), &room) != 1)
      return "what is in brackets is not an IPv6 address";
    port = text.substr(end + 1);
  } else {
    const std::size_t colon = text.find(':');
    into.host = text.substr(0, colon);
    if (!is_host_name(into.host)) return "it has no valid host";
    port = colon == text.npos ? "" : text.substr(colon);
  }
  into.port = default_port(into.tls);
  if (port.empty()) return nullptr;
  if (port.front() != ':') return "something follows the address in brackets";
  const auto number = plain_digits(port.substr(1));
  if (!number || *number < 1 || *number > 65535) return "its port is not from 1 to 65535";
  into.port = static_cast<int>(*number);
  return nullptr;
}

/// Behind the authority. REQUIRES: the characters were checked.
std::string target_of(std::string_view text) {
  text = text.substr(0, text.find('#'));
  std::string target(text);
  if (target.empty() || target.front() == '?') target.insert(0, "/");
  return target;
}

/// Returns null, or why not.
const char* read_url(std::string_view text, http_url& into) {
  if (const char* fault = fault_of_characters(text)) return fault;
  const std::size_t colon = text.find("://");
  if (colon == text.npos) return "it does not begin with http:// or https://";
  const std::string_view scheme = text.substr(0, colon);
  into.tls = same_ignoring_case(scheme, "https");
  if (!into.tls && !same_ignoring_case(scheme, "http"))
    return "its scheme is neither http nor https";
  text.remove_prefix(colon + 3);
  const std::string_view authority = text.substr(0, text.find_first_of("/?#"));
  if (const char* fault = read_authority(authority, into)) return fault;
  into.target = target_of(text.substr(authority.size()));
  return nullptr;
}

/// RFC 3986, 5.2.4, for a path that begins with a slash; a `..` above the root stays there.
std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    if (segment == "..") out.resize(out.empty() ? 0 : out.rfind('/'));
    if (segment != "." && segment != "..") {
      out += '/';
      out += segment;
    } else if (path.empty()) {
      out += '/';
    }
  }
  return out;
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

}  // namespace

std::string http_url::origin() const {
  return (tls ? "https://" : "http://") + lower_case(host) + ":" + std::to_string(port);
}

std::string http_url::authority() const {
  std::string text = host.find(':') == host.npos ? host : "[" + host + "]";
  if (port != default_port(tls)) text.append(":").append(std::to_string(port));
  return text;
}

std::string http_url::str() const { return (tls ? "https://" : "http://") + authority() + target; }

bool http_url::same_host(const http_url& other) const noexcept {
  return same_ignoring_case(host, other.host);
}

http_url parse_url(std::string_view text) {
  http_url url;
  if (const char* fault = read_url(text, url))
    raise(errc::invalid_argument, "not a URL: '" + std::string(text) + "': " + fault);
  return url;
}

std::optional<http_url> resolve_location(const http_url& base, std::string_view location) {
  if (fault_of_characters(location) != nullptr) return std::nullopt;
  http_url url = base;
  const std::size_t mark = location.find_first_of("/?#");
  const std::string_view first = location.substr(0, mark);  // the scheme, or a segment
  if (first.find(':') != first.npos) {
    if (read_url(location, url) != nullptr) return std::nullopt;
    return url;
  }
  if (location.starts_with("//")) {
    const std::string whole = (base.tls ? "https:" : "http:") + std::string(location);
    if (read_url(whole, url) != nullptr) return std::nullopt;
    return url;
  }
  location = location.substr(0, location.find('#'));
  const std::string_view old_path = std::string_view(base.target).substr(0, base.target.find('?'));
  const std::string_view path = location.substr(0, location.find('?'));
  const std::string_view query = location.substr(path.size());
  if (path.empty()) {
    url.target = query.empty() ? base.target : std::string(old_path) + std::string(query);
  } else if (path.front() == '/') {
    url.target = without_dots(path) + std::string(query);
  } else {
    const std::string_view folder = old_path.substr(0, old_path.rfind('/') + 1);
    url.target = without_dots(std::string(folder) + std::string(path)) + std::string(query);
  }
  return url;
}

}  // namespace weir::detail
