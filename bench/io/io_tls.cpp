// SPDX-License-Identifier: MIT
//
// The TLS echo server of io_load, see load.cpp.
#include <weir/io.hpp>
#include <weir/run.hpp>

#include <string>
#include <vector>

#include "support/server.hpp"

namespace {

weir::task<> serve(bench::server_arguments arguments) {
  const std::string folder = std::getenv("WEIR_BENCH_TLS");
  auto context = weir::io::tls_context::server(folder + "/cert.pem", folder + "/key.pem");
  weir::io::listener l = co_await weir::io::listen(
      {.port = arguments.port, .backlog = bench::backlog, .tls = &context});
  bench::announce(l.port());
  auto echo = [&](weir::io::socket& c) -> weir::task<> {
    std::vector<std::byte> buffer(arguments.buffer);
    while (const std::size_t n = co_await c.read_some(buffer))
      co_await c.write_all(std::span(buffer).first(n));
  };
  co_await weir::io::serve(l, echo, {.max_connections = bench::most_connections});
}

}  // namespace

int main(int argc, char** argv) { weir::run(serve(bench::server_arguments(argc, argv))); }
