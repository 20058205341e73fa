// SPDX-License-Identifier: MIT
#include "format.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>

namespace weir_tool {

namespace {

using namespace std::chrono_literals;
namespace chrono = std::chrono;

template <class... Args>
std::string printed(const char* format, Args... args) {
  std::array<char, 96> room{};
  const int n = std::snprintf(room.data(), room.size(), format, args...);
  return {room.data(), static_cast<std::size_t>(n)};
}

struct calendar {
  explicit calendar(weir::wall_time at)
      : day(chrono::floor<chrono::days>(at)), date(day), clock(at - day) {}
  chrono::sys_days day;
  chrono::year_month_day date;
  chrono::hh_mm_ss<weir::duration> clock;

  std::string text(char between) const {
    return printed("%04d-%02u-%02u%c%02d:%02d:%02d", static_cast<int>(date.year()),
                   static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), between,
                   static_cast<int>(clock.hours().count()),
                   static_cast<int>(clock.minutes().count()),
                   static_cast<int>(clock.seconds().count()));
  }
};

/// The bytes of the UTF-8 character that begins here; 0 if none does.
std::size_t character(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  std::size_t n = 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) n = 2;
  if (first >= 0xe0 && first <= 0xef) n = 3;
  if (first >= 0xf0 && first <= 0xf4) n = 4;
  if (n == 0 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((at(i) & 0xc0U) != 0x80) return 0;
  if (first == 0xe0 && at(1) < 0xa0) return 0;
  if (first == 0xed && at(1) > 0x9f) return 0;
  if (first == 0xf0 && at(1) < 0x90) return 0;
  if (first == 0xf4 && at(1) > 0x8f) return 0;
  return n;
}

/// Control characters: C0, DEL, and C1, which is two bytes in UTF-8.
bool controls(std::string_view c) noexcept {
  const auto first = static_cast<unsigned char>(c[0]);
  if (c.size() == 1) return first < 0x20 || first == 0x7f;
  return c.size() == 2 && first == 0xc2 && static_cast<unsigned char>(c[1]) < 0xa0;
}

long long whole(weir::duration d, weir::duration unit) { return d / unit; }

}  // namespace

std::string date_text(weir::wall_time at) { return calendar(at).text(' '); }

std::string iso_text(weir::wall_time at) {
  const calendar c(at);
  return c.text('T') + printed(".%09lldZ", static_cast<long long>(c.clock.subseconds().count()));
}

std::string span_text(weir::duration d) {
  if (d < 0ns) {
    if (d == weir::duration::min()) d = -weir::duration::max();
    return "-" + span_text(-d);
  }
  if (d < 1s) return printed("%lld ms", whole(d, 1ms));
  if (d < 1min) return printed("%lld.%03lld s", whole(d, 1s), whole(d % 1s, 1ms));
  if (d < 1h) return printed("%lldm %02llds", whole(d, 1min), whole(d % 1min, 1s));
  if (d < 24h) return printed("%lldh %02lldm", whole(d, 1h), whole(d % 1h, 1min));
  return printed("%lldd %02lldh", whole(d, 24h), whole(d % 24h, 1h));
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
  const bool exact = value >= 9.95 || value == static_cast<double>(static_cast<int>(value));
  return printed(exact ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

std::string count_text(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

std::string counted(std::uint64_t n, std::string_view one) {
  return count_text(n) + " " + std::string(one) + (n == 1 ? "" : "s");
}

void add_words(std::string& to, std::string_view words) {
  if (!to.empty()) to += ", ";
  to += words;
}

std::string plain(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = character(text);
    if (n > 0 && !controls(text.substr(0, n))) {
      out.append(text.substr(0, n));
    } else if (text[0] == '\n') {
      out.append("\\n");
    } else if (text[0] == '\t') {
      out.append("\\t");
    } else {
      for (std::size_t i = 0; i < (n == 0 ? 1 : n); ++i)
        out.append(printed("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[i]))));
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

std::string plain_message(std::string_view text) {
  if (text.empty() || text.find_first_not_of('*') != text.npos) return plain(text);
  return "encrypted, " + size_text(text.size());
}

std::size_t width(std::string_view text) noexcept {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
  return columns;
}

std::string cut(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return text;
  if (columns == 0) return {};
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0U) != 0x80 && ++seen == columns) break;
  }
  return text.substr(0, end) + "…";
}

std::string_view json_type(std::string_view text) noexcept {
  if (text.empty()) return "none";
  switch (text[0]) {
    case '{':
      return "object";
    case '[':
      return "array";
    case '"':
      return "string";
    case 't':
    case 'f':
      return "bool";
    case 'n':
      return "null";
    case '*':
      return "encrypted";
    default:
      return "number";
  }
}

bool parse_duration(std::string_view text, weir::duration& into) noexcept {
  weir::duration sum{};
  while (!text.empty()) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end == text.data() + text.size() || n < 0) return false;
    weir::duration unit{};
    switch (*end) {
      case 's':
        unit = 1s;
        break;
      case 'm':
        unit = 1min;
        break;
      case 'h':
        unit = 1h;
        break;
      case 'd':
        unit = 24h;
        break;
      default:
        return false;
    }
    if (n > (weir::duration::max() - sum) / unit) return false;
    sum += n * unit;
    into = sum;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    if (text.empty()) return true;
  }
  return false;
}

}  // namespace weir_tool
