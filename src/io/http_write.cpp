// SPDX-License-Identifier: MIT
#include "io/http_write.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

namespace weir::detail {

namespace {

struct status_text {
  int status;
  std::string_view text;
};
constexpr status_text status_texts[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

template <class Number>
void append_number(std::string& out, Number n, int base = 10) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n, base).ptr;
  out.append(digits.data(), end);
}

/// "Sun, 06 Nov 1994 08:49:37 GMT".
void format_date(std::int64_t second, std::array<char, 32>& into) {
  using namespace std::chrono;
  static constexpr const char* weekdays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const sys_seconds at{seconds(second)};
  const sys_days day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss<seconds> time(at - day);
  std::snprintf(into.data(), into.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
                weekdays[weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                months[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
}

}  // namespace

std::string_view http_reason(int status) noexcept {
  const auto* found =
      std::lower_bound(std::begin(status_texts), std::end(status_texts), status,
                       [](const status_text& entry, int wanted) { return entry.status < wanted; });
  return found != std::end(status_texts) && found->status == status ? found->text
                                                                    : std::string_view();
}

void append_status_line(std::string& out, int minor, int status) {
  out += minor == 0 ? "HTTP/1.0 " : "HTTP/1.1 ";
  append_number(out, status);
  out += ' ';
  out += http_reason(status);
  out += "\r\n";
}

void append_request_line(std::string& out, std::string_view method, std::string_view target) {
  out += method;
  out += ' ';
  out += target;
  out += " HTTP/1.1\r\n";
}

void append_http_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

void append_http_field(std::string& out, std::string_view name, std::uint64_t value) {
  out += name;
  out += ": ";
  append_number(out, value);
  out += "\r\n";
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  append_number(out, data.size(), 16);
  out += "\r\n";
  out += data;
  out += "\r\n";
}

std::string_view http_date(wall_time now) {
  struct cache {
    std::int64_t second = -1;
    std::array<char, 32> text{};
  };
  thread_local cache last;
  const std::int64_t second =
      std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  if (second != last.second) {
    format_date(second, last.text);
    last.second = second;
  }
  return last.text.data();
}

}  // namespace weir::detail
