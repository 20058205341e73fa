// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

/// The header fields of a message, in order. Names are compared without regard to case.
///
/// A name that is no token, and a value with a control character (CR, LF, NUL, ...) would break the
/// message: errc::invalid_argument.
class headers {
 public:
  /// One field.
  class field {
   public:
    field(std::string_view name, std::string_view value) : name_(name), value_(value) {}
    const std::string& name() const noexcept { return name_; }
    const std::string& value() const noexcept { return value_; }

   private:
    friend class headers;
    std::string name_;
    std::string value_;
  };

  headers() noexcept {}

  /// Replaces all fields of this name by one.
  headers& set(std::string_view name, std::string_view value);
  /// Adds a field, for those that may occur several times, as set-cookie.
  headers& add(std::string_view name, std::string_view value);
  /// The first field of this name.
  std::optional<std::string_view> get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept { return get(name).has_value(); }
  /// Returns how many fields it has removed.
  std::size_t erase(std::string_view name) noexcept;

  std::size_t size() const noexcept { return fields_.size(); }
  bool empty() const noexcept { return fields_.empty(); }
  auto begin() const noexcept { return fields_.begin(); }
  auto end() const noexcept { return fields_.end(); }

  // Below: for the library.
  /// Adds a field that was received and checked.
  void add_checked(std::string_view name, std::string_view value) {
    fields_.emplace_back(name, value);
  }

 private:
  std::vector<field> fields_;
};

}  // namespace weir::http
