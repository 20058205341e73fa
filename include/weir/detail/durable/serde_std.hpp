// SPDX-License-Identifier: MIT
// weir::serde for the types of the standard library. Containers are recognised by their interface,
// so that their headers need not be included.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <weir/durable/serde.hpp>

namespace weir {

namespace detail {

template <class T>
concept never_null = requires { requires serde<T>::never_null; };

template <class T>
concept sequence = !described<T> && requires(T c, typename T::value_type v) {
  c.push_back(static_cast<typename T::value_type&&>(v));
  c.begin() != c.end();
};

template <class T>
concept map_like = !described<T> && requires(T c) {
  typename T::mapped_type;
  c.begin()->first;
  c.begin()->second;
  c.emplace(std::declval<typename T::key_type>(), std::declval<typename T::mapped_type>());
};

template <class T>
concept set_like = !described<T> && !map_like<T> && requires(T c) {
  requires std::same_as<typename T::key_type, typename T::value_type>;
  c.begin() != c.end();
  c.insert(std::declval<typename T::key_type>());
};

/// A container whose order is not part of its value.
template <class T>
concept unordered = requires { typename T::hasher; };

/// Where keys are unique, a duplicate key is an error, so that no element is lost.
template <class Inserted>
void check_inserted(const Inserted& inserted, const json_value& in) {
  if constexpr (requires { inserted.second; })
    if (!inserted.second) in.fail("a key that was not there before");
}

/// Calls `write` for each element of an array or object that has been begun.
template <class C, class F>
void write_each(json_writer& out, const C& container, F write) {
  if constexpr (unordered<C>) {
    json_sorter sorter(out);
    for (const auto& element : container) {
      sorter.element();
      write(element);
    }
    sorter.sort();
  } else {
    for (const auto& element : container) write(element);
  }
}

/// An optional value: null, or the value; in an array if the value itself may be null.
template <class T>
void write_nullable(json_writer& out, const T* value) {
  if (value == nullptr) return out.null();
  if constexpr (never_null<T>) {
    serde<T>::write(out, *value);
  } else {
    out.begin_array();
    serde<T>::write(out, *value);
    out.end_array();
  }
}

/// Requires: not null.
template <class T>
T read_nullable(const json_value& in) {
  if constexpr (never_null<T>) {
    return serde<T>::read(in);
  } else {
    if (in.size() != 1) in.fail("null or an array of one element");
    json_items items = in.as_array();
    items.next();
    return serde<T>::read(items.value());
  }
}

/// Requires: `items` has another one.
template <class T>
T read_next(json_items& items) {
  items.next();
  return serde<T>::read(items.value());
}

json_items items_of_tuple(const json_value& in, std::size_t size);
std::size_t read_variant_index(const json_value& in, std::size_t alternatives);
[[noreturn]] void raise_valueless_variant();

}  // namespace detail

template <class Rep, class Period>
struct serde<std::chrono::duration<Rep, Period>> {
  static constexpr bool never_null = true;
  using duration = std::chrono::duration<Rep, Period>;
  static void write(json_writer& out, duration value) { serde<Rep>::write(out, value.count()); }
  static duration read(const json_value& in) { return duration(serde<Rep>::read(in)); }
};

template <class Clock, class Duration>
struct serde<std::chrono::time_point<Clock, Duration>> {
  static constexpr bool never_null = true;
  using time_point = std::chrono::time_point<Clock, Duration>;
  static void write(json_writer& out, time_point value) {
    serde<Duration>::write(out, value.time_since_epoch());
  }
  static time_point read(const json_value& in) { return time_point(serde<Duration>::read(in)); }
};

template <class T>
struct serde<std::optional<T>> {
  static void write(json_writer& out, const std::optional<T>& value) {
    detail::write_nullable(out, value ? std::addressof(*value) : nullptr);
  }
  static std::optional<T> read(const json_value& in) {
    if (in.is_null()) return std::nullopt;
    return std::optional<T>(std::in_place, detail::read_nullable<T>(in));
  }
};

template <class T>
struct serde<std::unique_ptr<T>> {
  static void write(json_writer& out, const std::unique_ptr<T>& value) {
    detail::write_nullable(out, value.get());
  }
  static std::unique_ptr<T> read(const json_value& in) {
    if (in.is_null()) return nullptr;
    return std::make_unique<T>(detail::read_nullable<T>(in));
  }
};

/// [index, value]: alternatives may have equal types.
template <class... Ts>
struct serde<std::variant<Ts...>> {
  static constexpr bool never_null = true;
  using variant = std::variant<Ts...>;

  static void write(json_writer& out, const variant& value) {
    if (value.valueless_by_exception()) detail::raise_valueless_variant();
    out.begin_array();
    out.number(value.index());
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((value.index() == I ? serde<Ts>::write(out, *std::get_if<I>(&value)) : void()), ...);
    }(std::index_sequence_for<Ts...>());
    out.end_array();
  }
  static variant read(const json_value& in) {
    const std::size_t index = detail::read_variant_index(in, sizeof...(Ts));
    return read_as(index, in, std::index_sequence_for<Ts...>());
  }

 private:
  template <std::size_t I>
  static variant alternative(const json_value& in) {
    json_items items = in.as_array();
    items.next();
    return variant(std::in_place_index<I>,
                   detail::read_next<std::variant_alternative_t<I, variant>>(items));
  }
  template <std::size_t... I>
  static variant read_as(std::size_t index, const json_value& in, std::index_sequence<I...>) {
    constexpr variant (*readers[])(const json_value&) = {&alternative<I>...};
    return readers[index](in);
  }
};

/// An array with exactly this many elements.
template <class... Ts>
struct serde<std::tuple<Ts...>> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, const std::tuple<Ts...>& value) {
    out.begin_array();
    std::apply([&](const Ts&... parts) { (serde<Ts>::write(out, parts), ...); }, value);
    out.end_array();
  }
  static std::tuple<Ts...> read(const json_value& in) {
    [[maybe_unused]] json_items items = detail::items_of_tuple(in, sizeof...(Ts));
    return std::tuple<Ts...>{detail::read_next<Ts>(items)...};
  }
};

template <class A, class B>
struct serde<std::pair<A, B>> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, const std::pair<A, B>& value) {
    out.begin_array();
    serde<A>::write(out, value.first);
    serde<B>::write(out, value.second);
    out.end_array();
  }
  static std::pair<A, B> read(const json_value& in) {
    json_items items = detail::items_of_tuple(in, 2);
    return std::pair<A, B>{detail::read_next<A>(items), detail::read_next<B>(items)};
  }
};

template <class T, std::size_t N>
struct serde<std::array<T, N>> {
  static constexpr bool never_null = true;
  static void write(json_writer& out, const std::array<T, N>& value) {
    out.begin_array();
    for (const T& element : value) serde<T>::write(out, element);
    out.end_array();
  }
  static std::array<T, N> read(const json_value& in) {
    json_items items = detail::items_of_tuple(in, N);
    if constexpr (std::is_default_constructible_v<T> && std::is_move_assignable_v<T>) {
      std::array<T, N> result{};
      for (T& element : result) element = detail::read_next<T>(items);
      return result;
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<T, N>{(static_cast<void>(I), detail::read_next<T>(items))...};
      }(std::make_index_sequence<N>());
    }
  }
};

template <detail::sequence T>
struct serde<T> {
  static constexpr bool never_null = true;
  using element = typename T::value_type;
  static void write(json_writer& out, const T& value) {
    out.begin_array();
    for (const element& each : value) serde<element>::write(out, each);
    out.end_array();
  }
  static T read(const json_value& in) {
    T result;
    json_items items = in.as_array();
    if constexpr (requires { result.reserve(std::size_t{}); }) result.reserve(in.size());
    while (items.next()) result.push_back(serde<element>::read(items.value()));
    return result;
  }
};

/// An array; unordered containers are sorted by the bytes of their elements.
template <detail::set_like T>
struct serde<T> {
  static constexpr bool never_null = true;
  using key = typename T::key_type;
  static void write(json_writer& out, const T& value) {
    out.begin_array();
    detail::write_each(out, value, [&](const key& each) { serde<key>::write(out, each); });
    out.end_array();
  }
  static T read(const json_value& in) {
    T result;
    for (json_items items = in.as_array(); items.next();)
      detail::check_inserted(result.insert(serde<key>::read(items.value())), items.value());
    return result;
  }
};

/// An array of [key, value]; an object if the keys are strings and all of them are UTF-8.
template <detail::map_like T>
struct serde<T> {
  static constexpr bool never_null = true;
  using key = typename T::key_type;
  using mapped = typename T::mapped_type;
  static constexpr bool named = std::is_same_v<key, std::string>;

  static void write(json_writer& out, const T& value) {
    if constexpr (named)
      if (all_utf8(value)) return write_object(out, value);
    out.begin_array();
    detail::write_each(out, value, [&](const auto& each) {
      out.begin_array();
      serde<key>::write(out, each.first);
      serde<mapped>::write(out, each.second);
      out.end_array();
    });
    out.end_array();
  }

  static T read(const json_value& in) {
    if constexpr (named)
      if (in.is_object()) return read_object(in);
    T result;
    for (json_items items = in.as_array(); items.next();) {
      json_items parts = detail::items_of_tuple(items.value(), 2);
      key name = detail::read_next<key>(parts);
      mapped value = detail::read_next<mapped>(parts);
      detail::check_inserted(result.emplace(std::move(name), std::move(value)), items.value());
    }
    return result;
  }

 private:
  static bool all_utf8(const T& value) {
    for (const auto& each : value)
      if (!detail::is_utf8(each.first)) return false;
    return true;
  }
  static void write_object(json_writer& out, const T& value) {
    out.begin_object();
    detail::write_each(out, value, [&](const auto& each) {
      out.key(each.first);
      serde<mapped>::write(out, each.second);
    });
    out.end_object();
  }
  static T read_object(const json_value& in) {
    T result;
    for (json_items items = in.as_object(); items.next();) {
      mapped value = serde<mapped>::read(items.value());
      detail::check_inserted(result.emplace(std::string(items.key()), std::move(value)),
                             items.value());
    }
    return result;
  }
};

}  // namespace weir
