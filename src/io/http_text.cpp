// SPDX-License-Identifier: MIT
#include "io/http_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::detail {

namespace {

enum http_class : unsigned char { token_char = 1, value_char = 2, target_char = 4, host_char = 8 };

constexpr std::array<unsigned char, 256> make_http_classes() {
  std::array<unsigned char, 256> table{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    unsigned flags = 0;
    if (letter ||
        std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos)
      flags |= token_char;
    if (c == '\t' || (c >= 0x20 && c != 0x7f)) flags |= value_char;
    if (c > 0x20 && c < 0x7f && c != '#') flags |= target_char;
    if (letter ||
        std::string_view("-._~%!$&'()*+;=:[]").find(static_cast<char>(c)) != std::string_view::npos)
      flags |= host_char;
    table[c] = static_cast<unsigned char>(flags);
  }
  table[0] = 0;
  return table;
}
constexpr std::array<unsigned char, 256> http_classes = make_http_classes();

bool all_of_class(std::string_view text, http_class wanted) noexcept {
  unsigned char common = wanted;
  for (const char c : text) common &= http_classes[static_cast<unsigned char>(c)];
  return common != 0;
}

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// The byte behind a `%` at `at`; -1 if it is none.
int encoded_byte(std::string_view text, std::size_t at) noexcept {
  if (at + 2 >= text.size()) return -1;
  const int high = http_hex_digit(text[at + 1]);
  const int low = http_hex_digit(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

http_fault check_percent(std::string_view text) noexcept {
  for (std::size_t at = text.find('%'); at != text.npos; at = text.find('%', at + 1))
    if (encoded_byte(text, at) < 0) return {400, "the target has a bad percent-encoding"};
  return {};
}

/// As percent_decoded for a path: an encoded slash stays encoded. False: it must be refused.
bool append_segment(std::string_view raw, std::string& out) {
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '%') {
      out += raw[i];
      continue;
    }
    const int byte = encoded_byte(raw, i);
    if (byte <= 0) return false;
    if (byte == '/') {
      out.append(raw, i, 3);
    } else {
      out += static_cast<char>(byte);
    }
    i += 2;
  }
  return true;
}

/// How many dots a segment stands for: 1 for ".", 2 for "..", 0 for anything else.
int dots_of(std::string_view raw) noexcept {
  int dots = 0;
  while (!raw.empty()) {
    if (raw.front() == '.') {
      raw.remove_prefix(1);
    } else if (raw.size() >= 3 && encoded_byte(raw, 0) == '.') {
      raw.remove_prefix(3);
    } else {
      return 0;
    }
    ++dots;
  }
  return dots <= 2 ? dots : 0;
}

}  // namespace

int http_hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

bool is_http_token(std::string_view text) noexcept {
  return !text.empty() && all_of_class(text, token_char);
}
bool is_http_value(std::string_view text) noexcept { return all_of_class(text, value_char); }
bool is_http_host(std::string_view text) noexcept { return all_of_class(text, host_char); }

bool same_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return x == y || lower(x) == lower(y);
         });
}

std::string_view trim_http(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool http_list_has(std::string_view list, std::string_view member) noexcept {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (same_ignoring_case(trim_http(list.substr(0, comma)), member)) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::uint64_t> plain_digits(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int byte = encoded_byte(text, i);
      if (byte < 0) return std::nullopt;
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

http_fault split_target(std::string_view method, std::string_view target, http_target& into) {
  into = {};
  if (target.empty() || !all_of_class(target, target_char))
    return {400, "the target of the request has a character that must be encoded"};
  if (method == "CONNECT") return {};
  if (target == "*") {
    if (method != "OPTIONS") return {400, "the target * is for OPTIONS"};
    into.path = target;
    return {};
  }
  if (target.front() != '/') {
    const std::size_t colon = target.find("://");
    if (colon == target.npos || !(same_ignoring_case(target.substr(0, colon), "http") ||
                                  same_ignoring_case(target.substr(0, colon), "https")))
      return {400, "the target of the request is neither a path nor a url"};
    target.remove_prefix(colon + 3);
    into.authority = target.substr(0, target.find_first_of("/?"));
    if (into.authority.empty() || !is_http_host(into.authority))
      return {400, "the target of the request has no valid host"};
    target.remove_prefix(into.authority.size());
    if (target.empty() || target.front() == '?') into.path = "/";
  }
  const std::size_t mark = target.find('?');
  if (into.path.empty()) into.path = target.substr(0, mark);
  if (mark != target.npos) into.query = target.substr(mark + 1);
  return check_percent(into.query);
}

http_fault normalize_path(std::string_view raw, std::string& path,
                          std::vector<std::string_view>& segments) {
  path.clear();
  segments.clear();
  if (raw == "*") {
    path = raw;
    return {};
  }
  if (const http_fault bad = check_percent(raw)) return bad;
  for (;;) {
    raw.remove_prefix(1);  // the slash
    const std::string_view segment = raw.substr(0, raw.find('/'));
    raw.remove_prefix(segment.size());
    const int dots = dots_of(segment);
    if (dots == 0) {
      segments.push_back(segment);
    } else {
      if (dots == 2) {
        if (segments.empty()) return {400, "the path of the request leaves its root"};
        segments.pop_back();
      }
      if (raw.empty()) segments.push_back({});
    }
    if (raw.empty()) break;
  }
  for (const std::string_view segment : segments) {
    path += '/';
    if (!append_segment(segment, path)) return {400, "the path of the request has a NUL"};
  }
  return {};
}

std::optional<std::string> query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view part = query.substr(0, end);
    const std::size_t equals = part.find('=');
    if (!part.empty() && percent_decoded(part.substr(0, equals), true) == key)
      return percent_decoded(equals == part.npos ? "" : part.substr(equals + 1), true);
    if (end == query.npos) break;
    query.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace weir::detail
