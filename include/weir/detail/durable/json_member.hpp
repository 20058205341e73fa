// SPDX-License-Identifier: MIT
// Part of <weir/durable/json.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

namespace detail {

/// One value of a document: scalars and keys store where their text is, containers where they end.
/// Eight bytes, because a text of 64 MiB may have 32 million of them.
struct json_node {
  std::uint32_t place;
  std::uint32_t size : 28;
  std::uint32_t kind : 4;
};

/// A parsed text: its values, in the order of the text.
///
/// Errors: errc::bad_data for text that is not JSON (with the byte offset) or nests deeper than
/// 128, errc::too_large for more than 64 MiB. Costs: eight bytes per value and its text.
class json_document {
 public:
  explicit json_document(std::string_view text);
  json_document(const json_document&) = delete;
  json_document& operator=(const json_document&) = delete;

  json_value root() const noexcept { return json_value(*this, 0); }

 private:
  friend class weir::json_value;
  friend class weir::json_items;

  std::string_view text_of(std::size_t index) const noexcept;
  std::size_t after(std::size_t index) const noexcept;
  std::string path_to(std::size_t index) const;

  mutable std::vector<json_node> nodes_;  // `find` marks the keys it has looked up
  std::string text_;
};

}  // namespace detail
}  // namespace weir
