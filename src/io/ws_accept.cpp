// SPDX-License-Identifier: MIT
#include <weir/ws/accept.hpp>

#include <optional>

#include <weir/detail/core/attempt.hpp>

#include "io/http_exchange.hpp"
#include "io/http_server.hpp"
#include "io/http_text.hpp"
#include "io/ws_core.hpp"
#include "io/ws_handshake.hpp"

namespace weir::detail {

namespace {

/// The connection that a 101 leads to.
class ws_upgrade final : public response_upgrade {
 public:
  ws_upgrade(std::unique_ptr<ws_handler> handler, const ws::ws_options& options,
             std::string subprotocol)
      : handler_(std::move(handler)), options_(options), subprotocol_(std::move(subprotocol)) {
    options_.subprotocol = {};
    options_.tls = {};
  }

  task<> run(http_server& server, io::socket socket, http_buffer in) override {
    ws::connection connection(std::make_unique<ws_core>(
        std::move(socket), std::move(in), ws_core::role::server, options_, subprotocol_));
    draining told(connection.core());
    const http_server::upgrade_watch watch(server, told);
    outcome<void> how;
    auto handle = [&] { return handler_->handle(connection); };
    co_await detail::into(how, handle);
    // Cancelled: the destructor says 1001, as far as that needs no wait.
    if (!how.is_cancelled())
      co_await connection.core().finish(how.is_error() ? ws_code::internal_error : ws_code::normal);
    co_await detail::finish_as(how);
  }

 private:
  class draining final : public upgraded_connection {
   public:
    explicit draining(ws_core& core) noexcept : core_(core) {}
    void drain() noexcept override { core_.go_away(); }

   private:
    ws_core& core_;
  };

  std::unique_ptr<ws_handler> handler_;
  ws::ws_options options_;
  std::string subprotocol_;
};

/// How often a field occurs.
std::size_t count_fields(const http_head& head, std::string_view name) noexcept {
  std::size_t n = 0;
  for (const http_field& f : head.fields)
    if (same_ignoring_case(f.name, name)) ++n;
  return n;
}

/// A list that may be spread over several fields has this member.
bool has_member(const http_head& head, std::string_view name, std::string_view member) noexcept {
  for (const http_field& f : head.fields)
    if (same_ignoring_case(f.name, name) && http_list_has(f.value, member)) return true;
  return false;
}

/// Why a request is no handshake.
http_fault check_handshake(const http_head& head) {
  if (!has_member(head, "upgrade", "websocket"))
    return {426, "this is for WebSocket connections\n"};
  if (!has_member(head, "connection", "upgrade"))
    return {400, "a WebSocket handshake needs connection: upgrade\n"};
  if (head.method != "GET" || head.minor == 0)
    return {400, "a WebSocket handshake is a GET of HTTP/1.1\n"};
  if (head.framing != http_framing::none && head.length != 0)
    return {400, "a WebSocket handshake has no body\n"};
  const auto version = head.find("sec-websocket-version");
  if (!version) return {400, "a WebSocket handshake needs sec-websocket-version\n"};
  if (*version != "13") return {426, "only version 13 of WebSocket is spoken here\n"};
  const auto key = head.find("sec-websocket-key");
  if (!key || count_fields(head, "sec-websocket-key") != 1 || !is_ws_key(*key))
    return {400, "a WebSocket handshake needs one sec-websocket-key of 16 bytes\n"};
  return {};
}

http::response refusal(http_fault fault) {
  http::response r(fault.status, fault.text);
  if (fault.status == 426) r.set("upgrade", "websocket").set("sec-websocket-version", "13");
  return r;
}

/// The first of ours that the client offers.
std::string choose_subprotocol(const http_head& head, std::string_view ours) {
  std::string chosen;
  for_each_member(ours, [&](std::string_view name) {
    if (chosen.empty() && offers_subprotocol(head, name)) chosen = name;
  });
  return chosen;
}

task<http::response> answer_handshake(http::request& r, std::unique_ptr<ws_handler> handler,
                                      ws::ws_options options, std::string subprotocols) {
  check_ws_options(options);
  check_subprotocols(subprotocols);
  const http_head& head = r.exchange().head;
  if (const http_fault bad = check_handshake(head)) co_return refusal(bad);
  http::headers fields;
  fields.set("upgrade", "websocket");
  fields.set("sec-websocket-accept", ws_accept_of(*head.find("sec-websocket-key")));
  std::string chosen = choose_subprotocol(head, subprotocols);
  if (!chosen.empty()) fields.set("sec-websocket-protocol", chosen);
  co_return http::response(std::move(fields), std::make_shared<ws_upgrade>(
                                                  std::move(handler), options, std::move(chosen)));
}

}  // namespace

task<http::response> ws_accept(http::request& r, std::unique_ptr<ws_handler> handler,
                               ws::ws_options options) {
  std::string subprotocols(options.subprotocol);
  options.subprotocol = {};
  options.tls = {};
  return answer_handshake(r, std::move(handler), options, std::move(subprotocols));
}

}  // namespace weir::detail
