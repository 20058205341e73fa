// SPDX-License-Identifier: MIT
// What the tests of io share: plain sockets as foreign peers on the same thread, and the errors of
// operations.
#pragma once

#include <weir/io.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/test_support.hpp"

namespace weir_test {

using namespace test_support;
using weir::errc;
using weir::task;
namespace io = weir::io;

inline std::span<std::byte> bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

/// The other end of a connection: a descriptor that weir knows nothing of.
class plain_socket {
 public:
  plain_socket() = default;
  explicit plain_socket(int number) : number_(number) {}
  plain_socket(plain_socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  plain_socket& operator=(plain_socket&& other) noexcept {
    close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  ~plain_socket() { close(); }

  /// Connects to a port of this machine; the system completes it before anybody accepts.
  static plain_socket dial(int port) {
    plain_socket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(made.number_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) made.close();
    return made;
  }

  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::send(number_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  /// What has arrived, without waiting; "(end)" at the end, "(error)" if it is broken.
  std::string arrived() const {
    std::string all(1 << 20, '\0');
    const ssize_t n = ::recv(number_, all.data(), all.size(), MSG_DONTWAIT);
    if (n == 0) return "(end)";
    if (n < 0) return errno == EAGAIN ? "" : "(error)";
    all.resize(static_cast<std::size_t>(n));
    return all;
  }
  void end_writing() const { ::shutdown(number_, SHUT_WR); }
  /// Closes with a reset instead of an end.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(number_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

/// Runs `body(socket, plain_socket)` on a loop, with a TCP connection between the two.
template <class Body>
void with_connection(Body body) {
  auto program = [&]() -> task<> {
    auto l = co_await io::listen();
    plain_socket foreign = plain_socket::dial(l.port());
    io::socket here = co_await l.accept();
    l.close();
    co_await body(here, foreign);
  };
  weir::run(program);
}

/// The same with a Unix socket.
template <class Body>
void with_unix_connection(Body body) {
  auto program = [&]() -> task<> {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    plain_socket foreign(ends[1]);
    io::socket here = io::adopt_socket(ends[0]);
    co_await body(here, foreign);
  };
  weir::run(program);
}

/// Two sockets of weir, connected by TCP.
struct socket_pair {
  io::socket a;
  io::socket b;
};
inline task<socket_pair> connected_pair() {
  auto l = co_await io::listen();
  const int port = l.port();
  socket_pair made;
  made.a = co_await io::connect("127.0.0.1", port);
  made.b = co_await l.accept();
  co_return made;
}

/// Reads `n` bytes.
inline task<std::string> read_n(io::socket& from, std::size_t n) {
  std::string text(n, '\0');
  co_await from.read_exactly(bytes_of(text));
  co_return text;
}
/// Reads what comes next, at most `n` bytes.
inline task<std::string> read_next(io::socket& from, std::size_t n) {
  std::string text(n, '\0');
  const std::size_t got = co_await from.read_some(bytes_of(text));
  text.resize(got);
  co_return text;
}
/// Reads to the end.
inline task<std::string> read_all(io::socket& from) {
  std::string all;
  for (;;) {
    std::string piece = co_await read_next(from, 65536);
    if (piece.empty()) co_return all;
    all += piece;
  }
}

inline std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n;
}

/// A folder that is removed with everything in it.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-io-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace weir_test
