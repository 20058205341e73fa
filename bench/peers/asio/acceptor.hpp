// SPDX-License-Identifier: MIT
//
// The listening socket of an Asio server on one thread. All its objects use the concrete executor
// of an io_context that is told that one thread runs it, which is Asio at its fastest.
#pragma once

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "support/server.hpp"

namespace bench {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<tcp, executor>;
using tcp_acceptor = asio::basic_socket_acceptor<tcp, executor>;

inline tcp_acceptor listen(asio::io_context& context, int port) {
  tcp_acceptor made(context.get_executor());
  const tcp::endpoint at(asio::ip::address_v4::loopback(), static_cast<unsigned short>(port));
  made.open(at.protocol());
  made.set_option(tcp::acceptor::reuse_address(true));
  made.bind(at);
  made.listen(backlog);
  announce(made.local_endpoint().port());
  return made;
}

/// Accepts for ever, and calls `start(socket)` for each connection.
template <typename Start>
void accept_all(tcp_acceptor& from, Start start) {
  from.async_accept([&from, start](error_code error, tcp_socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      start(std::move(socket));
    }
    accept_all(from, start);
  });
}

}  // namespace bench
