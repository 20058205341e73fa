// SPDX-License-Identifier: MIT
// WebSocket against peers of other threads and processes.
#include <weir/ws.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "io/io_support.hpp"
#include "io/ws_peer.hpp"
#include "npm_packages.hpp"

namespace {

using namespace ws_test;
using weir_test::plain_socket;
using weir_test::scratch_folder;

/// Serves `fn` on loopback while `body(port)` runs.
template <class Fn, class Body>
void on_loopback_ws(Fn fn, Body body) {
  auto program = [&]() -> task<> { co_await with_ws(fn, body); };
  weir::run(program);
}

}  // namespace

TEST(ws_threads, a_flood_of_pings_starves_no_fiber) {
  on_loopback_ws(echo, [](int port) -> task<> {
    std::atomic<bool> ended{false};
    plain_socket p = plain_socket::dial(port);
    std::thread flood([&] {
      p.send(upgrade_request());
      std::string pings;
      for (int i = 0; i < 10'000; ++i) pings += frame(op::ping, "f");
      while (!ended && p.send(pings)) {
      }
    });
    for (int i = 0; i < 50; ++i) co_await weir::sleep(1ms);
    ended = true;
    ::shutdown(p.number(), SHUT_RDWR);
    flood.join();
  });
}

// ------------------------------------------------------------------ foreign implementations

namespace {

/// That of the system, which has its packages.
const std::string python = "/usr/bin/python3";

/// Runs a command while the loop goes on; true if it has succeeded.
task<bool> succeeds(std::string command) {
  int status = -1;
  co_await weir::blocking([&] { status = std::system(command.c_str()); });
  co_return status == 0;
}

constexpr const char* python_client = R"(
import asyncio, sys, websockets
async def main():
    async with websockets.connect(sys.argv[1], max_size=None, compression=None) as c:
        for n in (0, 1, 125, 126, 65535, 65536, 500000):
            text = "\u20ac" * (n // 3)
            await c.send(text)
            assert await c.recv() == text
            data = bytes(i % 251 for i in range(n))
            await c.send(data)
            assert await c.recv() == data
        await c.send(["one ", "message ", "in ", "fragments"])
        assert await c.recv() == "one message in fragments"
        await (await c.ping())
        await c.close(4002, "done")
        assert c.close_code == 4002
asyncio.run(main())
)";

constexpr const char* python_server = R"(
import asyncio, sys, websockets
async def echo(c):
    async for m in c:
        await c.send(m)
async def main():
    async with websockets.serve(echo, "127.0.0.1", 0, max_size=None) as s:
        with open(sys.argv[1] + ".new", "w") as f:
            f.write(str(s.sockets[0].getsockname()[1]))
        import os
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        await asyncio.get_event_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
)";

// The package `ws` of npm.
constexpr const char* node_client = R"(
const WebSocket = require('ws');
const assert = require('assert');
const c = new WebSocket(process.argv[2], { perMessageDeflate: false });
const sizes = [0, 1, 125, 126, 65535, 65536, 500000];
const expected = [];
c.on('open', () => {
  for (const n of sizes) {
    expected.push(['w'.repeat(n), false], [Buffer.alloc(n, 7), true]);
    c.send('w'.repeat(n));
    c.send(Buffer.alloc(n, 7));
  }
  expected.push(['fragments', false]);
  c.send('frag', { fin: false });
  c.send('ments', { fin: true });
  c.ping('p');
});
let pongs = 0;
c.on('pong', (data) => { assert.strictEqual(data.toString(), 'p'); ++pongs; });
c.on('message', (data, binary) => {
  const [want, kind] = expected.shift();
  assert.strictEqual(binary, kind);
  assert.ok(Buffer.from(want).equals(data));
  if (expected.length === 0) c.close(4004, 'done');
});
c.on('close', (code) => { assert.strictEqual(code, 4004); assert.strictEqual(pongs, 1); });
)";

constexpr const char* node_server = R"(
const { WebSocketServer } = require('ws');
const fs = require('fs');
const s = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
s.on('connection', (c) => c.on('message', (data, binary) => c.send(data, { binary })));
s.on('listening', () => {
  fs.writeFileSync(process.argv[2] + '.new', String(s.address().port));
  fs.renameSync(process.argv[2] + '.new', process.argv[2]);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
)";

/// A command that runs a script of Node with the packages of ./dev setup.
std::string node_with(const std::string& script) {
  return "NODE_PATH='" + std::string(npm_packages) + "' node " + script;
}

bool has_node_ws() {
  return std::filesystem::exists(std::string(npm_packages) + "/ws") &&
         std::system("command -v node >/dev/null 2>&1") == 0;
}

bool has_python_websockets() {
  return std::system((python + " -c 'import websockets' >/dev/null 2>&1").c_str()) == 0;
}

/// A server of another process, whose port is in a file; it ends when its input does.
class foreign_server {
 public:
  explicit foreign_server(const std::string& command) : pipe_(::popen(command.c_str(), "w")) {}
  foreign_server(const foreign_server&) = delete;
  foreign_server& operator=(const foreign_server&) = delete;
  ~foreign_server() { ::pclose(pipe_); }

 private:
  FILE* pipe_;
};

task<int> port_in(std::string path) {
  co_await test_support::wait_until([&] { return std::filesystem::exists(path); });
  int port = 0;
  std::ifstream(path) >> port;
  co_return port;
}

/// What a client of weir says to an echo server of another implementation.
task<> talk_to(int port) {
  auto c = co_await ws::connect(url_of(port), {.max_message = 1 << 20});
  for (const std::size_t n : {0U, 1U, 125U, 126U, 65535U, 65536U, 300'000U}) {
    const std::string text(n, 'w');
    co_await c.write_text(text);
    const auto m = co_await c.read();
    EXPECT_TRUE(m && m->text() && m->data() == text) << n;
    co_await c.write_binary(text);
    const auto b = co_await c.read();
    EXPECT_TRUE(b && b->binary() && b->data() == text) << n;
  }
  co_await c.ping("there?");
  co_await c.close(4003, "done");
  EXPECT_EQ(c.close_code(), 4003);
}

}  // namespace

TEST(ws_threads, python_websockets_talks_to_the_server) {
  if (!has_python_websockets()) GTEST_SKIP() << "python3-websockets is not installed";
  const scratch_folder folder;
  std::ofstream(folder / "client.py") << python_client;
  on_loopback_ws(echo, [&](int port) -> task<> {
    EXPECT_TRUE(co_await succeeds(python + " " + folder / "client.py" + " " + url_of(port)));
  });
}

TEST(ws_threads, the_client_talks_to_python_websockets) {
  if (!has_python_websockets()) GTEST_SKIP() << "python3-websockets is not installed";
  const scratch_folder folder;
  std::ofstream(folder / "server.py") << python_server;
  auto program = [&]() -> task<> {
    const foreign_server server(python + " " + folder / "server.py" + " " + folder / "port");
    const int port = co_await port_in(folder / "port");
    co_await talk_to(port);
  };
  weir::run(program);
}

TEST(ws_threads, the_ws_package_of_node_talks_to_the_server) {
  if (!has_node_ws()) GTEST_SKIP() << "Node and its package ws are not installed";
  const scratch_folder folder;
  std::ofstream(folder / "client.js") << node_client;
  on_loopback_ws(echo, [&](int port) -> task<> {
    EXPECT_TRUE(co_await succeeds(node_with(folder / "client.js") + " " + url_of(port)));
  });
}

TEST(ws_threads, the_client_talks_to_the_ws_package_of_node) {
  if (!has_node_ws()) GTEST_SKIP() << "Node and its package ws are not installed";
  const scratch_folder folder;
  std::ofstream(folder / "server.js") << node_server;
  auto program = [&]() -> task<> {
    const foreign_server server(node_with(folder / "server.js") + " " + folder / "port");
    const int port = co_await port_in(folder / "port");
    co_await talk_to(port);
  };
  weir::run(program);
}
