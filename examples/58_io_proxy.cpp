// SPDX-License-Identifier: MIT
// A reverse proxy: requests go to two backends; one that is slow is hedged by the other, one that
// fails is not asked for a while (a circuit breaker). When a client goes away
// its requests to the backends are cancelled. The program runs on the network and the time of
// a simulation, so that it always prints the same; the proxy does not notice.
#include <weir/io.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

using namespace std::chrono_literals;
namespace http = weir::http;
namespace io = weir::io;

/// One server behind the proxy.
struct backend {
  explicit backend(std::string at) : url(std::move(at)) {}

  std::string url;
  weir::circuit_breaker breaker{
      {.failure_ratio = 0.5, .minimum_calls = 4, .window = 10s, .open_for = 2s}};
};

class proxy {
 public:
  proxy(std::string first, std::string second) : backends_{backend(first), backend(second)} {}

  weir::task<http::response> operator()(http::request& r) {
    if (r.method() != "GET") co_return http::response(405, "only GET is passed on\n");
    const std::string target(r.target());
    std::size_t turn = next_++;
    // Each attempt asks the next backend; a failed one is followed at once, a slow one after 50 ms.
    auto ask = [&]() -> weir::task<http::response> {
      backend& b = backends_[turn++ % backends_.size()];
      return fetch(b, b.url + target);
    };
    auto attempts = weir::op(ask) | weir::hedge({.after = 50ms, .max = 2});
    auto tried = co_await weir::settle(attempts | weir::timeout(2s));
    if (tried.is_value()) co_return tried.take();
    co_return http::response(502, "no backend answers\n");
  }

 private:
  weir::task<http::response> fetch(backend& b, std::string url) {
    auto call = [&]() -> weir::task<http::response> {
      http::response answer = co_await client_.get(url);
      if (answer.status() >= 500) answer.raise_for_status();
      co_return answer;
    };
    co_return co_await (weir::op(call) | weir::breaker(b.breaker));
  }

  http::client client_;
  std::array<backend, 2> backends_;
  std::size_t next_ = 0;
};

// ------------------------------------------------------------------ a test of it

/// A backend whose behaviour can be changed.
struct fake {
  explicit fake(std::string called) : name(std::move(called)) {}

  std::string name;
  weir::duration delay{};
  bool broken = false;
  int asked = 0;

  weir::task<http::response> answer(http::request& r) {
    ++asked;
    if (broken) co_return http::response(500);
    co_await weir::sleep(delay);
    co_return http::response(200, name + " answers " + std::string(r.path()));
  }
};

/// Serves in the background of a scope; the address.
template <class Handler>
weir::task<std::string> serve(weir::scope& s, Handler& handler) {
  auto l = std::make_shared<io::listener>(co_await io::listen());
  const std::string url = "http://127.0.0.1:" + std::to_string(l->port());
  auto run = [l, &handler]() -> weir::task<> {
    auto answer = [&handler](http::request& r) -> weir::task<http::response> { return handler(r); };
    co_await http::serve(*l, answer, {.drain = 100ms});
  };
  s.background(run);
  co_return url;
}

weir::task<> get(http::client& c, std::string url) {
  const http::response r = co_await c.get(url);
  std::cout << "  " << r.status() << " " << r.body() << (r.status() == 200 ? "\n" : "");
}

weir::task<> play(weir::scope& s) {
  fake a("a"), b("b");
  auto answer_a = [&](http::request& r) -> weir::task<http::response> { return a.answer(r); };
  auto answer_b = [&](http::request& r) -> weir::task<http::response> { return b.answer(r); };
  const std::string url_a = co_await serve(s, answer_a);
  const std::string url_b = co_await serve(s, answer_b);
  proxy p(url_a, url_b);
  const std::string url = co_await serve(s, p);
  http::client c;

  std::cout << "both are well\n";
  co_await get(c, url + "/1");
  co_await get(c, url + "/2");
  std::cout << "a hangs: b takes over\n";
  a.delay = 1h;
  co_await get(c, url + "/3");
  a.delay = {};
  std::cout << "b is broken: a takes over, and soon b is not asked any more\n";
  b.broken = true;
  for (int i = 4; i < 12; ++i) co_await get(c, url + "/" + std::to_string(i));
  const int asked = b.asked;
  for (int i = 12; i < 20; ++i) (void)co_await c.get(url + "/" + std::to_string(i));
  std::cout << "  b was asked " << b.asked - asked << " times during 8 further requests\n";
  std::cout << "both are broken\n";
  a.broken = true;
  co_await get(c, url + "/20");
  s.cancel();
}

int main() {
  auto program = []() -> weir::task<> { co_await weir::with_scope(play); };
  weir::sim::run({}, program);
}
