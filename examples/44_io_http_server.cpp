// SPDX-License-Identifier: MIT
// A small HTTP service: routes, a stream that answers, server-sent events, a handler that fails.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <array>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;
namespace http = weir::http;

weir::stream<std::string> count_to(int n) {
  for (int i = 1; i <= n; ++i) {
    co_await weir::sleep(1ms);
    co_yield std::to_string(i) + "\n";
  }
}

weir::stream<std::string> shout(weir::stream<std::string> body) {
  while (auto piece = co_await body.next()) {
    for (char& c : *piece) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    co_yield std::move(*piece);
  }
}

weir::stream<http::event> ticks() {
  for (int i = 0; i < 2; ++i)
    co_yield http::event("tick", "number " + std::to_string(i)).id(std::to_string(i));
}

http::router make_routes(std::vector<std::string>& notes) {
  http::router r;
  r.get("/notes/{id}", [&](http::request& q) -> weir::task<http::response> {
    const std::size_t id = std::stoul(std::string(q.param("id")));
    if (id >= notes.size()) co_return http::response(404, "no such note\n");
    co_return http::response(200, notes[id]);
  });
  r.post("/notes", [&](http::request& q) -> weir::task<http::response> {
    std::string text = co_await q.body();
    notes.push_back(text);
    co_return http::response(201).set("location", "/notes/" + std::to_string(notes.size() - 1));
  });
  r.get("/count", [](http::request& q) -> weir::task<http::response> {
    co_return http::response::stream(count_to(std::stoi(q.query("to").value_or("3"))));
  });
  r.post("/shout", [](http::request& q) -> weir::task<http::response> {
    co_return http::response::stream(shout(q.body_stream()));
  });
  r.get("/events", [](http::request&) -> weir::task<http::response> {
    co_return http::response::events(ticks());
  });
  r.get("/broken", [](http::request&) -> weir::task<http::response> {
    throw std::runtime_error("the client never sees this text");
    co_return http::response(200);
  });
  return r;
}

/// Sends a request as it is and prints the status line and what follows the header.
weir::task<> show(int port, std::string line, std::string body = "") {
  auto c = co_await weir::io::connect("127.0.0.1", port);
  co_await c.write_all(line + " HTTP/1.0\r\ncontent-length: " + std::to_string(body.size()) +
                       "\r\n\r\n" + body);
  const std::string head = co_await c.read_until("\r\n\r\n", 10'000);
  std::cout << line << " -> " << head.substr(9, head.find('\r') - 9) << "\n";
  std::array<std::byte, 1000> buffer;
  while (auto n = co_await c.read_some(buffer))
    std::cout << std::string_view(reinterpret_cast<const char*>(buffer.data()), n);
}

weir::task<> program() {
  std::vector<std::string> notes;
  auto l = co_await weir::io::listen();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto serve = [&]() -> weir::task<> {
      co_await http::serve(l, make_routes(notes), {.max_body = 10'000, .drain = 1s});
    };
    s.background(serve);
    co_await show(l.port(), "POST /notes", "remember the milk\n");
    co_await show(l.port(), "GET /notes/0");
    co_await show(l.port(), "GET /notes/7");
    co_await show(l.port(), "DELETE /notes/0");
    co_await show(l.port(), "GET /count?to=2");
    co_await show(l.port(), "POST /shout", "quietly\n");
    co_await show(l.port(), "GET /events");
    co_await show(l.port(), "GET /broken");
    co_await show(l.port(), "POST /notes", std::string(20'000, 'x'));
  });
}

int main() { weir::run(program()); }
