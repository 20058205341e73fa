// SPDX-License-Identifier: MIT
// `tail -f` as server-sent events: whoever asks for /log gets the lines of a file, and those that
// are added later. A client that lost its connection says which event was its last one, and misses
// nothing.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <unistd.h>

using namespace std::chrono_literals;
namespace http = weir::http;
namespace io = weir::io;

/// The lines of a file from an offset on, without an end; each has the offset behind it as its id.
/// At the end of the file it looks again, in a real program less often.
weir::stream<http::event> tail(std::string path, std::uint64_t offset) {
  auto file = co_await io::file::open(path, io::mode::read);
  std::array<std::byte, 4096> buffer;
  std::string text;  // behind the last line that was sent; `offset` is where it begins
  for (;;) {
    const std::size_t n = co_await file.read_at(offset + text.size(), buffer);
    text.append(reinterpret_cast<const char*>(buffer.data()), n);
    for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos;) {
      const std::string line = text.substr(0, end);
      text.erase(0, end + 1);
      offset += end + 1;
      co_yield http::event("line", line).id(std::to_string(offset));
    }
    if (n == 0) co_await weir::sleep(1ms);
  }
}

/// Where the client wants to go on: behind the event that it has seen last.
std::optional<std::uint64_t> first_offset(const http::request& r) {
  const std::string_view id = r.header("last-event-id").value_or("0");
  std::uint64_t offset = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), offset);
  if (error != std::errc() || end != id.data() + id.size()) return std::nullopt;
  return offset;
}

http::router make_routes(std::string path) {
  http::router routes;
  routes.get("/log", [path](http::request& r) -> weir::task<http::response> {
    const auto offset = first_offset(r);
    if (!offset) co_return http::response(400, "last-event-id: a number is expected");
    co_return http::response::events(tail(path, *offset));
  });
  return routes;
}

/// Reads events until `lines` of them have come, prints their data, and returns the last id. The
/// connection is closed then, because the answer has not ended.
weir::task<std::string> watch(http::client& c, std::string url, int lines, std::string last_id) {
  http::headers fields;
  if (!last_id.empty()) fields.set("last-event-id", last_id);
  auto events = co_await c.open("GET", url, {}, fields);
  std::string text;
  while (std::count(text.begin(), text.end(), '\n') < 4 * lines) {  // id, event, data, empty
    auto piece = co_await events.next();
    if (!piece) break;
    text += *piece;
  }
  std::cout << text;
  const std::size_t id = text.rfind("id: ") + 4;
  co_return text.substr(id, text.find('\n', id) - id);
}

weir::task<> program(std::string path) {
  auto log = co_await io::file::open(path, io::mode::append);
  co_await log.append("started\nlistening\nhalf a li");
  auto l = co_await io::listen();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.background(http::serve(l, make_routes(path), {.drain = 0ms}));
    const std::string url = "http://127.0.0.1:" + std::to_string(l.port()) + "/log";
    http::client c;
    const std::string seen = co_await watch(c, url, 2, "");
    std::cout << "connection lost, two lines are added\n";
    co_await log.append("ne\nstopped\n");
    co_await watch(c, url, 2, seen);
  });
  co_await log.close();
}

int main() {
  const auto path =
      std::filesystem::temp_directory_path() / ("weir-tail-" + std::to_string(::getpid()) + ".log");
  std::filesystem::remove(path);
  weir::run(program(path.string()));
  std::filesystem::remove(path);
}
