// SPDX-License-Identifier: MIT
//
// The WebSocket server of io_load in the manner of Beast's example websocket_server_async, see
// io/load.cpp: a session whose handlers keep it alive, with the timeouts that Beast suggests. No
// strand and the concrete executor, because there is one thread.
#include <memory>

#include <boost/beast/websocket.hpp>

#include "peers/beast/hello.hpp"

namespace {

namespace websocket = bench::beast::websocket;

class session : public std::enable_shared_from_this<session> {
 public:
  explicit session(bench::tcp_socket socket) : stream_(std::move(socket)) {}

  void begin() {
    stream_.set_option(websocket::stream_base::timeout::suggested(bench::beast::role_type::server));
    stream_.binary(true);
    stream_.auto_fragment(false);
    stream_.async_accept([self = shared_from_this()](bench::error_code error) {
      if (!error) self->read();
    });
  }

 private:
  void read() {
    stream_.async_read(buffer_, [self = shared_from_this()](bench::error_code error, std::size_t) {
      if (!error) self->write();
    });
  }

  void write() {
    stream_.async_write(buffer_.data(),
                        [self = shared_from_this()](bench::error_code error, std::size_t) {
                          if (error) return;
                          self->buffer_.clear();
                          self->read();
                        });
  }

  websocket::stream<bench::stream> stream_;
  bench::beast::flat_buffer buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::server_arguments arguments(argc, argv);
  boost::asio::io_context context(1);
  bench::tcp_acceptor acceptor = bench::listen(context, arguments.port);
  bench::accept_all(acceptor, [&](bench::tcp_socket socket) {
    std::make_shared<session>(std::move(socket))->begin();
  });
  context.run();
}
