// SPDX-License-Identifier: MIT
//
// The echo server of io_load with Asio's coroutines, see io/load.cpp. Errors come as values,
// because exceptions would be slower.
#include <tuple>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "peers/asio/acceptor.hpp"

namespace {

constexpr auto as_tuple = boost::asio::as_tuple(boost::asio::use_awaitable_t<bench::executor>());

boost::asio::awaitable<void, bench::executor> echo(bench::tcp_socket socket, std::size_t size) {
  std::vector<char> buffer(size);
  for (;;) {
    const auto [read_error, n] =
        co_await socket.async_read_some(boost::asio::buffer(buffer), as_tuple);
    if (read_error) co_return;
    const auto [write_error, written] =
        co_await boost::asio::async_write(socket, boost::asio::buffer(buffer.data(), n), as_tuple);
    if (write_error || written != n) co_return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::server_arguments arguments(argc, argv);
  boost::asio::io_context context(1);
  bench::tcp_acceptor acceptor = bench::listen(context, arguments.port);
  bench::accept_all(acceptor, [&](bench::tcp_socket socket) {
    boost::asio::co_spawn(context.get_executor(), echo(std::move(socket), arguments.buffer),
                          boost::asio::detached);
  });
  context.run();
}
