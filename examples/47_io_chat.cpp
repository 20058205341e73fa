// SPDX-License-Identifier: MIT
// A chat room over TCP: what a member sends, a line, goes to all. A member that does not read
// stops nobody: the room keeps a few messages for it, then drops the oldest and says how many.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <iostream>
#include <string>
#include <utility>

using namespace std::chrono_literals;
namespace io = weir::io;

class room {
 public:
  /// Handles one connection. The first line is the member's name. Both directions end together:
  /// when the member leaves, and when it cannot be written to.
  weir::task<> welcome(io::socket& member) {
    auto lines = member.lines(200);
    auto name = co_await lines.next();
    if (!name) co_return;
    auto messages = messages_.subscribe({.overflow = weir::overflow::drop_oldest});
    say(*name + " is here");
    auto left = weir::scope_exit([&] { say(*name + " has left"); });  // also if it was cut off
    co_await weir::race(listen(lines, *name), speak(member, messages));
  }

 private:
  void say(std::string text) { (void)messages_.try_emit(text + "\n"); }

  weir::task<> listen(weir::stream<std::string>& lines, const std::string& name) {
    while (auto line = co_await lines.next()) say(name + ": " + *line);
  }
  weir::task<> speak(io::socket& member, weir::subscription<std::string>& messages) {
    while (auto text = co_await messages.next()) {
      if (messages.missed() > 0)
        co_await member.write_all("(" + std::to_string(messages.missed()) + " missed)\n");
      co_await member.write_all(*text);
    }
  }

  weir::broadcast<std::string> messages_{4};  // how far a member may be behind
};

/// A member at a terminal.
class visitor {
 public:
  explicit visitor(io::socket connection) : connection_(std::move(connection)) {}
  weir::task<> send(std::string line) { co_await connection_.write_all(line + "\n"); }
  /// Reads until this line has come, and prints all.
  weir::task<> read_to(std::string last) {
    for (std::string line; line != last + "\n";) {
      line = co_await connection_.read_until("\n", 1000);
      std::cout << "  " << line;
    }
  }

 private:
  io::socket connection_;
};

weir::task<visitor> enter(int port, std::string name) {
  visitor v(co_await io::connect("127.0.0.1", port));
  co_await v.send(name);
  co_return v;
}

weir::task<> evening(int port) {
  visitor ann = co_await enter(port, "ann");
  co_await ann.read_to("ann is here");
  {
    visitor ben = co_await enter(port, "ben");
    co_await ben.read_to("ben is here");
    co_await ben.send("hello ann");
    co_await ann.read_to("ben: hello ann");
  }  // the connection is closed
  co_await ann.read_to("ben has left");
  // Ten lines in one packet: the room hears all before it writes any, and keeps the last four.
  std::string many;
  for (int i = 1; i <= 10; ++i)
    many += (i > 1 ? "\n" : "") + std::string("news ") + std::to_string(i);
  co_await ann.send(many);
  co_await ann.read_to("ann: news 10");
}

weir::task<> program() {
  room r;
  auto l = co_await io::listen();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto handler = [&](io::socket& member) { return r.welcome(member); };
    s.background(io::serve(l, handler, {.name = "room", .drain = 0ms}));
    co_await evening(l.port());
  });
  std::cout << "closed\n";
}

int main() { weir::run(program()); }
