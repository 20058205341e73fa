// SPDX-License-Identifier: MIT
// TLS: a server with a certificate, a client that trusts it, one that does not, and a certificate
// that is replaced while the server runs.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

namespace io = weir::io;
using namespace std::chrono_literals;

/// A certificate for localhost that is its own authority, made by the program openssl.
void make_certificate(const std::string& folder) {
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
      " -subj /CN=example -addext subjectAltName=DNS:localhost -keyout " +
      folder + "/server.key -out " + folder + "/server.pem 2>/dev/null";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl is not installed");
}

weir::task<> greet(io::socket& c) {
  const std::string name = co_await c.read_until("\n", 100);
  co_await c.write_all("hello, " + name);
}

weir::task<> ask(int port, io::tls_options options) {
  try {
    auto c = co_await io::tls_connect("localhost", port, options);
    co_await c.write_all("world\n");
    std::cout << c.alpn() << ": " << co_await c.read_until("\n", 100);
  } catch (const weir::error& e) {
    std::cout << e.code().message() << "\n";
  }
}

weir::task<> program(std::string folder) {
  make_certificate(folder);
  const std::string trusted = folder + "/trusted.pem";
  std::filesystem::copy_file(folder + "/server.pem", trusted);
  auto context =
      io::tls_context::server(folder + "/server.pem", folder + "/server.key", {.alpn = "greet"});
  auto l = co_await io::listen({.tls = &context});
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto serve = [&]() -> weir::task<> { co_await io::serve(l, greet, {.drain = 1s}); };
    s.background(serve);
    co_await ask(l.port(), {.ca_file = trusted, .alpn = "greet"});
    co_await ask(l.port(), {.alpn = "greet"});  // the authorities of the system do not know it
    make_certificate(folder);
    context.reload();
    co_await ask(l.port(), {.ca_file = trusted, .alpn = "greet"});
  });
}

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "weir-tls-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  weir::run(program(folder));
  std::filesystem::remove_all(folder);
}
