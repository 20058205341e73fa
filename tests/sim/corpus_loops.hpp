// SPDX-License-Identifier: MIT
// Bugs between loops: messages that take different ways arrive in any order.
//
// What loops share is kept alive by the messages themselves: some are still on their way when the
// program has ended.
#pragma once

#include <memory>
#include <utility>

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "sim/corpus_quick_call.hpp"

namespace corpus {

// A write goes to a store by way of one loop, the read after it by way of another.
// | b: the read passes the other loop while the write still waits, further in front, to pass the
// first one; so the read is the first to arrive.
namespace overtaken_write {

struct store {
  weir::loop_ref home;
  int value = 0;
};
using store_ptr = std::shared_ptr<store>;

/// Calls `fn` where the store lives, by way of another loop.
template <class F>
void send(weir::loop_ref way, const store_ptr& to, const F& fn) {
  way.post([to, fn] { to->home.post(fn); });
}
inline weir::task<> write_and_hope(const store_ptr& to, weir::loop_ref way) {
  send(way, to, [to] { to->value = 1; });
  co_return;
}
inline weir::task<> write_and_wait(const store_ptr& to, weir::loop_ref way) {
  co_await weir::suspend<void>([&](weir::resumer<void> written) {
    send(way, to, [to, written]() mutable {
      to->value = 1;
      written.complete();
    });
  });
}
inline weir::task<int> read(const store_ptr& from, weir::loop_ref way) {
  co_return co_await weir::suspend<int>([&](weir::resumer<int> answer) {
    send(way, from, [from, answer]() mutable { answer.complete(from->value); });
  });
}
using writer = weir::task<> (*)(const store_ptr& to, weir::loop_ref way);

inline weir::task<> write_then_read(weir::sim::world& w, writer write) {
  const auto there = std::make_shared<store>();
  there->home = w.loop("store");
  co_await write(there, w.loop("a"));
  const int value = co_await read(there, w.loop("b"));
  weir::sim::always("a read sees the write before it", value == 1);
}
inline weir::task<> buggy(weir::sim::world& w) { return write_then_read(w, write_and_hope); }
inline weir::task<> fixed(weir::sim::world& w) { return write_then_read(w, write_and_wait); }

}  // namespace overtaken_write

// A new version is announced to a client and to a server, each on a loop of its own. A client that
// hears of it first sends a request that the server does not understand yet.
// | client: it sends its request before the announcing fiber gets its second turn.
namespace early_request {

struct server {
  weir::loop_ref home;
  int version = 1;
  bool asked = false;
  bool understood = false;
  weir::resumer<void> on_asked;
};
using server_ptr = std::shared_ptr<server>;

inline void tell_server(const server_ptr& at) {
  at->home.post([at] { at->version = 2; });
}
inline void tell_client(weir::loop_ref client, const server_ptr& at) {
  auto request = [at] {
    at->understood = at->version == 2;
    at->asked = true;
    at->on_asked.complete();
  };
  client.post([at, request] { at->home.post(request); });
}
inline weir::task<> announce(weir::sim::world& w, bool server_first) {
  const auto at = std::make_shared<server>();
  at->home = w.loop("server");
  const auto client = w.loop("client");
  if (server_first) tell_server(at);
  tell_client(client, at);
  co_await quick_call();  // the log
  if (!server_first) tell_server(at);
  co_await weir::suspend<void>([&](weir::resumer<void> r) {
    at->on_asked = std::move(r);
    if (at->asked) at->on_asked.complete();
  });
  weir::sim::always("a request finds its version", at->understood);
}
inline weir::task<> buggy(weir::sim::world& w) { return announce(w, false); }
inline weir::task<> fixed(weir::sim::world& w) { return announce(w, true); }

}  // namespace early_request

}  // namespace corpus
