// SPDX-License-Identifier: MIT
// An Asio program that gains structured cancellation: its heartbeat stays a plain timer with a
// callback; a job of several operations gets one time limit, and cleanup that runs in any case.
#include <boost/asio.hpp>

#include <weir/interop/asio.hpp>
#include <weir/weir.hpp>

#include <array>
#include <iostream>

using namespace std::chrono_literals;
namespace asio = boost::asio;
using stream = asio::local::stream_protocol::socket;

class heartbeat {
 public:
  explicit heartbeat(asio::io_context& context) : timer_(context) { beat(); }
  int beats() const { return beats_; }

 private:
  void beat() {
    timer_.expires_after(5ms);
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      ++beats_;
      beat();
    });
  }
  asio::steady_timer timer_;
  int beats_ = 0;
};

weir::task<> transfer(weir::scope& s, stream& from, stream& to) {
  s.defer([] { std::cout << "the transfer is rolled back or committed\n"; });
  std::array<char, 16> buffer;
  for (;;) {
    const std::size_t n = co_await from.async_read_some(asio::buffer(buffer), weir::use_weir);
    co_await asio::async_write(to, asio::buffer(buffer, n), weir::use_weir);
  }
}

weir::task<> job(asio::io_context& context) {
  stream a(context), b(context), c(context), d(context);
  asio::local::connect_pair(a, b);
  asio::local::connect_pair(c, d);
  co_await asio::async_write(a, asio::buffer("first", 5), weir::use_weir);
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn(transfer(s, b, c));
    std::array<char, 5> got;
    co_await asio::async_read(d, asio::buffer(got), weir::use_weir);
    std::cout << std::string(got.data(), got.size()) << " has arrived\n";
    co_await asio::async_read(d, asio::buffer(got), weir::use_weir);  // nothing more comes
  });
}

weir::task<> limited_job(asio::io_context& context) {
  try {
    co_await weir::with_timeout(50ms, job(context));
  } catch (const weir::timeout_error&) {
    std::cout << "timed out; no operation is left that could touch a buffer\n";
  }
}

int main() {
  asio::io_context context;
  heartbeat plain(context);
  weir::run_on(context, limited_job(context));
  std::cout << (plain.beats() > 0 ? "the heartbeat went on\n" : "the heartbeat stood still\n");
}
