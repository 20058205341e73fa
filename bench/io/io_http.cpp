// SPDX-License-Identifier: MIT
//
// The HTTP server of io_load, see load.cpp.
#include <weir/io.hpp>
#include <weir/run.hpp>

#include "support/server.hpp"

namespace {

weir::task<weir::http::response> hello(weir::http::request&) {
  co_return weir::http::response(200, "hello, world\n");
}

weir::task<> serve(bench::server_arguments arguments) {
  weir::io::listener l =
      co_await weir::io::listen({.port = arguments.port, .backlog = bench::backlog});
  bench::announce(l.port());
  co_await weir::http::serve(l, hello, {.max_connections = bench::most_connections});
}

}  // namespace

int main(int argc, char** argv) { weir::run(serve(bench::server_arguments(argc, argv))); }
