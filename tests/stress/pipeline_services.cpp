// SPDX-License-Identifier: MIT
// Consumers of random pipelines that are background children: a sink as a service, and share.
#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

template <class S>
weir::child<void> start_service(world& w, const usage& use, findings& found, items stream, S& s) {
  auto note = [&](item i) -> task<> {
    co_await weir::sleep(ms(i.value() % 4));
    found.got.push_back(i.value());
  };
  if (!use.governed) return s.background(std::move(stream) | weir::for_each(note));
  return permitted(w, use.by, use.width, [&](auto&& g) {
    return s.background(std::move(stream) | weir::for_each(note, g));
  });
}

}  // namespace

// Services end last: the defer, which was registered later, still finds it at work.
task<> consume_as_service(world& w, const usage& use, findings& found, items stream) {
  found.unordered = use.governed;
  const bool ends = expect(w.plan).ends;
  auto body = [&](weir::scope& s) -> task<> {
    auto service =
        std::make_shared<weir::child<void>>(start_service(w, use, found, std::move(stream), s));
    s.defer([&w, &found, ends, service]() -> task<> {
      if (!ends) {
        co_await weir::sleep(ms(50));
        co_return;
      }
      auto how = co_await weir::settle(*service);
      found.ended = how.is_value();
      if (how.is_cancelled()) w.problem("a service was cancelled before the defers ran");
    });
    co_await weir::sleep(ms(use.width));
  };
  co_await weir::with_scope(body);
}

namespace {

task<> listen(weir::subscription<item>& to, std::vector<int>& into, int limit,
              std::exception_ptr& error, bool& ended) {
  try {
    while (limit-- != 0) {
      auto i = co_await to.next();
      if (!i) {
        ended = true;
        break;
      }
      into.push_back(i->value());
    }
  } catch (...) {
    error = std::current_exception();
  }
}

struct listener {
  std::optional<weir::subscription<item>> to;
  std::vector<int> got;
  std::exception_ptr error;
  bool ended = false;
};

}  // namespace

// All subscribe before the first item is pulled, so all get the same; one may leave early.
task<> consume_shared(world& w, const usage& use, findings& found, items stream) {
  std::deque<listener> all(static_cast<std::size_t>(use.width));
  auto body = [&](weir::scope& s) -> task<> {
    auto hot = weir::share(s, std::move(stream), {.capacity = use.patience});
    for (listener& l : all) l.to.emplace(hot.subscribe());
    auto one = [&](listener& l, int limit) -> task<> {
      co_await listen(*l.to, l.got, limit, l.error, l.ended);
      l.to.reset();
    };
    for (std::size_t i = 1; i < all.size(); ++i) {
      s.spawn(one(all[i], i == 1 ? use.items : -1));
    }
    co_await one(all[0], -1);
    co_await s.join();
  };
  co_await weir::with_scope(body);
  found.got = all.front().got;
  found.ended = all.front().ended;
  found.error = all.front().error;
  if (w.counted_items.burnt()) co_return;  // a copy for one of them may be what failed
  for (std::size_t i = 2; i < all.size(); ++i) {
    if (all[i].got != all[0].got) w.problem("two subscribers of one shared stream differ");
  }
}

}  // namespace fuzz
