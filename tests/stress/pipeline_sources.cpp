// SPDX-License-Identifier: MIT
// Where random pipelines begin.
#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

weir::stream<item> scripted(world& w, const node& n) {
  visit here(w.generators);
  auto good = weir::scope_success([&] { ++w.generators.succeeded; });
  auto bad = weir::scope_failure([&] { ++w.generators.failed; });
  int i = 0;
  for (const step& s : n.steps) {
    if (i == n.b) throw boom(7);
    co_await perform(w, s);
    if (i % 2 == 0) {
      co_yield item(n.a + i);
    } else {
      const item kept(n.a + i);
      co_yield kept;
    }
    ++i;
  }
  if (n.b >= i) throw boom(7);
  here.complete();
}

/// Fails behind its items, unless it is the last of several lives.
weir::stream<item> mortal(world& w, int first, int count, bool last) {
  visit here(w.generators);
  auto good = weir::scope_success([&] { ++w.generators.succeeded; });
  auto bad = weir::scope_failure([&] { ++w.generators.failed; });
  for (int i = 0; i < count; ++i) {
    co_await weir::sleep(ms(i));
    co_yield item(first + i);
  }
  if (!last) throw boom(8);
  here.complete();
}

int pause_of(const node& n, int i) { return (n.a / 1000 + i * 3) % 5; }

task<> feed_queue(weir::queue<item>& q, const node& n) {
  try {
    for (int i = 0; i < n.b; ++i) {
      co_await weir::sleep(ms(pause_of(n, i)));
      co_await q.push(item(n.a + i));
    }
    q.close();
  } catch (const std::exception&) {
    // The consumer is done, or an item is hostile.
    q.close();
  }
}

task<> feed_channel(weir::sender<item> to, const node& n) {
  try {
    for (int i = 0; i < n.b; ++i) {
      co_await weir::sleep(ms(pause_of(n, i)));
      co_await to.send(item(n.a + i));
    }
  } catch (const std::exception&) {
  }
}

template <class B>
task<> feed_broadcast(B& b, const node& n) {
  try {
    for (int i = 0; i < n.b; ++i) {
      co_await weir::sleep(ms(pause_of(n, i)));
      co_await b.emit(item(n.a + i));
    }
  } catch (const std::exception&) {
  }
  b.close();
}

task<> feed_state(weir::state<item>& st, const node& n) {
  for (int i = 0; i < n.b; ++i) {
    co_await weir::sleep(ms(pause_of(n, i)));
    try {
      st.set(item(n.a + 1 + i));
    } catch (const boom&) {
      co_return;
    }
  }
}

task<> feed_emitter(weir::emitter<item> to, const node& n) {
  for (int i = 0; i < n.b; ++i) {
    co_await weir::sleep(ms(pause_of(n, i)));
    try {
      (void)to.emit(item(n.a + i));
    } catch (const boom&) {
    }
  }
  to.close();
}

items queue_source(world& w, const node& n) {
  weir::queue<item>& q = w.queues.emplace_back(n.c);
  w.beside(feed_queue(q, n));
  if (n.c % 2 == 0) return q.stream();
  return weir::from(q);
}

items channel_source(world& w, const node& n) {
  auto [tx, rx] = weir::channel<item>(n.c + 1);
  weir::receiver<item>& kept = w.receivers.emplace_back(std::move(rx));
  if (n.c % 2 == 0) {
    w.beside(feed_channel(std::move(tx), n));
  } else {
    auto there = [](weir::loop_ref other, weir::sender<item> to, const node& of) -> task<> {
      co_await weir::on(other, feed_channel(std::move(to), of));
    };
    w.beside(there(*w.other, std::move(tx), n));
  }
  return kept.stream();
}

items broadcast_source(world& w, const node& n) {
  using weir::overflow;
  static constexpr overflow policies[] = {overflow::wait, overflow::drop_oldest, overflow::conflate,
                                          overflow::disconnect};
  weir::broadcast<item>& b = w.broadcasts.emplace_back(2);
  w.beside(feed_broadcast(b, n));
  return w.subscriptions.emplace_back(b.subscribe({.overflow = policies[n.c]})).stream();
}

items replay_source(world& w, const node& n) {
  weir::replay<item>& r = w.replays.emplace_back(n.b + 1);
  w.beside(feed_broadcast(r, n));
  return w.subscriptions.emplace_back(r.subscribe()).stream();
}

items state_source(world& w, const node& n) {
  weir::state<item>& st = w.states.emplace_back(item(n.a));
  w.beside(feed_state(st, n));
  return w.subscriptions.emplace_back(st.subscribe()).stream();
}

items callback_source(world& w, const node& n) {
  return weir::from_callback<item>(16, weir::overflow::reject, [&w, &n](weir::emitter<item> to) {
    if (n.c == 0) {
      for (int i = 0; i < n.b; ++i) (void)to.emit(item(n.a + i));
      to.close();
    } else {
      w.beside(feed_emitter(to, n));
    }
    return [] {};
  });
}

items retried_source(world& w, const node& n) {
  auto again = [&w, &n, life = 0]() mutable {
    const int now = life++;
    return mortal(w, n.a + 10 * now, n.b, now >= n.c);
  };
  weir::retry_options options;
  options.attempts = n.c + 1;
  options.base = ms(2);
  return weir::retry_stream(std::move(again), options);
}

items plain_source(const node& n) {
  std::vector<item> all;
  for (const int v : counted(n.a, n.b)) all.emplace_back(v);
  switch (n.what) {
    case op::interval:
      return weir::interval(ms(n.c + 1)) | weir::enumerate() |
             weir::map([first = n.a](const auto& p) {
               return item(first + static_cast<int>(std::get<0>(p)));
             }) |
             weir::take(n.b);
    case op::iota:
      return weir::iota(n.a, n.a + n.b) | weir::map([](int v) { return item(v); });
    case op::from_range:
      return weir::from(std::move(all));
    case op::unfold:
      return weir::unfold(n.a, [end = n.a + n.b](int v) -> std::optional<std::pair<item, int>> {
        if (v == end) return std::nullopt;
        return std::pair<item, int>(item(v), v + 1);
      });
    case op::once:
      return weir::once(item(n.a));
    case op::never:
      return weir::never<item>();
    default:
      return weir::empty<item>();
  }
}

}  // namespace

items build_source(world& w, const node& n) {
  switch (n.what) {
    case op::generator:
      return scripted(w, n);
    case op::from_queue:
      return queue_source(w, n);
    case op::from_channel:
      return channel_source(w, n);
    case op::from_broadcast:
      return broadcast_source(w, n);
    case op::from_replay:
      return replay_source(w, n);
    case op::from_state:
      return state_source(w, n);
    case op::callback:
      return callback_source(w, n);
    case op::retried:
      return retried_source(w, n);
    default:
      return plain_source(n);
  }
}

}  // namespace fuzz
