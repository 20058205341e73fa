// SPDX-License-Identifier: MIT
//
// The HTTP server of io_load in the manner of Beast's example http_server_async, see io/load.cpp: a
// session whose handlers keep it alive, with a timeout for each request. No strand and the concrete
// executor, because there is one thread.
#include <memory>

#include "peers/beast/hello.hpp"

namespace {

class session : public std::enable_shared_from_this<session> {
 public:
  explicit session(bench::tcp_socket socket) : stream_(std::move(socket)) {}

  void read() {
    request_ = {};
    stream_.expires_after(bench::idle_timeout);
    bench::http::async_read(stream_, buffer_, request_,
                            [self = shared_from_this()](bench::error_code error, std::size_t) {
                              if (error) return self->close();
                              self->write();
                            });
  }

 private:
  void write() {
    response_ = bench::hello(request_);
    bench::http::async_write(stream_, response_,
                             [self = shared_from_this()](bench::error_code error, std::size_t) {
                               if (error || !self->response_.keep_alive()) return self->close();
                               self->read();
                             });
  }

  void close() {
    bench::error_code ignored;
    stream_.socket().shutdown(bench::tcp::socket::shutdown_send, ignored);
  }

  bench::stream stream_;
  bench::beast::flat_buffer buffer_;
  bench::request request_;
  bench::response response_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::server_arguments arguments(argc, argv);
  boost::asio::io_context context(1);
  bench::tcp_acceptor acceptor = bench::listen(context, arguments.port);
  bench::accept_all(acceptor, [&](bench::tcp_socket socket) {
    std::make_shared<session>(std::move(socket))->read();
  });
  context.run();
}
