// SPDX-License-Identifier: MIT
#include "io/http_exchange.hpp"

#include <algorithm>
#include <limits>

#include <weir/error.hpp>
#include <weir/time.hpp>

#include "io/http_write.hpp"

namespace weir::detail {

namespace {

/// A body up to this size is sent together with its head.
constexpr std::size_t joined_body = 64 * 1024;

/// The deadline in `x-deadline-ms`; one too far away to count is none.
http_fault read_deadline(std::string_view text, std::optional<time_point>& into) {
  if (text.starts_with('-') && plain_digits(text.substr(1))) text = "0";
  const auto left = plain_digits(text);
  if (!left && (text.empty() || text.find_first_not_of("0123456789") != text.npos))
    return {400, "x-deadline-ms is no number"};
  constexpr std::uint64_t far = 1'000'000'000'000;  // 30 years
  if (left && *left < far)
    into = now() + std::chrono::milliseconds(static_cast<std::int64_t>(*left));
  return {};
}

bool is_servers_own(std::string_view name) noexcept {
  switch (name.size()) {
    case 4:
      return same_ignoring_case(name, "date");
    case 10:
      return same_ignoring_case(name, "connection");
    case 14:
      return same_ignoring_case(name, "content-length");
    case 17:
      return same_ignoring_case(name, "transfer-encoding");
    default:
      return false;
  }
}

http_limits limits_of(const http::http_options& options) noexcept {
  return {.max_head = static_cast<std::size_t>(options.max_header), .max_fields = 100};
}

}  // namespace

http_exchange::http_exchange(const http::http_options& given)
    : options(given), head_reader(limits_of(given)), body(limits_of(given)) {}

void http_exchange::begin(http_connection& on) {
  connection = &on;
  head_reader = http_head_reader(limits_of(options));
  head.method = {};  // unknown, if the head is refused early
  params.clear();
  deadline.reset();
  body_bytes = 0;
  body_taken = continued = false;
  fault = {};
  answer_begun = broken = cut = stream_ended = false;
  write_ended.set();
  out.clear();
}

http_exchange& body_access::open() const {
  if (exchange == nullptr)
    throw error(errc::closed, "the body of a request was pulled after the answer had ended");
  return *exchange;
}

void http_exchange::end() noexcept {
  answer.reset();
  if (access == nullptr) return;
  access->exchange = nullptr;
  if (access.use_count() > 1) access.reset();  // otherwise the next request uses it
}

const std::shared_ptr<body_access>& http_exchange::share_body() {
  if (access == nullptr) access = std::make_shared<body_access>();
  access->exchange = this;
  return access;
}

http_fault http_exchange::prepare() {
  if (head.method == "CONNECT") return {405, "this server is no proxy"};
  if (const http_fault bad = split_target(head.method, head.target, target)) return bad;
  if (const http_fault bad = normalize_path(target.path, path, segments)) return bad;
  if (const auto left = head.find("x-deadline-ms"))
    if (const http_fault bad = read_deadline(*left, deadline)) return bad;
  body.begin(head.framing, head.length);
  if (head.length > static_cast<std::uint64_t>(options.max_body))
    return {413, "the body is larger than the limit"};
  return {};
}

std::uint64_t http_exchange::unread() const noexcept {
  if (body.ended()) return 0;
  if (head.expects_continue && !continued && in.empty())
    return std::numeric_limits<std::uint64_t>::max();
  return std::max<std::uint64_t>(body.announced(), 1);
}

bool http_exchange::sends_body() const noexcept {
  const int status = answer->status();
  return head.method != "HEAD" && status >= 200 && status != 204 && status != 304;
}

void http_exchange::append_headers(bool keep, wall_time now) {
  const http::response& r = *answer;
  append_status_line(out, 1, r.status());
  bool typed = false;
  for (const auto& field : r.headers()) {
    if (is_servers_own(field.name())) continue;
    typed = typed || same_ignoring_case(field.name(), "content-type");
    append_http_field(out, field.name(), field.value());
  }
  if (!typed && !r.body().empty())
    append_http_field(out, "content-type", "text/plain; charset=utf-8");
  append_http_field(out, "date", http_date(now));
  if (r.streamed() != nullptr) {
    if (chunked() && r.status() != 204 && r.status() >= 200)
      append_http_field(out, "transfer-encoding", "chunked");
  } else if (r.status() >= 200 && r.status() != 204 && r.status() != 304) {
    append_http_field(out, "content-length", r.body().size());
  }
  if (r.upgrade() != nullptr) {
    append_http_field(out, "connection", "upgrade");
  } else if (!keep) {
    append_http_field(out, "connection", "close");
  } else if (head.minor == 0) {
    append_http_field(out, "connection", "keep-alive");
  }
  append_head_end(out);
}

std::string_view http_exchange::compose(bool keep, wall_time now) {
  out.clear();
  append_headers(keep, now);
  if (answer->streamed() != nullptr || !sends_body()) return {};
  if (answer->body().size() > joined_body) return answer->body();
  out += answer->body();
  return {};
}

}  // namespace weir::detail
