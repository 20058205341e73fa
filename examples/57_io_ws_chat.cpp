// SPDX-License-Identifier: MIT
// A chat room over WebSocket, with a page. Each member is a connection with two directions: what it
// sends goes to all, and what all send goes to it. A member that does not read stops nobody.
//
//     examples/57_io_ws_chat           two members talk, and the room is closed
//     examples/57_io_ws_chat --serve   the room is open at http://127.0.0.1:8080 until Ctrl-C
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <iostream>
#include <string>
#include <string_view>
#include <utility>

using namespace std::chrono_literals;
namespace http = weir::http;
namespace io = weir::io;
namespace ws = weir::ws;

constexpr const char* page = R"(<!doctype html>
<title>weir chat</title>
<style>
  body { font: 16px/1.5 system-ui; max-width: 40em; margin: 2em auto; padding: 0 1em }
  #log { height: 60vh; overflow: auto; border: 1px solid #999; padding: .5em }
  input { width: 100%; box-sizing: border-box; margin-top: .5em; font: inherit }
</style>
<h1>weir chat</h1>
<div id=log role=log aria-live=polite></div>
<form id=f><input id=text autocomplete=off placeholder="say something" aria-label="message"></form>
<script>
  const log = text => { const p = document.createElement('div'); p.textContent = text;
                        document.getElementById('log').append(p); p.scrollIntoView(); };
  const name = prompt('your name') || 'somebody';
  const room = new WebSocket(`ws://${location.host}/room?name=${encodeURIComponent(name)}`);
  room.onmessage = e => log(e.data);
  room.onclose = e => log(`closed: ${e.code} ${e.reason}`);
  document.getElementById('f').onsubmit = e => {
    e.preventDefault();
    const text = document.getElementById('text');
    room.send(text.value);
    text.value = '';
  };
</script>
)";

class room {
 public:
  /// Both directions end together: when the member leaves, and when it cannot be written to.
  weir::task<> welcome(ws::connection& member, std::string name) {
    auto messages = messages_.subscribe({.overflow = weir::overflow::drop_oldest});
    say(name + " is here");
    auto left = weir::scope_exit([&] { say(name + " has left"); });
    co_await weir::race(listen(member, name), speak(member, messages));
  }

 private:
  void say(std::string text) { (void)messages_.try_emit(std::move(text)); }

  weir::task<> listen(ws::connection& member, const std::string& name) {
    while (auto message = co_await member.read()) say(name + ": " + std::string(message->data()));
  }
  weir::task<> speak(ws::connection& member, weir::subscription<std::string>& messages) {
    while (auto text = co_await messages.next()) co_await member.write_text(*text);
  }

  weir::broadcast<std::string> messages_{16};  // how far a member may be behind
};

http::router make_routes(room& r) {
  http::router routes;
  routes.get("/", [](http::request&) -> weir::task<http::response> {
    http::response answer(200, page);
    answer.set("content-type", "text/html; charset=utf-8");
    co_return answer;
  });
  routes.get("/room", [&r](http::request& request) -> weir::task<http::response> {
    const std::string name = request.query("name").value_or("somebody");
    auto member = [&r, name](ws::connection& c) -> weir::task<> { return r.welcome(c, name); };
    co_return co_await ws::accept(request, member, {.max_message = 1000});
  });
  return routes;
}

/// Reads until this message has come, and prints all.
weir::task<> read_to(ws::connection& c, std::string_view who, std::string_view last) {
  for (bool found = false; !found;) {
    const auto message = co_await c.read();
    if (!message) co_return;
    std::cout << "  " << who << " sees \"" << message->data() << "\"\n";
    found = message->data() == last;
  }
}

weir::task<> evening(std::string url) {
  auto ann = co_await ws::connect(url + "?name=ann");
  co_await read_to(ann, "ann", "ann is here");
  auto ben = co_await ws::connect(url + "?name=ben");
  co_await read_to(ben, "ben", "ben is here");
  co_await ben.write_text("hello ann");
  co_await read_to(ann, "ann", "ben: hello ann");
  co_await ben.close();
  co_await read_to(ann, "ann", "ben has left");
  const std::string essay(2000, 'x');
  co_await ann.write_text(essay);
  co_await read_to(ann, "ann", "never");
  std::cout << "ann is out: " << ann.close_code() << " " << ann.close_reason() << "\n";
}

weir::task<> play() {
  room r;
  auto body = [&](weir::scope& s) -> weir::task<> {
    auto l = co_await io::listen();
    auto serve = [&]() -> weir::task<> { co_await http::serve(l, make_routes(r), {.drain = 1s}); };
    s.background(serve);
    co_await evening("ws://127.0.0.1:" + std::to_string(l.port()) + "/room");
  };
  co_await weir::with_scope(body);
}

weir::task<> serve_until_stopped() {
  room r;
  auto l = co_await io::listen({.port = 8080});
  std::cout << "open at http://127.0.0.1:" << l.port() << std::endl;
  co_await http::serve(l, make_routes(r));
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--serve") {
    weir::run({.handle_signals = true}, serve_until_stopped);
  } else {
    weir::run(play);
  }
}
