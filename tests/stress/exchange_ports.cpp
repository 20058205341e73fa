// SPDX-License-Identifier: MIT
// Random exchanges over queues, channels and broadcasts.
#include <deque>

#include "stress/exchange_world.hpp"

namespace fuzz {

namespace {

struct queue_port {
  weir::queue<item>& q;
  auto put(item i) { return q.push(std::move(i)); }
  auto take() { return q.next(); }
};

struct channel_port {
  weir::sender<item> to;
  weir::receiver<item>* from;
  auto put(item i) { return to.send(std::move(i)); }
  auto take() { return from->next(); }
};

struct broadcast_port {
  weir::broadcast<item>& b;
  weir::subscription<item>* from;
  auto put(item i) { return b.emit(std::move(i)); }
  auto take() { return from->next(); }
};

/// Spawns all actors, each on its port, and waits for them. Without a producer it is the end.
template <class Port, class Close>
task<> play_all(exchange& x, std::deque<Port>& ports, Close& close) {
  auto body = [&](weir::scope& s) -> task<> {
    if (x.producing == 0) close();
    for (std::size_t i = 0; i < x.plan.actors.size(); ++i)
      (void)s.spawn(play(x, ports[i], x.plan.actors[i], x.taken[i], close));
    co_await s.join();
  };
  co_await weir::with_scope(body);
}

/// An actor on another loop that sends. It has ports of its own, and no objects of this loop.
task<> send_from_afar(weir::sender<item> to, const actor& who, int first, int& sent) {
  for (int i = 0; i < who.items; ++i) {
    const act& a = who.acts[static_cast<std::size_t>(i) % who.acts.size()];
    if (a.pause > 0) co_await weir::sleep(millis(a.pause));
    co_await to.send(item(first + i));
    ++sent;
  }
}

task<> play_afar(exchange& x, weir::loop_ref there, weir::sender<item> to, const actor& who) {
  const int first = x.next_number() * 1000;
  for (int i = 0; i < who.items; ++i) x.put[first + i] = fate::accepted;
  int sent = 0;
  co_await weir::on(there, send_from_afar(std::move(to), who, first, sent));
}

}  // namespace

task<> exchange_over_queue(exchange& x) {
  weir::queue<item> q(x.plan.capacity);
  auto close = [&] { q.close(); };
  std::deque<queue_port> ports(x.plan.actors.size(), queue_port{q});
  co_await play_all(x, ports, close);
  if (q.size() != 0) x.problem("items are left in a queue that was drained");
}

task<> exchange_over_channel(exchange& x) {
  auto [tx, rx] = weir::channel<item>(x.plan.capacity);
  weir::sender<item> to = std::move(tx);
  weir::receiver<item> from = std::move(rx);
  if (x.plan.what == container::channel) {
    auto close = [&] { to.close(); };
    std::deque<channel_port> ports(x.plan.actors.size(), channel_port{to, &from});
    co_await play_all(x, ports, close);
    co_return;
  }
  auto body = [&](weir::scope& s) -> task<> {
    weir::loop_thread other(s, {.name = "other"});
    for (std::size_t i = 1; i < x.plan.actors.size(); ++i)
      (void)s.spawn(play_afar(x, other.ref(), to, x.plan.actors[i]));
    channel_port port{std::move(to), &from};
    // The end comes with the last sender.
    {
      const weir::sender<item> gone = std::move(port.to);
    }
    co_await consume_all(x, port, x.plan.actors[0], x.taken[0]);
  };
  co_await weir::with_scope(body);
}

task<> exchange_over_broadcast(exchange& x) {
  weir::broadcast<item> b(x.plan.capacity);
  auto close = [&] { b.close(); };
  std::deque<weir::subscription<item>> subscriptions;
  std::deque<broadcast_port> ports;
  for (const actor& a : x.plan.actors) {
    weir::subscription<item>* from = nullptr;
    if (a.as != role::producer) from = &subscriptions.emplace_back(b.subscribe());
    ports.push_back({b, from});
  }
  co_await play_all(x, ports, close);
}

}  // namespace fuzz
