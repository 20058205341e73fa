// SPDX-License-Identifier: MIT
#include <weir/http/request.hpp>

#include <algorithm>
#include <utility>

#include <weir/error.hpp>

#include "io/http_connection.hpp"
#include "io/http_exchange.hpp"

namespace weir::http {

namespace {

void take_body(detail::http_exchange& x) {
  if (std::exchange(x.body_taken, true))
    throw error(errc::already_taken, "the body of " + std::string(x.head.method) + " " + x.path +
                                         " was taken before; keep it where it is needed twice");
}

task<std::string> read_whole_body(std::shared_ptr<detail::body_access> access,
                                  std::uint64_t length) {
  std::string all;
  all.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(length, 64 * 1024)));
  for (bool more = true; more;) more = co_await detail::http_connection::read_body(access, all);
  co_return all;
}

weir::stream<std::string> read_body_pieces(std::shared_ptr<detail::body_access> access) {
  for (;;) {
    std::string piece;
    const bool more = co_await detail::http_connection::read_body(access, piece);
    if (!more) co_return;
    co_yield std::move(piece);
  }
}

}  // namespace

std::string_view request::method() const noexcept { return exchange_->head.method; }
std::string_view request::target() const noexcept { return exchange_->head.target; }
std::string_view request::path() const noexcept { return exchange_->path; }

std::optional<std::string> request::query(std::string_view key) const {
  return detail::query_value(exchange_->target.query, key);
}

std::optional<std::string_view> request::header(std::string_view name) const noexcept {
  return exchange_->head.find(name);
}

std::string_view request::param(std::string_view name) const {
  for (const auto& [known, value] : exchange_->params)
    if (known == name) return value;
  throw error(errc::invalid_argument, "the pattern of the route for " + exchange_->path +
                                          " has no param '" + std::string(name) + "'");
}

io::endpoint request::peer() const { return exchange_->connection->peer(); }

std::optional<time_point> request::deadline() const noexcept { return exchange_->deadline; }

task<std::string> request::body() {
  take_body(*exchange_);
  return read_whole_body(exchange_->share_body(), exchange_->head.length);
}

stream<std::string> request::body_stream() {
  take_body(*exchange_);
  return read_body_pieces(exchange_->share_body());
}

}  // namespace weir::http
