// SPDX-License-Identifier: MIT
// Second step: the session is a coroutine, and the callback that accepts starts it.
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <weir/interop/asio.hpp>
#include <weir/weir.hpp>

#include <exception>
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

void accept_next(asio::io_context& context, tcp::acceptor& acceptor) {
  acceptor.async_accept([&](beast::error_code error, tcp::socket socket) {
    if (error) return;
    weir::spawn_on(context, serve_one(std::move(socket)), [](std::exception_ptr) {});
    accept_next(context, acceptor);
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
  accept_next(context, acceptor);
  const unsigned short port = acceptor.local_endpoint().port();
  co_await weir::blocking([&] {
    std::cout << ask(port, "/one") << "\n" << ask(port, "/two") << "\n";
  });
}

int main() {
  asio::io_context context;
  weir::run_on(context, program(context));
  std::cout << "done\n";
}
