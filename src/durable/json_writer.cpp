// SPDX-License-Identifier: MIT
#include <weir/durable/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <weir/error.hpp>

#include "durable/json_text.hpp"

namespace weir {

namespace {

using detail::json_bytes_max;
using detail::json_depth_max;

[[noreturn]] void raise_misuse(const char* what) {
  detail::raise(errc::invalid_argument, std::string("json_writer: ") + what +
                                            "; a serde::write must write exactly one value");
}

}  // namespace

void json_writer::append(std::string_view text) {
  bytes_ += text.size();
  if (bytes_ <= json_bytes_max)
    text_.append(text);
  else if (!text_.empty())
    std::string().swap(text_);  // from here on bytes are only counted, for the error
}

void json_writer::append_quoted(std::string_view utf8) {
  detail::quote(utf8, [this](std::string_view piece) { append(piece); });
}

void json_writer::before_value() {
  if (object_[depth_]) {
    if (!keyed_) raise_misuse("a value in an object without a key");
    keyed_ = false;
    return;
  }
  if (depth_ == 0 && comma_) raise_misuse("a second value");
  if (comma_) append(",");
  comma_ = true;
}

void json_writer::begin(bool object, char bracket) {
  before_value();
  if (depth_ == json_depth_max)
    detail::raise(errc::too_large,
                  "value too deep: it nests more than " + std::to_string(json_depth_max) +
                      " levels as JSON; store it flat, such as a list of nodes with indices");
  object_[++depth_] = object;
  comma_ = false;
  append({&bracket, 1});
}

void json_writer::end(bool object, char bracket) {
  if (depth_ == 0 || object_[depth_] != object) raise_misuse("an end without its begin");
  if (keyed_) raise_misuse("a key without a value");
  --depth_;
  comma_ = true;
  append({&bracket, 1});
}

void json_writer::begin_array() { begin(false, '['); }
void json_writer::end_array() { end(false, ']'); }
void json_writer::begin_object() { begin(true, '{'); }
void json_writer::end_object() { end(true, '}'); }

void json_writer::key(std::string_view name) {
  if (!object_[depth_] || keyed_) raise_misuse("a key where none is due");
  if (!detail::is_utf8(name)) raise_misuse("a key that is not UTF-8");
  if (comma_) append(",");
  comma_ = true;
  append_quoted(name);
  append(":");
  keyed_ = true;
}

void json_writer::null() {
  before_value();
  append("null");
}

void json_writer::boolean(bool value) {
  before_value();
  append(value ? "true" : "false");
}

namespace {

/// The shortest text that reads back to the same value.
template <class T>
std::string_view shortest(T value, std::array<char, 32>& room) {
  const auto [end, error] = std::to_chars(room.data(), room.data() + room.size(), value);
  static_cast<void>(error);  // 24 characters are enough for every double
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

std::string_view name_of_not_finite(double value) {
  if (std::isnan(value)) return detail::float_nan;
  return value > 0 ? detail::float_inf : detail::float_minus_inf;
}

}  // namespace

void json_writer::signed_number(std::int64_t value) {
  std::array<char, 32> room;
  before_value();
  append(shortest(value, room));
}

void json_writer::unsigned_number(std::uint64_t value) {
  std::array<char, 32> room;
  before_value();
  append(shortest(value, room));
}

void json_writer::number(double value) {
  if (!std::isfinite(value)) return tagged(detail::float_tag, name_of_not_finite(value));
  std::array<char, 32> room;
  before_value();
  append(shortest(value, room));
}

void json_writer::number(float value) {
  if (!std::isfinite(value)) return tagged(detail::float_tag, name_of_not_finite(value));
  std::array<char, 32> room;
  before_value();
  append(shortest(value, room));
}

void json_writer::string(std::string_view bytes) {
  if (!detail::is_utf8(bytes)) return tagged(detail::base64_tag, detail::base64(bytes));
  before_value();
  append_quoted(bytes);
}

void json_writer::tagged(std::string_view tag, std::string_view text) {
  begin_object();
  key(tag);
  string(text);
  end_object();
}

std::string json_writer::take() {
  if (depth_ != 0) raise_misuse("a begin without its end");
  if (!comma_) raise_misuse("no value");
  if (bytes_ > json_bytes_max)
    detail::raise(errc::too_large, "value too large: it takes " + std::to_string(bytes_) + " of " +
                                       std::to_string(json_bytes_max) +
                                       " bytes as JSON; store it elsewhere, such as in a file, "
                                       "and keep its name");
  comma_ = false;
  bytes_ = 0;
  return std::exchange(text_, {});
}

void json_sorter::element() { starts_.push_back(out_.text_.size()); }

void json_sorter::sort() {
  if (starts_.size() < 2 || out_.bytes_ > json_bytes_max) return;
  const std::size_t first = starts_.front();
  const std::string before = out_.text_.substr(first);
  std::vector<std::string_view> elements;
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    // All but the first begin with the comma before them.
    const std::size_t begin = starts_[i] - first + (i == 0 ? 0 : 1);
    const std::size_t end = i + 1 == starts_.size() ? before.size() : starts_[i + 1] - first;
    elements.push_back(std::string_view(before).substr(begin, end - begin));
  }
  std::sort(elements.begin(), elements.end());
  out_.text_.resize(first);
  for (const std::string_view each : elements) {
    if (out_.text_.size() != first) out_.text_ += ',';
    out_.text_.append(each);
  }
}

}  // namespace weir
