// SPDX-License-Identifier: MIT
#include <weir/ws/connect.hpp>

#include <array>
#include <cstring>
#include <utility>

#include <weir/detail/core/run_rules.hpp>
#include <weir/io/connect.hpp>
#include <weir/io/tls.hpp>
#include <weir/time.hpp>

#include "core/error.hpp"
#include "io/http_head.hpp"
#include "io/http_text.hpp"
#include "io/http_url.hpp"
#include "io/http_write.hpp"
#include "io/ws_core.hpp"
#include "io/ws_handshake.hpp"

namespace weir::ws {

namespace {

constexpr detail::http_limits answer_limits{.max_head = 64 * 1024, .max_fields = 1000};

/// The URL as one of HTTP.
detail::http_url parse_ws_url(std::string_view text) {
  const bool plain = detail::same_ignoring_case(text.substr(0, 5), "ws://");
  const bool secure = detail::same_ignoring_case(text.substr(0, 6), "wss://");
  if (!plain && !secure)
    detail::raise(errc::invalid_argument,
                  "ws::connect: '" + std::string(text) + "' does not begin with ws:// or wss://");
  if (text.find('#') != std::string_view::npos)
    detail::raise(errc::invalid_argument,
                  "ws::connect: '" + std::string(text) + "' has a fragment, which cannot be sent");
  return detail::parse_url("http" + std::string(text.substr(2)));
}

std::string new_key() {
  std::array<unsigned char, 16> bytes{};
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t part = random();
    std::memcpy(bytes.data() + at, &part, sizeof part);
  }
  return detail::ws_key(bytes);
}

/// Fields that belong to the handshake.
bool is_own(std::string_view name) noexcept {
  for (const char* own : {"upgrade", "connection", "content-length", "transfer-encoding", "expect"})
    if (detail::same_ignoring_case(name, own)) return true;
  constexpr std::string_view prefix = "sec-websocket-";
  return detail::same_ignoring_case(name.substr(0, prefix.size()), prefix);
}

std::string request_of(const detail::http_url& url, const std::string& key,
                       const std::string& subprotocols, const http::headers& fields) {
  std::string out;
  detail::append_request_line(out, "GET", url.target);
  if (!fields.has("host")) detail::append_http_field(out, "host", url.authority());
  detail::append_http_field(out, "upgrade", "websocket");
  detail::append_http_field(out, "connection", "upgrade");
  detail::append_http_field(out, "sec-websocket-version", "13");
  detail::append_http_field(out, "sec-websocket-key", key);
  if (!subprotocols.empty()) detail::append_http_field(out, "sec-websocket-protocol", subprotocols);
  for (const http::headers::field& f : fields) {
    if (is_own(f.name()))
      detail::raise(errc::invalid_argument,
                    "ws::connect: the header " + std::string(f.name()) + " is the handshake's");
    detail::append_http_field(out, f.name(), f.value());
  }
  detail::append_head_end(out);
  return out;
}

/// Copies of the texts of ws_options, which need not outlive the call.
struct texts {
  explicit texts(const ws_options& o)
      : subprotocols(o.subprotocol),
        ca_file(o.tls.ca_file),
        server_name(o.tls.server_name),
        alpn(o.tls.alpn.empty() ? "http/1.1" : o.tls.alpn),
        cert_file(o.tls.cert_file),
        key_file(o.tls.key_file) {}

  std::string subprotocols;
  std::string ca_file;
  std::string server_name;
  std::string alpn;
  std::string cert_file;
  std::string key_file;
};

task<io::socket> connect_socket(const detail::http_url& url, const texts& t, bool verify) {
  if (!url.tls) return io::connect(url.host, url.port);
  return io::tls_connect(url.host, url.port,
                         {.ca_file = t.ca_file,
                          .server_name = t.server_name,
                          .alpn = t.alpn,
                          .cert_file = t.cert_file,
                          .key_file = t.key_file,
                          .verify = verify});
}

struct answered {
  detail::http_head head;
  detail::http_buffer in;  // what came behind it
};

task<answered> read_answer(io::socket& socket, std::string whose) {
  answered a;
  detail::http_head_reader reader(answer_limits);
  for (;;) {
    const auto found = reader.read_response(a.in.view(), a.head, false);
    if (found.fault)
      detail::raise(errc::bad_data, whose + ": the answer is not HTTP: " + found.fault.text);
    if (found.consumed > 0) {
      a.in.consume(found.consumed);
      if (a.head.status >= 200 || a.head.status == 101) co_return a;
      continue;  // an interim answer
    }
    const std::size_t n = co_await socket.read_some(a.in.room(1));
    if (n == 0)
      detail::raise(errc::end_of_stream,
                    whose + ": the server ended the connection in the handshake");
    a.in.added(n);
  }
}

/// Throws unless the server has accepted. Returns the chosen subprotocol.
std::string check_answer(const detail::http_head& head, const std::string& key,
                         const std::string& subprotocols, const std::string& whose) {
  const auto refuse = [&](const std::string& why) {
    detail::raise(errc::bad_data, whose + ": the handshake was refused: " + why);
  };
  if (head.status != 101) refuse("status " + std::to_string(head.status));
  const auto upgrade = head.find("upgrade");
  const auto connection = head.find("connection");
  const auto accept = head.find("sec-websocket-accept");
  if (!upgrade || !detail::http_list_has(*upgrade, "websocket") || !connection ||
      !detail::http_list_has(*connection, "upgrade"))
    refuse("the answer is not an upgrade to WebSocket");
  if (!accept || *accept != detail::ws_accept_of(key))
    refuse("sec-websocket-accept does not belong to the key");
  if (head.find("sec-websocket-extensions"))
    refuse("the server uses an extension that was not offered");
  const auto chosen = head.find("sec-websocket-protocol");
  if (!chosen) return {};
  bool offered = false;
  detail::for_each_member(subprotocols,
                          [&](std::string_view name) { offered = offered || name == *chosen; });
  if (!offered) refuse("the server chose a subprotocol that was not offered");
  return std::string(*chosen);
}

task<connection> connect_to(std::string text, ws_options options, texts t, http::headers fields) {
  detail::require_no_run("ws::connect", text);
  detail::check_ws_options(options);
  detail::check_subprotocols(t.subprotocols);
  const detail::http_url url = parse_ws_url(text);
  const std::string key = new_key();
  const std::string request = request_of(url, key, t.subprotocols, fields);
  io::socket socket = co_await connect_socket(url, t, options.tls.verify);
  co_await socket.write_all(request);
  answered a = co_await read_answer(socket, text);
  std::string chosen = check_answer(a.head, key, t.subprotocols, text);
  co_return connection(std::make_unique<detail::ws_core>(std::move(socket), std::move(a.in),
                                                         detail::ws_core::role::client, options,
                                                         std::move(chosen)));
}

}  // namespace

task<connection> connect(std::string_view url, ws_options options, http::headers fields) {
  texts copies(options);
  options.subprotocol = {};
  options.tls = {.verify = options.tls.verify};
  return connect_to(std::string(url), options, std::move(copies), std::move(fields));
}

}  // namespace weir::ws
