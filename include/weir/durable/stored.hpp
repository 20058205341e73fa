// SPDX-License-Identifier: MIT
// The state of a keyed object, for its handlers.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/durable/command.hpp>
#include <weir/durable/serde.hpp>

namespace weir {
namespace detail {

/// Reads a stored value. The answer is its encoded text, which is empty if there is no value.
template <class T>
class stored_wait : public command_wait {
 public:
  using result = std::optional<T>;
  using command_wait::command_wait;
  answer_check type() const noexcept override { return &check_answer<T>; }
  std::optional<T> take() {
    require_value();
    return std::move(value_);
  }

 private:
  void read(std::string_view text) override {
    value_.reset();
    if (!text.empty()) value_.emplace(decode<T>(text));
  }
  std::optional<T> value_;
};

}  // namespace detail

/// A named value of the object whose handler runs; one per object key and name.
///
/// Ensures: an exclusive handler sees its own changes; they are committed together with its result
/// and its sends, in one record, and dropped if it fails or is cancelled. A shared handler sees
/// what was committed last at the time of each `get`. A value that cannot be decoded as T blocks
/// the run. Requires: used by fibers of a handler of an object, elsewhere errc::no_object; outside
/// of steps, else errc::inside_step. Costs: all values of all keys are kept in memory, encoded.
template <class T>
class stored {
  static_assert(!std::is_void_v<T>, "a stored value has a type");

 public:
  explicit stored(std::string_view name) : name_(name) { (void)detail::require_object("stored"); }

  /// The value; empty if there is none.
  [[nodiscard]] detail::pending<detail::stored_wait<T>> get(
      std::source_location site = std::source_location::current()) const {
    detail::command_setup setup(detail::require_object("stored"), detail::command_kind::stored,
                                site);
    setup.name = name_;
    return detail::pending<detail::stored_wait<T>>(std::move(setup));
  }
  /// Synchronous; errc::read_only in a shared handler.
  void set(const T& value, std::source_location site = std::source_location::current()) const {
    detail::require_object("stored").set_stored(name_, detail::encode(value), site);
  }
  /// Removes the value. Synchronous; errc::read_only in a shared handler.
  void clear(std::source_location site = std::source_location::current()) const {
    detail::require_object("stored").set_stored(name_, std::nullopt, site);
  }

 private:
  std::string name_;
};

/// The key of the object whose handler, or a step of it, runs. Elsewhere errc::no_object.
std::string this_key();

}  // namespace weir
