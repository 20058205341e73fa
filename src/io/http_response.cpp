// SPDX-License-Identifier: MIT
#include <weir/http/response.hpp>

#include "io/http_text.hpp"
#include "io/http_write.hpp"

namespace weir::http {

status_error::status_error(int status)
    : error(errc::bad_data, "the server answered with status " + std::to_string(status) + " " +
                                std::string(detail::http_reason(status))),
      status_(status) {}

response::response(int status, std::string body) : body_(std::move(body)), status_(status) {
  if (status < 100 || status > 999)
    throw error(errc::invalid_argument,
                "status " + std::to_string(status) + " is not between 100 and 999");
}

response response::json(std::string text) {
  return response(200, std::move(text)).set("content-type", "application/json");
}

response response::stream(any_stream<std::string> pieces) {
  response r(200);
  r.stream_ = std::make_shared<detail::response_stream>();
  r.stream_->pieces.emplace(std::move(pieces));
  r.set("content-type", "application/octet-stream");
  return r;
}

response response::events(any_stream<event> events) {
  response r(200);
  r.stream_ = std::make_shared<detail::response_stream>();
  r.stream_->events.emplace(std::move(events));
  r.set("content-type", "text/event-stream").set("cache-control", "no-cache");
  return r;
}

void response::require_own_length(std::string_view name, std::string_view value) const {
  if (detail::same_ignoring_case(name, "content-length") &&
      (stream_ != nullptr || detail::plain_digits(detail::trim_http(value)) != body_.size()))
    throw error(errc::invalid_argument,
                "content-length '" + std::string(value) + "' is not the length of the body (" +
                    (stream_ != nullptr ? "a stream" : std::to_string(body_.size()) + " bytes") +
                    "); leave it to the server");
}

void response::set_header(std::string_view name, std::string_view value) {
  require_own_length(name, value);
  headers_.set(name, value);
}

void response::add_header(std::string_view name, std::string_view value) {
  require_own_length(name, value);
  headers_.add(name, value);
}

void response::raise_for_status() const {
  if (status_ >= 400) throw status_error(status_);
}

}  // namespace weir::http
