// SPDX-License-Identifier: MIT
#include "io/http_server.hpp"

#include <string>
#include <utility>

#include <weir/error.hpp>

#include "io/http_connection.hpp"

namespace weir::detail {

namespace {

void require_http(bool holds, const char* what) {
  if (!holds) throw error(errc::invalid_argument, std::string("http::serve: ") + what);
}

void check_http(const http::http_options& o) {
  require_http(o.max_header >= 1, "max_header is below 1");
  require_http(o.max_body >= 0, "max_body is negative");
  require_http(o.header_timeout > duration::zero(), "header_timeout is not positive");
  require_http(o.idle_timeout > duration::zero(), "idle_timeout is not positive");
  require_http(o.progress_timeout > duration::zero(), "progress_timeout is not positive");
}

task<> run_http(io::listener& l, std::unique_ptr<http_handler> handler, http::http_options options,
                std::string name) {
  check_http(options);
  http_server server(std::move(handler), options);
  io::serve_options how;
  how.max_connections = options.max_connections;
  how.drain = options.drain;
  co_await serve_connections(l, server, how, std::move(name));
}

}  // namespace

task<> serve_http(io::listener& l, std::unique_ptr<http_handler> handler,
                  http::http_options options) {
  std::string name(options.name.empty() ? "http" : options.name.view());
  options.name = {};
  return run_http(l, std::move(handler), options, std::move(name));
}

task<> http_server::handle(io::socket& connection) {
  return http_connection::run(*this, connection);
}

void http_server::draining() noexcept {
  draining_ = true;
  // Closing only wakes their fibers, which leave the list later.
  for (http_connection* c = idle_; c != nullptr; c = c->next_idle_) c->close_idle();
  for (upgraded_connection* c : upgraded_) c->drain();
}

http_server::upgrade_watch::upgrade_watch(http_server& server, upgraded_connection& connection)
    : server_(server), connection_(connection) {
  server.upgraded_.insert(&connection);
  if (server.is_draining()) connection.drain();
}

std::unique_ptr<http_exchange> http_server::borrow() {
  if (unused_.empty()) return std::make_unique<http_exchange>(options_);
  auto again = std::move(unused_.back());
  unused_.pop_back();
  return again;
}

void http_server::give_back(std::unique_ptr<http_exchange> used) noexcept {
  used->end();
  used->in.clear();
  if (unused_.size() >= max_kept || used->in.capacity() > max_kept_bytes ||
      used->out.capacity() > max_kept_bytes)
    return;
  unused_.push_back(std::move(used));  // there is room: see the constructor
}

}  // namespace weir::detail
