// SPDX-License-Identifier: MIT
// Values as JSON: the writer, by hand, and the reader, over Boost's parser. Boost's own tree of
// values is not used, because it has no exact doubles; ours keeps the text of numbers.
#include <weir/serde.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

// Compiled under another name, so that a program may link a Boost.JSON of its own.
#define json json_of_weir
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>
#undef json

#include <weir/error.hpp>

namespace weir {

namespace {

using detail::json_bytes_max;
using detail::json_depth_max;
using detail::json_node;

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view base64_tag = "$base64";
constexpr std::string_view float_tag = "$float";
constexpr std::string_view not_finite[] = {"nan", "inf", "-inf"};

enum kind : std::uint32_t { null, no, yes, number, string, key, array, object };

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

/// How many bytes the character at `i` has in UTF-8; 0 if there is none.
std::size_t utf8_length(std::string_view bytes, std::size_t i) noexcept {
  const std::uint32_t first = byte_at(bytes, i);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || first > 0xf4 || length > bytes.size() - i) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte_at(bytes, i + k) & 0xc0) != 0x80) return 0;
  const std::uint32_t second = byte_at(bytes, i + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_high = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t bits = byte_at(bytes, i) << 16;
    if (left > 1) bits |= byte_at(bytes, i + 1) << 8;
    if (left > 2) bits |= byte_at(bytes, i + 2);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= left ? base64_digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// Reads what `base64` writes into `bytes`; false for anything else.
bool from_base64(std::string_view text, std::string& bytes) {
  if (text.size() % 4 != 0) return false;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::string_view group = text.substr(i, 4);
    if (i + 4 == text.size())
      while (group.ends_with('=')) group.remove_suffix(1);
    if (group.size() < 2) return false;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < group.size(); ++k) {
      const std::size_t digit = base64_digits.find(group[k]);
      if (digit == std::string_view::npos) return false;
      bits |= static_cast<std::uint32_t>(digit) << (18 - 6 * k);
    }
    const std::size_t length = group.size() - 1;
    if ((bits & (0xffffffU >> (8 * length))) != 0) return false;
    for (std::size_t k = 0; k < length; ++k)
      bytes += static_cast<char>(bits >> (16 - 8 * k) & 0xff);
  }
  return true;
}

/// The way JSON writes a control character, a quotation mark or a backslash; else empty.
std::string_view escaped(char c, std::array<char, 6>& room) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(c);
  if (code >= 0x20) return {};
  constexpr std::string_view digits = "0123456789abcdef";
  room = {'\\', 'u', '0', '0', digits[code >> 4], digits[code & 15]};
  return {room.data(), room.size()};
}

/// Gives `sink` the text between quotation marks, in pieces.
template <class Sink>
void quote(std::string_view utf8, Sink sink) {
  sink("\"");
  std::size_t plain = 0;
  std::array<char, 6> room;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const std::string_view escape = escaped(utf8[i], room);
    if (escape.empty()) continue;
    sink(utf8.substr(plain, i - plain));
    sink(escape);
    plain = i + 1;
  }
  sink(utf8.substr(plain));
  sink("\"");
}

/// The beginning of a text that may be long, for an error.
std::string shortened(std::string_view utf8, bool quoted) {
  constexpr std::size_t bytes_max = 40;
  const bool cut = utf8.size() > bytes_max;
  std::size_t length = cut ? bytes_max : utf8.size();
  while (cut && length > 0 && (byte_at(utf8, length) & 0xc0) == 0x80) --length;
  std::string text;
  if (quoted)
    quote(utf8.substr(0, length), [&](std::string_view piece) { text.append(piece); });
  else
    text.append(utf8.substr(0, length));
  return cut ? text + "..." : text;
}

bool is_identifier(std::string_view name) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), word);
}

[[noreturn]] void raise_misuse(const char* what) {
  detail::raise(errc::invalid_argument, std::string("json_writer: ") + what +
                                            "; a serde::write must write exactly one value");
}

}  // namespace

bool detail::is_utf8(std::string_view bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = utf8_length(bytes, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

// The writer.

void json_writer::append(std::string_view text) {
  bytes_ += text.size();
  if (bytes_ <= json_bytes_max)
    text_.append(text);
  else if (!text_.empty())
    std::string().swap(text_);  // from here on the bytes are only counted, for the error
}

void json_writer::append_quoted(std::string_view utf8) {
  quote(utf8, [this](std::string_view piece) { append(piece); });
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
  return std::isnan(value) ? not_finite[0] : value > 0 ? not_finite[1] : not_finite[2];
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
  if (!std::isfinite(value)) return tagged(float_tag, name_of_not_finite(value));
  std::array<char, 32> room;
  before_value();
  append(shortest(value, room));
}

void json_writer::number(float value) {
  if (!std::isfinite(value)) return tagged(float_tag, name_of_not_finite(value));
  std::array<char, 32> room;
  before_value();
  append(shortest(value, room));
}

void json_writer::string(std::string_view bytes) {
  if (!detail::is_utf8(bytes)) return tagged(base64_tag, base64(bytes));
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

// The reader.

namespace {

/// Hears what Boost's parser finds and appends it to a document.
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

detail::json_document::json_document(std::string_view text) {
  if (text.size() > json_bytes_max)
    raise(errc::too_large, "text too large: " + std::to_string(text.size()) + " of " +
                               std::to_string(json_bytes_max) + " bytes of JSON");
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
    else if (is_identifier(text_of(entry)))
      path.append(".").append(text_of(entry));
    else
      path += "[" + shortened(text_of(entry), true) + "]";
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
      found = "false";
      break;
    case kind::yes:
      found = "true";
      break;
    case kind::number:
      found = "the number " + shortened(text(), false);
      break;
    case kind::string:
      found = "the string " + shortened(text(), true);
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

/// Whether all of `text` is a `T`, then in `value`.
template <class T>
bool is_whole(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
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
  const std::string_view name = tagged(float_tag, expected);
  if (name == not_finite[0]) return std::numeric_limits<Float>::quiet_NaN();
  if (name == not_finite[1]) return std::numeric_limits<Float>::infinity();
  if (name == not_finite[2]) return -std::numeric_limits<Float>::infinity();
  fail(expected);
}

double json_value::as_double() const { return as_floating<double>(); }
float json_value::as_float() const { return as_floating<float>(); }

std::string json_value::as_string() const {
  if (is_string()) return std::string(text());
  std::string bytes;
  if (!from_base64(tagged(base64_tag, "a string"), bytes)) fail("bytes as base64");
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
    if (key() == name) return true;
  next_ = first_;
  while (next_ != start && next())
    if (key() == name) return true;
  return false;
}

std::string_view json_items::key() const noexcept { return document_->text_of(at_ - 1); }

// What templates share.

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
