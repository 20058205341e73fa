// SPDX-License-Identifier: MIT
//
// The echo server of io_load with callbacks, see io/load.cpp: a session that its handlers keep
// alive.
#include <memory>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "peers/asio/acceptor.hpp"

namespace {

class session : public std::enable_shared_from_this<session> {
 public:
  session(bench::tcp_socket socket, std::size_t buffer)
      : socket_(std::move(socket)), buffer_(buffer) {}

  void read() {
    socket_.async_read_some(boost::asio::buffer(buffer_),
                            [self = shared_from_this()](bench::error_code error, std::size_t n) {
                              if (!error) self->write(n);
                            });
  }

 private:
  void write(std::size_t n) {
    boost::asio::async_write(socket_, boost::asio::buffer(buffer_.data(), n),
                             [self = shared_from_this()](bench::error_code error, std::size_t) {
                               if (!error) self->read();
                             });
  }

  bench::tcp_socket socket_;
  std::vector<char> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::server_arguments arguments(argc, argv);
  boost::asio::io_context context(1);
  bench::tcp_acceptor acceptor = bench::listen(context, arguments.port);
  bench::accept_all(acceptor, [&](bench::tcp_socket socket) {
    std::make_shared<session>(std::move(socket), arguments.buffer)->read();
  });
  context.run();
}
