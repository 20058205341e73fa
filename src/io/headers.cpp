// SPDX-License-Identifier: MIT
#include <weir/http/headers.hpp>

#include <algorithm>

#include <weir/error.hpp>

#include "io/http_text.hpp"

namespace weir::http {

namespace {

void require_field(std::string_view name, std::string_view value) {
  if (!detail::is_http_token(name))
    throw error(errc::invalid_argument,
                "not the name of a header field: '" + std::string(name) + "'");
  if (!detail::is_http_value(value))
    throw error(errc::invalid_argument, "the value of the header field '" + std::string(name) +
                                            "' has a control character; encode it");
}

}  // namespace

headers& headers::set(std::string_view name, std::string_view value) {
  require_field(name, value);
  // The arguments may be views of a field that is erased.
  field kept(name, detail::trim_http(value));
  erase(kept.name());
  fields_.push_back(std::move(kept));
  return *this;
}

headers& headers::add(std::string_view name, std::string_view value) {
  require_field(name, value);
  fields_.push_back(field(name, detail::trim_http(value)));
  return *this;
}

std::optional<std::string_view> headers::get(std::string_view name) const noexcept {
  for (const field& f : fields_)
    if (detail::same_ignoring_case(f.name_, name)) return f.value_;
  return std::nullopt;
}

std::size_t headers::erase(std::string_view name) noexcept {
  return std::erase_if(fields_,
                       [&](const field& f) { return detail::same_ignoring_case(f.name_, name); });
}

}  // namespace weir::http
