// SPDX-License-Identifier: MIT
// How values are stored as JSON. docs/reference/serde.md shows the form of every type.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include <weir/detail/durable/describe.hpp>
#include <weir/durable/json.hpp>

/// Makes a struct storable: WEIR_DESCRIBE(order, id, lines, total); lists 0 to 64 members.
///
/// Requires: placed in the namespace of the struct, after it and before its first use (so the
/// struct is not local to a function); the members are public (those of a base may be listed),
/// storable and assignable; the struct can be default-constructed. Ensures: stored as an object in
/// the order of the list. When read, missing members keep the value of a default-constructed
/// struct, and unknown ones are ignored; so a member may be added or removed while data of the
/// other version of the program exists.
#define WEIR_DESCRIBE(type, ...)                                                      \
  template <class WeirVisitor>                                                        \
  constexpr void weir_describe_members(::weir::detail::described_tag<type>,           \
                                       [[maybe_unused]] WeirVisitor&& weir_visitor) { \
    __VA_OPT__(WEIR_DETAIL_SCAN(WEIR_DETAIL_VISIT(type, __VA_ARGS__)))                \
  }

namespace weir {

/// How a `T` is stored. Specialise it for types that WEIR_DESCRIBE does not support:
///
///     template <>
///     struct weir::serde<money> {
///       static void write(weir::json_writer& out, const money& m) { out.string(m.to_text()); }
///       static money read(const weir::json_value& in) { return money::parse(in.as_string()); }
///     };
///
/// Requires: `write` writes exactly one value, the same for equal values; `read` returns an equal
/// value, or calls `in.fail("a sum of money")`. A specialisation that never writes null may declare
/// `static constexpr bool never_null = true;`, which gives optionals of it a simpler form.
///
/// Provided for: bool, integers, enums, float, double, std::string (any bytes), optional,
/// unique_ptr, variant, monostate, pair, tuple, array, chrono durations and time points, containers
/// with push_back (vector, deque, list), sets and maps (ordered or not, any key), void, and structs
/// with WEIR_DESCRIBE. None of them copies a value. Errors: errc::too_large beyond 64 MiB or 128
/// levels of nesting; errc::bad_data for text of another form, with where, what was expected and
/// what was found.
template <class T>
struct serde {
  static void write(json_writer&, const T&) { explain(); }
  static T read(const json_value& in) {
    explain();
    in.fail("a type that weir can store");
  }

 private:
  static void explain() {
    static_assert(detail::described<T>,
                  "weir cannot store this type: write WEIR_DESCRIBE(type, members...) after it, in "
                  "its namespace, or specialise weir::serde<type>");
  }
};

template <>
struct serde<void> {
  static void write(json_writer& out) { out.null(); }
  static void read(const json_value& in) { in.as_null(); }
};

template <>
struct serde<std::monostate> {
  static void write(json_writer& out, std::monostate) { out.null(); }
  static std::monostate read(const json_value& in) { return in.as_null(), std::monostate(); }
};

template <>
struct serde<bool> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, bool value) { out.boolean(value); }
  static bool read(const json_value& in) { return in.as_bool(); }
};

template <detail::json_integer T>
struct serde<T> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, T value) { out.number(value); }
  static T read(const json_value& in) { return in.as_integer<T>(); }
};

template <class T>
  requires std::is_enum_v<T>
struct serde<T> {
  static constexpr bool never_null = true;
  using number = std::underlying_type_t<T>;
  static void write(json_writer& out, T value) {
    serde<number>::write(out, static_cast<number>(value));
  }
  static T read(const json_value& in) { return static_cast<T>(serde<number>::read(in)); }
};

template <>
struct serde<double> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, double value) { out.number(value); }
  static double read(const json_value& in) { return in.as_double(); }
};

template <>
struct serde<float> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, float value) { out.number(value); }
  static float read(const json_value& in) { return in.as_float(); }
};

template <>
struct serde<std::string> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, const std::string& value) { out.string(value); }
  static std::string read(const json_value& in) { return in.as_string(); }
};

template <detail::described T>
struct serde<T> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, const T& value) {
    out.begin_object();
    weir_describe_members(detail::described_tag<T>(), [&](const char* name, auto member) {
      out.key(name);
      serde<std::remove_cvref_t<decltype(value.*member)>>::write(out, value.*member);
    });
    out.end_object();
  }
  static T read(const json_value& in) {
    T value{};
    [[maybe_unused]] json_items items = in.as_object();
    weir_describe_members(detail::described_tag<T>(), [&](const char* name, auto member) {
      if (items.find(name))
        value.*member = serde<std::remove_cvref_t<decltype(value.*member)>>::read(items.value());
    });
    return value;
  }
};

namespace detail {

/// The value as JSON: equal values give the same bytes.
template <class T>
std::string encode(const T& value) {
  if constexpr (json_integer<T>) {
    return text_of_integer(value);
  } else {
    json_writer out;
    serde<T>::write(out, value);
    return out.take();
  }
}

/// encode<void>()
template <class T>
  requires std::is_void_v<T>
std::string encode() {
  return "null";
}

/// Reads text in the form that `encode` writes.
template <class T>
T decode(std::string_view text) {
  if constexpr (json_integer<T>)
    if (T value{}; read_integer(text, value)) return value;
  const json_document document(text);
  return serde<T>::read(document.root());
}

}  // namespace detail

/// The value as JSON, as the journal has it: equal values give the same bytes.
template <class T>
std::string to_json(const T& value) {
  return detail::encode(value);
}
/// Reads what `to_json` writes, from anywhere: missing members keep their default, unknown ones are
/// ignored. errc::bad_data, which quotes nothing of the text; errc::too_large.
template <class T>
T from_json(std::string_view text) {
  return detail::decode<T>(text);
}

}  // namespace weir

#include <weir/detail/durable/serde_std.hpp>
