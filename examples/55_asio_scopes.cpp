// SPDX-License-Identifier: MIT
// Third step: a scope owns the connections; ending the server ends them all.
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <weir/interop/asio.hpp>
#include <weir/weir.hpp>

#include <iostream>
#include <string>
#include <tuple>
#include <utility>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

weir::task<> serve_one(tcp::socket socket) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer;
  bool again = true;
  while (again) {
    http::request<http::string_body> request;
    auto read = http::async_read(stream, buffer, request, asio::as_tuple(weir::use_weir));
    const auto result = co_await weir::with_timeout(std::chrono::seconds(30), std::move(read));
    if (std::get<0>(result)) co_return;  // the client has gone
    http::response<http::string_body> response(http::status::ok, request.version());
    response.body() = "you asked for " + std::string(request.target());
    again = request.keep_alive();
    response.keep_alive(again);
    response.prepare_payload();
    co_await http::async_write(stream, response, weir::use_weir);
  }
}

weir::task<> serve(asio::io_context& context, tcp::acceptor& acceptor) {
  weir::scope_options options;
  options.name = "connections";
  options.failure = weir::failure::isolate;  // an error of one connection ends that one
  co_await weir::with_scope(options, [&](weir::scope& connections) -> weir::task<> {
    for (;;) {
      tcp::socket socket(context);
      co_await acceptor.async_accept(socket, weir::use_weir);
      connections.spawn(serve_one(std::move(socket)));
    }
  });
}

std::string ask(unsigned short port, const std::string& target) {
  asio::io_context context;
  tcp::socket socket(context);
  socket.connect({asio::ip::address_v4::loopback(), port});
  http::write(socket, http::request<http::empty_body>(http::verb::get, target, 11));
  beast::flat_buffer buffer;
  http::response<http::string_body> response;
  http::read(socket, buffer, response);
  return response.body();
}

weir::task<> program(asio::io_context& context) {
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  const unsigned short port = acceptor.local_endpoint().port();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.background(serve(context, acceptor));
    co_await weir::blocking([&] {
      std::cout << ask(port, "/one") << "\n" << ask(port, "/two") << "\n";
    });
  });
  std::cout << "every connection has ended\n";
}

int main() {
  asio::io_context context;
  weir::run_on(context, program(context));
}
