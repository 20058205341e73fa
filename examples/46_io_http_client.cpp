// SPDX-License-Identifier: MIT
// An HTTP client: reused connections, statuses, retries, and an answer that is read as it comes.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <iostream>
#include <string>

using namespace std::chrono_literals;
namespace http = weir::http;

weir::stream<std::string> countdown() {
  for (int i = 3; i > 0; --i) co_yield std::to_string(i) + " ";
}

int failures = 2;

weir::task<http::response> handle(http::request& r) {
  if (r.path() == "/countdown") co_return http::response::stream(countdown());
  if (r.path() == "/flaky" && failures-- > 0) co_await weir::sleep(1h);
  if (r.method() == "POST") co_return http::response(201, co_await r.body());
  co_return http::response(r.path() == "/flaky" ? 200 : 404, "here");
}

weir::task<> requests(std::string url) {
  http::client c({.max_per_host = 4, .timeout = 50ms});
  auto made = co_await c.post(url + "/orders", "a book");
  std::cout << made.status() << " " << made.body() << "\n";

  try {
    (co_await c.get(url + "/nothing")).raise_for_status();  // a status is no error by itself
  } catch (const http::status_error& e) {
    std::cout << "status " << e.status() << "\n";
  }

  auto get = weir::op([&] { return c.get(url + "/flaky"); }) |
             weir::retry({.attempts = 5, .base = 1ms}).when(http::is_transient);
  auto answer = co_await get();
  std::cout << answer.body() << ", after two timeouts\n";

  auto in = co_await c.open("GET", url + "/countdown");
  while (auto piece = co_await in.next()) std::cout << *piece;
  std::cout << "\n";
}

weir::task<> program() {
  auto l = co_await weir::io::listen();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.background(http::serve(l, handle, {.drain = 0ms}));
    co_await requests("http://127.0.0.1:" + std::to_string(l.port()));
  });
}

int main() { weir::run(program()); }
