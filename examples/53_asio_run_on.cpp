// SPDX-License-Identifier: MIT
// The server of example 52, first step: weir runs the context, and all handlers stay as they are.
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <weir/interop/asio.hpp>
#include <weir/weir.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <thread>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

class session : public std::enable_shared_from_this<session> {
 public:
  explicit session(tcp::socket socket) : stream_(std::move(socket)) {}
  void start() {
    request_ = {};
    stream_.expires_after(std::chrono::seconds(30));
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  void answer() {
    response_ = {http::status::ok, request_.version()};
    response_.body() = "you asked for " + std::string(request_.target());
    response_.keep_alive(request_.keep_alive());
    response_.prepare_payload();
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->response_.keep_alive()) self->start();
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void accept_next(tcp::acceptor& acceptor) {
  acceptor.async_accept([&](beast::error_code error, tcp::socket socket) {
    if (error) return;
    std::make_shared<session>(std::move(socket))->start();
    accept_next(acceptor);
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
  accept_next(acceptor);
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
