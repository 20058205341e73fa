// SPDX-License-Identifier: MIT
// Operators of random pipelines: those about time, and those around a whole stream.
#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

weir::stream<item> passed_on(world& w, items in) {
  visit here(w.generators);
  auto good = weir::scope_success([&] { ++w.generators.succeeded; });
  auto bad = weir::scope_failure([&] { ++w.generators.failed; });
  for (;;) {
    auto i = co_await in.next();
    if (!i) break;
    co_yield std::move(*i);
  }
  here.complete();
}

/// Gives each pull up and repeats it, with more patience each time, so that it comes to an end.
weir::stream<item> passed_on_impatiently(world& w, items in) {
  visit here(w.generators);
  auto good = weir::scope_success([&] { ++w.generators.succeeded; });
  auto bad = weir::scope_failure([&] { ++w.generators.failed; });
  weir::duration patience = ms(1);
  for (;;) {
    std::optional<item> i;
    bool late = false;
    try {
      i = co_await weir::with_timeout(patience, in.next());
    } catch (const weir::timeout_error&) {
      late = true;
    }
    if (late) {
      patience *= 2;
      continue;
    }
    if (!i) break;
    co_yield std::move(*i);
  }
  here.complete();
}

items recovery() {
  std::vector<item> all;
  for (int i = 0; i < recovery_items; ++i) all.emplace_back(extra_item + 1 + i);
  return weir::from(std::move(all));
}

}  // namespace

items build_rate(world& w, const node& n, items in) {
  (void)w;
  using weir::overflow;
  switch (n.what) {
    case op::buffer_wait:
      return std::move(in) | weir::buffer(n.b);
    case op::buffer_drop_oldest:
      return std::move(in) | weir::buffer(n.b, overflow::drop_oldest);
    case op::buffer_drop_newest:
      return std::move(in) | weir::buffer(n.b, overflow::drop_newest);
    case op::buffer_conflate:
      return std::move(in) | weir::buffer(n.b, overflow::conflate);
    case op::conflate:
      return std::move(in) |
             weir::conflate([](const item&, const item& i) { return item(i.value()); });
    case op::throttle:
      return std::move(in) | weir::throttle(ms(n.c + 1));
    case op::debounce:
      return std::move(in) | weir::debounce(ms(n.c + 1));
    case op::sample:
      return std::move(in) | weir::sample(ms(n.c + 1));
    case op::delay:
      return std::move(in) | weir::delay(ms(n.c));
    case op::timeout_each:
      return std::move(in) | weir::timeout_each(1h);
    default:
      return std::move(in) | weir::timeout_each(ms(n.c + 1));
  }
}

items build_around(world& w, const node& n, items in) {
  switch (n.what) {
    case op::shared: {
      auto& hot = w.shared.emplace_back(weir::share(*w.home, std::move(in), {.capacity = n.b}));
      return w.subscriptions.emplace_back(hot.subscribe()).stream();
    }
    case op::passed_on:
      return passed_on(w, std::move(in));
    case op::passed_impatiently:
      return passed_on_impatiently(w, std::move(in));
    case op::catch_with:
      return std::move(in) | weir::catch_with([](std::exception_ptr) { return recovery(); });
    case op::finally_plain:
      return std::move(in) | weir::finally([&w] { ++w.finally_entered; });
    default:
      return std::move(in) | weir::finally([&w]() -> task<> {
               ++w.finally_entered;
               co_await weir::sleep(ms(1));
             });
  }
}

}  // namespace fuzz
