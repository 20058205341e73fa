// SPDX-License-Identifier: MIT
#include "io/http_head.hpp"

#include <utility>

namespace weir::detail {

namespace {

constexpr http_fault two_framings{400, "the message has both a content-length and a coding"};

/// What the fields say about the message that follows them.
class field_digest {
 public:
  explicit field_digest(bool request) noexcept : request_(request) {}

  http_fault add(const http_field& f) {
    switch (f.name.size()) {
      case 4:
        if (request_ && same_ignoring_case(f.name, "host")) return add_host(f.value);
        break;
      case 6:
        if (same_ignoring_case(f.name, "expect"))
          expects_continue |= same_ignoring_case(f.value, "100-continue");
        break;
      case 10:
        if (same_ignoring_case(f.name, "connection")) {
          close |= http_list_has(f.value, "close");
          keep_alive |= http_list_has(f.value, "keep-alive");
        }
        break;
      case 14:
        if (same_ignoring_case(f.name, "content-length")) return add_length(f.value);
        break;
      case 17:
        if (same_ignoring_case(f.name, "transfer-encoding")) return add_coding(f.value);
        break;
      default:
        break;
    }
    return {};
  }

  std::string_view host;
  std::optional<std::uint64_t> length;
  int hosts = 0;
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
  bool expects_continue = false;

 private:
  http_fault add_host(std::string_view value) {
    host = value;
    if (++hosts > 1) return {400, "the request has two hosts"};
    if (!is_http_host(value)) return {400, "the host is not valid"};
    return {};
  }
  http_fault add_length(std::string_view value) {
    const auto digits = plain_digits(value);
    if (!digits) return {400, "the content-length is no plain number"};
    if (length && *length != *digits) return {400, "the message has two content-lengths"};
    length = digits;
    return chunked ? two_framings : http_fault{};
  }
  http_fault add_coding(std::string_view value) {
    if (chunked || !same_ignoring_case(value, "chunked"))
      return {400, "the transfer-encoding is not a single chunked"};
    chunked = true;
    return length ? two_framings : http_fault{};
  }

  bool request_;
};

/// "HTTP/1.1" and the like: the minor version.
http_fault read_version(std::string_view text, int& minor) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 8 || !text.starts_with("HTTP/") || !digit(text[5]) || text[6] != '.' ||
      !digit(text[7]))
    return {400, "the first line has no version of http"};
  minor = text[7] - '0';
  if (text[5] != '1' || minor > 1) return {505, "the version of http is neither 1.0 nor 1.1"};
  return {};
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\r')); }

http_fault digest_fields(const http_head& head, field_digest& digest) {
  for (const http_field& f : head.fields)
    if (const http_fault bad = digest.add(f)) return bad;
  if (digest.chunked && head.minor == 0)
    return {400, "a message of http 1.0 has a transfer-encoding"};
  return {};
}

}  // namespace

std::optional<std::string_view> http_head::find(std::string_view name) const noexcept {
  for (const http_field& f : fields)
    if (same_ignoring_case(f.name, name)) return f.value;
  return std::nullopt;
}

http_fault read_field(std::string_view line, http_field& into) noexcept {
  if (line.front() == ' ' || line.front() == '\t') return {400, "a header field is folded"};
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return {400, "a header field has no colon"};
  into.name = line.substr(0, colon);
  if (!is_http_token(into.name)) return {400, "the name of a header field is not valid"};
  into.value = trim_http(line.substr(colon + 1));
  if (!is_http_value(into.value)) return {400, "a header field has a control character"};
  return {};
}

/// Looks at whole lines, so that each byte is looked at once however often it is called.
http_head_reader::result http_head_reader::find_end(std::string_view buffer, bool skips_line) {
  const std::string_view head = buffer.substr(0, limits_.max_head);
  for (;;) {
    const std::size_t end = head.find('\n', line_);
    if (end == head.npos) break;
    if (end == line_ || head[end - 1] != '\r') return {0, {400, "a line does not end with CR LF"}};
    const bool empty = end == line_ + 1;
    if (empty && line_ > begin_) return {end + 1, {}};
    if (empty && (!skips_line || begin_ > 0)) return {0, {400, "the first line is empty"}};
    line_ = end + 1;
    if (empty) begin_ = line_;
  }
  if (buffer.size() >= limits_.max_head) return {0, {431, "the head is longer than the limit"}};
  return {};
}

http_head_reader::result http_head_reader::read_request(std::string_view buffer, http_head& into) {
  if (!buffer.empty() && buffer.front() != '\r' && !is_http_token(buffer.substr(0, 1)))
    return {0, {400, "the message does not begin with a method"}};
  result found = find_end(buffer, true);
  if (found.consumed == 0 && !found.fault) return found;
  const std::size_t begin = std::exchange(begin_, 0);
  line_ = 0;
  if (found.fault) return found;
  into.text.assign(buffer.substr(begin, found.consumed - begin));
  found.fault = parse_request(into);
  if (found.fault) found.consumed = 0;
  return found;
}

http_head_reader::result http_head_reader::read_response(std::string_view buffer, http_head& into,
                                                         bool no_body) {
  result found = find_end(buffer, false);
  if (found.consumed == 0 && !found.fault) return found;
  line_ = 0;
  if (found.fault) return found;
  into.text.assign(buffer.substr(0, found.consumed));
  found.fault = parse_response(into, no_body);
  if (found.fault) found.consumed = 0;
  return found;
}

/// REQUIRES: `at` is behind the first line. The text ends with an empty line.
http_fault http_head_reader::parse_fields(http_head& head, std::size_t at) const {
  head.fields.clear();
  const std::string_view text = head.text;
  while (at + 2 < text.size()) {
    const std::size_t end = text.find('\n', at);
    http_field f;
    if (const http_fault bad = read_field(text.substr(at, end - 1 - at), f)) return bad;
    if (head.fields.size() >= limits_.max_fields) return {431, "the head has too many fields"};
    head.fields.push_back(f);
    at = end + 1;
  }
  return {};
}

http_fault http_head_reader::parse_request(http_head& head) const {
  const std::string_view text = head.text;
  const std::string_view line = first_line(text);
  if (text[line.size() + 1] != '\n') return {400, "the first line has a CR"};
  const std::size_t space = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (space == line.npos || last == space) return {400, "the first line is not a request"};
  head.method = line.substr(0, space);
  head.target = line.substr(space + 1, last - space - 1);
  head.status = 0;
  head.reason = {};
  if (!is_http_token(head.method)) return {400, "the method is not valid"};
  if (const http_fault bad = read_version(line.substr(last + 1), head.minor)) return bad;
  http_target parts;
  if (const http_fault bad = split_target(head.method, head.target, parts)) return bad;
  if (const http_fault bad = parse_fields(head, line.size() + 2)) return bad;
  field_digest digest(true);
  if (const http_fault bad = digest_fields(head, digest)) return bad;
  if (head.minor == 1 && digest.hosts == 0) return {400, "the request has no host"};
  if (!parts.authority.empty() && digest.hosts == 1 &&
      !same_ignoring_case(parts.authority, digest.host))
    return {400, "the target and the host differ"};
  head.framing = digest.chunked                   ? http_framing::chunked
                 : digest.length.value_or(0) != 0 ? http_framing::length
                                                  : http_framing::none;
  head.length = digest.length.value_or(0);
  head.keep_alive = !digest.close && (head.minor == 1 || digest.keep_alive);
  head.expects_continue =
      digest.expects_continue && head.minor == 1 && head.framing != http_framing::none;
  return {};
}

http_fault http_head_reader::parse_response(http_head& head, bool no_body) const {
  const std::string_view text = head.text;
  const std::string_view line = first_line(text);
  if (text[line.size() + 1] != '\n') return {400, "the first line has a CR"};
  head.method = head.target = {};
  if (const http_fault bad = read_version(line.substr(0, 8), head.minor)) return bad;
  const auto status = plain_digits(line.substr(8).substr(line.size() > 8 ? 1 : 0, 3));
  if (line.size() < 12 || line[8] != ' ' || !status || *status < 100 ||
      (line.size() > 12 && line[12] != ' ') || !is_http_value(line))
    return {400, "the first line is not an answer"};
  head.status = static_cast<int>(*status);
  head.reason = line.size() > 13 ? line.substr(13) : std::string_view();
  if (const http_fault bad = parse_fields(head, line.size() + 2)) return bad;
  field_digest digest(false);
  if (const http_fault bad = digest_fields(head, digest)) return bad;
  const bool never = no_body || head.status < 200 || head.status == 204 || head.status == 304;
  head.length = digest.length.value_or(0);
  head.framing = never || digest.length == 0 ? http_framing::none
                 : digest.chunked            ? http_framing::chunked
                 : digest.length             ? http_framing::length
                                             : http_framing::until_close;
  head.keep_alive = !digest.close && (head.minor == 1 || digest.keep_alive) &&
                    head.framing != http_framing::until_close;
  head.expects_continue = false;
  return {};
}

}  // namespace weir::detail
