// SPDX-License-Identifier: MIT
// JSON for weir::serde: a writer that appends text, and a view of parsed text.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <weir/detail/durable/json.hpp>

namespace weir {

/// Writes one JSON value; inserts commas and colons.
///
/// Ensures: the same calls produce the same bytes. There is no white space; numbers have the
/// shortest form that reads back to the same value. Errors: errc::too_large for nesting deeper than
/// 128; errc::invalid_argument for calls that would not produce JSON (a value without a key in an
/// object, an end without a begin).
class json_writer {
 public:
  json_writer() = default;
  json_writer(const json_writer&) = delete;
  json_writer& operator=(const json_writer&) = delete;

  void null();
  void boolean(bool value);
  template <detail::json_integer T>
  void number(T value) {
    if constexpr (std::signed_integral<T>)
      signed_number(value);
    else
      unsigned_number(value);
  }
  /// NaN and the infinities, which JSON lacks, become {"$float":"nan"}, "inf" and "-inf".
  void number(double value);
  void number(float value);
  /// Bytes that are not UTF-8 become {"$base64":"..."}.
  void string(std::string_view bytes);

  void begin_array();
  void end_array();
  void begin_object();
  /// Requires: UTF-8, else errc::invalid_argument. The next call writes the value.
  void key(std::string_view name);
  void end_object();

  /// The text. Errors: errc::too_large beyond 64 MiB, errc::invalid_argument unless it is one
  /// value.
  std::string take();

 private:
  friend class json_sorter;

  void signed_number(std::int64_t value);
  void unsigned_number(std::uint64_t value);
  void before_value();
  void append(std::string_view text);
  void append_quoted(std::string_view utf8);
  void tagged(std::string_view tag, std::string_view text);
  void begin(bool object, char bracket);
  void end(bool object, char bracket);

  std::string text_;
  std::size_t bytes_ = 0;  // of the whole text, including parts no longer kept
  std::size_t depth_ = 0;
  bool comma_ = false;  // an element precedes the next one
  bool keyed_ = false;  // a key waits for its value
  std::array<bool, detail::json_depth_max + 1> object_{};
};

/// Sorts the elements of the array or object being written by their bytes, for containers whose
/// order is not part of their value.
class json_sorter {
 public:
  explicit json_sorter(json_writer& out) : out_(out) {}
  /// Before each element.
  void element();
  /// After the last one, before the end of the array or object.
  void sort();

 private:
  json_writer& out_;
  std::vector<std::size_t> starts_;
};

class json_items;

/// A value in a parsed text; two words, valid as long as the document.
///
/// Errors: every as_ function, and what is built on them, throws errc::bad_data with a text such as
/// "bad data at $.lines[3].cents: expected an integer from 0 to 255, found a string of 3 bytes".
/// They never quote the data; a key is shown only if `find` has looked it up, because then the code
/// knows it.
class json_value {
 public:
  bool is_null() const noexcept;
  bool is_bool() const noexcept;
  bool is_number() const noexcept;
  bool is_string() const noexcept;
  bool is_array() const noexcept;
  bool is_object() const noexcept;

  void as_null() const;
  bool as_bool() const;
  template <detail::json_integer T>
  T as_integer() const {
    using limits = std::numeric_limits<T>;
    if constexpr (std::signed_integral<T>)
      return static_cast<T>(as_signed(limits::min(), limits::max()));
    else
      return static_cast<T>(as_unsigned(limits::max()));
  }
  /// The nearest value; also {"$float":...}. A number too large for the type is bad data.
  double as_double() const;
  float as_float() const;
  /// The bytes; also {"$base64":...}.
  std::string as_string() const;
  /// The elements of an array, or the members of an object.
  json_items as_array() const;
  json_items as_object() const;

  /// How many elements or members it has; 0 for what is neither array nor object.
  std::size_t size() const noexcept;

  /// Throws errc::bad_data: `expected` ("a date") was expected here, but this value was found.
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  friend class detail::json_document;
  friend class json_items;

  json_value(const detail::json_document& document, std::size_t index) noexcept
      : document_(&document), index_(index) {}
  const detail::json_node& node() const noexcept;
  std::string_view text() const noexcept;
  /// The string in an object whose only member is `tag`.
  std::string_view tagged(std::string_view tag, std::string_view expected) const;
  std::int64_t as_signed(std::int64_t min, std::int64_t max) const;
  std::uint64_t as_unsigned(std::uint64_t max) const;
  template <class Float>
  Float as_floating() const;

  const detail::json_document* document_;
  std::size_t index_;
};

/// Iterates over the elements of an array or the members of an object.
class json_items {
 public:
  /// Moves to the first element, then to the next; false at the end.
  bool next() noexcept;
  /// Moves to the member of this name; false if there is none. Fast if it is the next one. If a
  /// name occurs several times, any of them may be found.
  bool find(std::string_view name) noexcept;
  /// Requires: next() or find() was true.
  json_value value() const noexcept { return json_value(*document_, at_); }
  /// The name of the member. Requires: as value(), in an object.
  std::string_view key() const noexcept;

 private:
  friend class json_value;
  json_items(const detail::json_document& document, std::size_t container) noexcept;
  bool know_key() noexcept;

  const detail::json_document* document_;
  std::size_t first_;  // the first entry; in an object entries begin with their key
  std::size_t end_;
  std::size_t next_;
  std::size_t at_ = 0;  // the current value
  bool object_;
};

}  // namespace weir

#include <weir/detail/durable/json_member.hpp>
