// SPDX-License-Identifier: MIT
//
// The HTTP server of io_load with Asio's coroutines and Beast's messages, in the manner of Beast's
// example http_server_awaitable, see io/load.cpp. Errors come as values.
#include <tuple>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "peers/beast/hello.hpp"

namespace {

constexpr auto as_tuple = boost::asio::as_tuple(boost::asio::use_awaitable_t<bench::executor>());

boost::asio::awaitable<void, bench::executor> answer_all(bench::tcp_socket socket) {
  bench::stream stream(std::move(socket));
  bench::beast::flat_buffer buffer;
  for (;;) {
    bench::request request;
    stream.expires_after(bench::idle_timeout);
    const auto [read_error, read] =
        co_await bench::http::async_read(stream, buffer, request, as_tuple);
    if (read_error) break;
    const bench::response response = bench::hello(request);
    const auto [write_error, written] =
        co_await bench::http::async_write(stream, response, as_tuple);
    if (write_error || !response.keep_alive()) break;
  }
  bench::error_code ignored;
  stream.socket().shutdown(bench::tcp::socket::shutdown_send, ignored);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::server_arguments arguments(argc, argv);
  boost::asio::io_context context(1);
  bench::tcp_acceptor acceptor = bench::listen(context, arguments.port);
  bench::accept_all(acceptor, [&](bench::tcp_socket socket) {
    boost::asio::co_spawn(context.get_executor(), answer_all(std::move(socket)),
                          boost::asio::detached);
  });
  context.run();
}
