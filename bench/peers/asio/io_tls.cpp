// SPDX-License-Identifier: MIT
//
// The TLS echo server of io_load with Asio's ssl::stream and callbacks, see io/load.cpp. It shuts
// nothing down: a client that has ended its side is dropped.
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include "peers/asio/acceptor.hpp"

namespace {

namespace ssl = boost::asio::ssl;

class session : public std::enable_shared_from_this<session> {
 public:
  session(bench::tcp_socket socket, ssl::context& context, std::size_t buffer)
      : stream_(std::move(socket), context), buffer_(buffer) {}

  void start() {
    stream_.async_handshake(ssl::stream_base::server,
                            [self = shared_from_this()](bench::error_code error) {
                              if (!error) self->read();
                            });
  }

 private:
  void read() {
    stream_.async_read_some(boost::asio::buffer(buffer_),
                            [self = shared_from_this()](bench::error_code error, std::size_t n) {
                              if (!error) self->write(n);
                            });
  }
  void write(std::size_t n) {
    boost::asio::async_write(stream_, boost::asio::buffer(buffer_.data(), n),
                             [self = shared_from_this()](bench::error_code error, std::size_t) {
                               if (!error) self->read();
                             });
  }

  ssl::stream<bench::tcp_socket> stream_;
  std::vector<char> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::server_arguments arguments(argc, argv);
  const std::string folder = std::getenv("WEIR_BENCH_TLS");
  ssl::context tls(ssl::context::tls_server);
  tls.use_certificate_chain_file(folder + "/cert.pem");
  tls.use_private_key_file(folder + "/key.pem", ssl::context::pem);
  boost::asio::io_context context(1);
  bench::tcp_acceptor acceptor = bench::listen(context, arguments.port);
  bench::accept_all(acceptor, [&](bench::tcp_socket socket) {
    std::make_shared<session>(std::move(socket), tls, arguments.buffer)->start();
  });
  context.run();
}
