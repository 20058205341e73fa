// SPDX-License-Identifier: MIT
// Operators of random pipelines: those with children of their own.
#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

task<item> worked_on(item i, int k) {
  co_await weir::sleep(ms((i.value() * 7 + k) % 6));
  co_return i;
}

task<item> worked_on_or_not(item i) {
  co_await weir::sleep(ms(i.value() % 3));
  if (fails(i.value())) throw boom(5);
  co_return i;
}

task<item> asked_for(weir::agent_ref<helper> agent, item i) {
  const int v = co_await agent.call(&helper::slow, i.value(), i.value() % 4);
  co_return item(v);
}

/// The inner stream of an item: asks the agent for it, or sleeps.
weir::stream<item> inner_of(world& w, int v) {
  visit here(w.generators);
  auto good = weir::scope_success([&] { ++w.generators.succeeded; });
  auto bad = weir::scope_failure([&] { ++w.generators.failed; });
  int answer = v;
  if (v % 2 == 0) {
    answer = co_await w.agent->call(&helper::slow, v, v % 4);
  } else {
    co_await weir::sleep(ms(v % 4));
  }
  co_yield item(answer);
  here.complete();
}

items build_inner(world& w, const node& n, items in) {
  auto inner = [&w](const item& i) { return inner_of(w, i.value()); };
  switch (n.what) {
    case op::flat_map:
      return std::move(in) | weir::flat_map([](const item& i) {
               std::vector<item> two;
               two.emplace_back(i.value());
               two.emplace_back(inner_item(i.value()));
               return weir::from(std::move(two));
             });
    case op::flat_map_generator:
      return std::move(in) | weir::flat_map(inner);
    case op::flat_map_concurrent:
      return permitted(w, n.by, n.b, [&](auto&& g) -> items {
        if constexpr (requires { weir::flat_map(g, inner); }) {
          return std::move(in) | weir::flat_map(g, inner);
        } else {
          return std::move(in) | weir::flat_map(inner) | weir::buffer(1);
        }
      });
    default:
      return std::move(in) | weir::switch_map(inner);
  }
}

}  // namespace

items build_concurrent(world& w, const node& n, items in) {
  if (n.what <= op::switch_map) return build_inner(w, n, std::move(in));
  return permitted(w, n.by, n.b, [&](auto&& g) -> items {
    const int k = n.c;
    switch (n.what) {
      case op::map_async:
        return std::move(in) |
               weir::map_async(g, [k](item i) { return worked_on(std::move(i), k); });
      case op::map_async_failing:
        return std::move(in) |
               weir::map_async(g, [](item i) { return worked_on_or_not(std::move(i)); });
      case op::map_async_unordered:
        return std::move(in) |
               weir::map_async_unordered(g, [k](item i) { return worked_on(std::move(i), k); });
      case op::map_async_call:
        return std::move(in) | weir::map_async(g, [agent = *w.agent](item i) {
                 return asked_for(agent, std::move(i));
               });
      case op::buffered:
        return std::move(in) | weir::buffered(g);
      case op::buffered_at_once:
        return std::move(in) | weir::buffered(g, true);
      default:
        return std::move(in) | weir::limit(g);
    }
  });
}

}  // namespace fuzz
