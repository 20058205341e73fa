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

io::serve_options serve_options_of(const http::http_options& options) {
  io::serve_options how;
  how.max_connections = options.max_connections;
  how.drain = options.drain;
  return how;
}

std::string take_name(http::http_options& options) {
  std::string name(options.name.empty() ? "http" : options.name.view());
  options.name = {};
  return name;
}

class http_on_loop final : public loop_service {
 public:
  http_on_loop(std::unique_ptr<http_handler> handler, const http::http_options& options,
               std::string name)
      : server_(std::move(handler), options), name_(std::move(name)) {}
  task<> serve(io::listener& l, shared_governor& places) override {
    return serve_connections(l, server_, serve_options_of(server_.options()), name_, &places);
  }

 private:
  http_server server_;
  std::string name_;
};

task<> run_http(io::listener& l, std::unique_ptr<http_handler> handler, http::http_options options,
                std::string name) {
  check_http(options);
  http_server server(std::move(handler), options);
  co_await serve_connections(l, server, serve_options_of(options), std::move(name));
}

}  // namespace

task<> serve_http(io::listener& l, std::unique_ptr<http_handler> handler,
                  http::http_options options) {
  std::string name = take_name(options);
  return run_http(l, std::move(handler), options, std::move(name));
}

task<> serve_http(io::listeners& l, std::vector<std::unique_ptr<http_handler>> handlers,
                  http::http_options options) {
  check_http(options);
  const std::string name = take_name(options);
  std::vector<std::unique_ptr<loop_service>> services;
  services.reserve(handlers.size());
  for (std::unique_ptr<http_handler>& one : handlers)
    services.push_back(std::make_unique<http_on_loop>(std::move(one), options, name));
  return serve_on_loops(l.core(), std::move(services), options.max_connections, name);
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
