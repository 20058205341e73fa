// SPDX-License-Identifier: MIT
// Reading JSON, over Boost's parser. Boost's own tree of values is not used, because it has no
// exact doubles; ours keeps the text of numbers.
#include <weir/durable/serde.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>

// Compiled under another name, so that a program may link a Boost.JSON of its own.
#define json json_of_weir
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>
#undef json

#include <weir/error.hpp>

#include "durable/json_text.hpp"

namespace weir {

namespace {

using detail::json_bytes_max;
using detail::json_node;

/// A known key was looked up by name, so the name comes from the code; other keys are data.
enum kind : std::uint32_t { null, no, yes, number, string, key, known_key, array, object };

}  // namespace

namespace {

/// Receives the events of Boost's parser and appends them to a document.
class builder {
 public:
  static constexpr std::size_t max_object_size = json_bytes_max;
  static constexpr std::size_t max_array_size = json_bytes_max;
  static constexpr std::size_t max_key_size = json_bytes_max;
  static constexpr std::size_t max_string_size = json_bytes_max;

  using error = boost::json_of_weir::error_code;
  using view = boost::json_of_weir::string_view;

  builder(std::vector<json_node>& nodes, std::string& text) : nodes_(nodes), text_(text) {}

  bool on_document_begin(error&) { return true; }
  bool on_document_end(error&) { return true; }
  bool on_object_begin(error&) { return open(object); }
  bool on_object_end(std::size_t size, error&) { return close(size); }
  bool on_array_begin(error&) { return open(array); }
  bool on_array_end(std::size_t size, error&) { return close(size); }
  bool on_key_part(view s, std::size_t, error&) { return part(s); }
  bool on_key(view s, std::size_t, error&) { return whole(s, key); }
  bool on_string_part(view s, std::size_t, error&) { return part(s); }
  bool on_string(view s, std::size_t, error&) { return whole(s, string); }
  bool on_number_part(view s, error&) { return part(s); }
  bool on_int64(std::int64_t, view s, error&) { return whole(s, number); }
  bool on_uint64(std::uint64_t, view s, error&) { return whole(s, number); }
  bool on_double(double, view s, error&) { return whole(s, number); }
  bool on_bool(bool value, error&) { return whole({}, value ? yes : no); }
  bool on_null(error&) { return whole({}, null); }
  bool on_comment_part(view, error&) { return true; }
  bool on_comment(view, error&) { return true; }

 private:
  static std::uint32_t narrow(std::size_t n) { return static_cast<std::uint32_t>(n); }

  bool part(view s) {
    text_.append(s.data(), s.size());
    return true;
  }
  bool whole(view s, kind as) {
    part(s);
    nodes_.push_back({narrow(begun_), narrow(text_.size() - begun_) & 0xfffffff, as & 0xf});
    begun_ = text_.size();
    return true;
  }
  bool open(kind as) {
    open_.push_back(nodes_.size());
    nodes_.push_back({0, 0, as & 0xf});
    return true;
  }
  bool close(std::size_t size) {
    json_node& container = nodes_[open_.back()];
    open_.pop_back();
    container.place = narrow(nodes_.size());
    container.size = narrow(size) & 0xfffffff;
    return true;
  }

  std::vector<json_node>& nodes_;
  std::string& text_;
  std::size_t begun_ = 0;  // where the text of the current scalar or key begins
  std::vector<std::size_t> open_;
};

}  // namespace

namespace {

bool is_plain_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  return detail::read_plain_integer(text, value);
}

/// In quotes, ASCII, without escapes.
bool is_plain_string(std::string_view text) noexcept {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  const std::string_view inside = text.substr(1, text.size() - 2);
  return std::all_of(inside.begin(), inside.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

/// Most values of journals are such scalars; they need no parser.
bool read_scalar(std::string_view text, std::vector<json_node>& nodes, std::string& kept) {
  kind as = number;
  if (text == "null" || text == "true" || text == "false") {
    as = text == "null" ? null : text == "true" ? yes : no;
  } else if (is_plain_integer(text)) {
    kept = text;
  } else if (is_plain_string(text)) {
    as = string;
    kept = text.substr(1, text.size() - 2);
  } else {
    return false;
  }
  nodes.push_back({0, static_cast<std::uint32_t>(kept.size()) & 0xfffffff, as & 0xf});
  return true;
}

}  // namespace

bool detail::read_plain_integer(std::string_view text, std::int64_t& value) noexcept {
  constexpr std::size_t digits_max = 18;
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > digits_max) return false;
  if (digits[0] == '0' && text.size() > 1) return false;
  std::int64_t sum = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    sum = sum * 10 + (c - '0');
  }
  value = negative ? -sum : sum;
  return true;
}

detail::json_document::json_document(std::string_view text) {
  if (text.size() > json_bytes_max)
    raise(errc::too_large, "text too large: " + std::to_string(text.size()) + " of " +
                               std::to_string(json_bytes_max) + " bytes of JSON");
  if (read_scalar(text, nodes_, text_)) return;
  text_.reserve(text.size());
  boost::json_of_weir::parse_options options;
  options.max_depth = json_depth_max;
  boost::json_of_weir::basic_parser<builder> parser(options, nodes_, text_);
  builder::error error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read == text.size()) return;
  std::string why = error ? error.message() : "there is more after the value";
  if (error == boost::json_of_weir::error::too_deep)
    why = "it nests more than " + std::to_string(json_depth_max) + " levels";
  raise(errc::bad_data, "bad data at byte " + std::to_string(read) + " of " +
                            std::to_string(text.size()) + ": expected JSON, but " + why);
}

std::string_view detail::json_document::text_of(std::size_t index) const noexcept {
  const json_node& node = nodes_[index];
  return std::string_view(text_).substr(node.place, node.size);
}

std::size_t detail::json_document::after(std::size_t index) const noexcept {
  return nodes_[index].kind >= array ? nodes_[index].place : index + 1;
}

std::string detail::json_document::path_to(std::size_t index) const {
  std::string path = "$";
  for (std::size_t at = 0; at != index;) {
    const bool in_object = nodes_[at].kind == object;
    std::size_t entry = at + 1;
    std::size_t count = 0;
    for (; after(entry + in_object) <= index; ++count) entry = after(entry + in_object);
    at = entry + in_object;
    if (!in_object)
      path += "[" + std::to_string(count) + "]";
    else if (nodes_[entry].kind == known_key)
      path.append(".").append(text_of(entry));
    else
      path += "{entry " + std::to_string(count) + "}";
  }
  return path;
}

const json_node& json_value::node() const noexcept { return document_->nodes_[index_]; }
std::string_view json_value::text() const noexcept { return document_->text_of(index_); }

bool json_value::is_null() const noexcept { return node().kind == kind::null; }
bool json_value::is_bool() const noexcept { return node().kind == yes || node().kind == no; }
bool json_value::is_number() const noexcept { return node().kind == kind::number; }
bool json_value::is_string() const noexcept { return node().kind == kind::string; }
bool json_value::is_array() const noexcept { return node().kind == kind::array; }
bool json_value::is_object() const noexcept { return node().kind == kind::object; }

std::size_t json_value::size() const noexcept { return node().kind >= array ? node().size : 0; }

void json_value::fail(std::string_view expected) const {
  std::string found;
  switch (node().kind) {
    case kind::null:
      found = "null";
      break;
    case kind::no:
    case kind::yes:
      found = "a boolean";
      break;
    case kind::number:
      found = "a number of " + std::to_string(text().size()) + " characters";
      break;
    case kind::string:
      found = "a string of " + std::to_string(text().size()) + " bytes";
      break;
    case kind::array:
      found = "an array of size " + std::to_string(size());
      break;
    default:
      found = "an object of size " + std::to_string(size());
      break;
  }
  detail::raise(errc::bad_data, "bad data at " + document_->path_to(index_) + ": expected " +
                                    std::string(expected) + ", found " + found);
}

void json_value::as_null() const {
  if (!is_null()) fail("null");
}

bool json_value::as_bool() const {
  if (!is_bool()) fail("true or false");
  return node().kind == yes;
}

namespace {

/// Whether all of `text` is a `T`, which is then in `value`.
template <class T>
bool is_whole(std::string_view text, T& value) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [last, error] = std::from_chars(begin, end, value);
  return error == std::errc() && last == end;
}

}  // namespace

std::int64_t json_value::as_signed(std::int64_t min, std::int64_t max) const {
  std::int64_t value = 0;
  if (!is_number() || !is_whole(text(), value) || value < min || value > max)
    fail("an integer from " + std::to_string(min) + " to " + std::to_string(max));
  return value;
}

std::uint64_t json_value::as_unsigned(std::uint64_t max) const {
  std::uint64_t value = 0;
  if (!is_number() || !is_whole(text(), value) || value > max)
    fail("an integer from 0 to " + std::to_string(max));
  return value;
}

std::string_view json_value::tagged(std::string_view tag, std::string_view expected) const {
  if (!is_object() || size() != 1) fail(expected);
  json_items items = as_object();
  if (!items.find(tag) || !items.value().is_string()) fail(expected);
  return items.value().text();
}

template <class Float>
Float json_value::as_floating() const {
  constexpr std::string_view expected = "a number";
  Float value = 0;
  if (is_number()) {
    if (!is_whole(text(), value)) fail("a number in the range of its type");
    return value;
  }
  const std::string_view name = tagged(detail::float_tag, expected);
  if (name == detail::float_nan) return std::numeric_limits<Float>::quiet_NaN();
  if (name == detail::float_inf) return std::numeric_limits<Float>::infinity();
  if (name == detail::float_minus_inf) return -std::numeric_limits<Float>::infinity();
  fail(expected);
}

double json_value::as_double() const { return as_floating<double>(); }
float json_value::as_float() const { return as_floating<float>(); }

std::string json_value::as_string() const {
  if (is_string()) return std::string(text());
  std::string bytes;
  if (!detail::from_base64(tagged(detail::base64_tag, "a string"), bytes)) fail("bytes as base64");
  return bytes;
}

json_items json_value::as_array() const {
  if (!is_array()) fail("an array");
  return json_items(*document_, index_);
}

json_items json_value::as_object() const {
  if (!is_object()) fail("an object");
  return json_items(*document_, index_);
}

json_items::json_items(const detail::json_document& document, std::size_t container) noexcept
    : document_(&document),
      first_(container + 1),
      end_(document.after(container)),
      next_(first_),
      object_(document.nodes_[container].kind == kind::object) {}

bool json_items::next() noexcept {
  if (next_ == end_) return false;
  at_ = next_ + object_;
  next_ = document_->after(at_);
  return true;
}

bool json_items::find(std::string_view name) noexcept {
  const std::size_t start = next_;
  while (next())
    if (key() == name) return know_key();
  next_ = first_;
  while (next_ != start && next())
    if (key() == name) return know_key();
  return false;
}

bool json_items::know_key() noexcept {
  document_->nodes_[at_ - 1].kind = known_key & 0xf;
  return true;
}

std::string_view json_items::key() const noexcept { return document_->text_of(at_ - 1); }

// Shared by the templates.

json_items detail::items_of_tuple(const json_value& in, std::size_t size) {
  if (!in.is_array() || in.size() != size) in.fail("an array of size " + std::to_string(size));
  return in.as_array();
}

std::size_t detail::read_variant_index(const json_value& in, std::size_t alternatives) {
  json_items items = items_of_tuple(in, 2);
  items.next();
  const auto index = items.value().as_integer<std::size_t>();
  if (index >= alternatives)
    items.value().fail("the index of one of " + std::to_string(alternatives) + " alternatives");
  return index;
}

void detail::raise_valueless_variant() {
  raise(errc::invalid_argument,
        "a variant without a value (valueless_by_exception) cannot be stored; assign it one");
}

}  // namespace weir
