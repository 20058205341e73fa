// SPDX-License-Identifier: MIT
//
// The WebSocket server of io_load, see load.cpp.
#include <weir/io.hpp>
#include <weir/run.hpp>

#include "support/server.hpp"

namespace {

weir::task<> echo(weir::ws::connection& c) {
  while (auto message = co_await c.read()) co_await c.write_binary(message->data());
}

weir::task<weir::http::response> answer(weir::http::request& r) {
  return weir::ws::accept(r, echo);
}

weir::task<> serve(bench::server_arguments arguments) {
  weir::io::listener l =
      co_await weir::io::listen({.port = arguments.port, .backlog = bench::backlog});
  bench::announce(l.port());
  co_await weir::http::serve(l, answer, {.max_connections = bench::most_connections});
}

}  // namespace

int main(int argc, char** argv) { weir::run(serve(bench::server_arguments(argc, argv))); }
