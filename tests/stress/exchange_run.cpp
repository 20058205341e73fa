// SPDX-License-Identifier: MIT
// Runs a random exchange in the simulation and checks that nothing was lost or doubled.
#include <algorithm>

#include <weir/sim.hpp>

#include "stress/exchange_world.hpp"

namespace fuzz {

namespace {

constexpr std::int64_t exchange_steps_max = 60'000;

task<> push_numbers(exchange& x) {
  while (!x.over) {
    co_await weir::sleep(millis(3));
    (void)x.numbers.try_push(1);
  }
}
task<> hold_permits(exchange& x) {
  while (!x.over) {
    auto held = co_await x.permits.acquire();
    co_await weir::sleep(millis(4));
  }
}

bool uses(const exchange_plan& plan, way first, way last) {
  for (const actor& who : plan.actors)
    for (const act& a : who.acts)
      if (a.by >= first && a.by <= last) return true;
  return false;
}

task<> whole_exchange(exchange& x) {
  auto body = [&](weir::scope& s) -> task<> {
    // They keep virtual time going, so they are there only if somebody races with them: whatever
    // else hangs is then a deadlock, and not a livelock.
    if (uses(x.plan, way::race_number, way::any_number)) (void)s.background(push_numbers(x));
    if (uses(x.plan, way::race_permit, way::race_permit)) (void)s.background(hold_permits(x));
    switch (x.plan.what) {
      case container::queue:
        co_await exchange_over_queue(x);
        break;
      case container::broadcast:
        co_await exchange_over_broadcast(x);
        break;
      default:
        co_await exchange_over_channel(x);
        break;
    }
    x.over = true;
  };
  co_await weir::with_scope(body);
}

/// `got`: all that was taken out of one place.
void check_taken(exchange& x, std::vector<int> got) {
  std::sort(got.begin(), got.end());
  if (std::adjacent_find(got.begin(), got.end()) != got.end()) x.problem("an item was taken twice");
  for (const int v : got) {
    const auto found = x.put.find(v);
    if (found == x.put.end()) {
      x.problem("item " + std::to_string(v) + " was taken, but never put");
    } else if (found->second == fate::refused) {
      x.problem("item " + std::to_string(v) + " was taken, although its put was withdrawn");
    }
  }
  for (const auto& [v, how] : x.put) {
    if (how == fate::accepted && !std::binary_search(got.begin(), got.end(), v))
      x.problem("item " + std::to_string(v) + " was put and never taken");
  }
}

void check(exchange& x) {
  if (x.plan.what == container::broadcast) {
    for (std::size_t i = 0; i < x.plan.actors.size(); ++i)
      if (x.plan.actors[i].as != role::producer) check_taken(x, x.taken[i]);
    return;
  }
  std::vector<int> all;
  for (const std::vector<int>& some : x.taken) all.insert(all.end(), some.begin(), some.end());
  check_taken(x, all);
}

}  // namespace

std::string run_exchange(const exchange_plan& plan) {
  ledger counted_items;
  std::string problems;
  {
    exchange x(plan);
    x.taken.resize(plan.actors.size());
    for (const actor& a : plan.actors) x.producing += a.as != role::consumer ? 1 : 0;
    try {
      weir::sim::run(
          {.seed = plan.seed, .strategy = strategy_of(plan.in), .max_steps = exchange_steps_max},
          [&] { return whole_exchange(x); });
      check(x);
      if (x.permits.active() != 0 || x.free.active() != 0) x.problem("permits are out");
    } catch (...) {
      x.problem("the program failed: " + weir::describe(std::current_exception()));
    }
    problems = x.problems;
  }
  if (counted_items.alive() != 0)
    problems += "items left: " + std::to_string(counted_items.alive()) + "\n";
  if (counted_items.destroyed_twice() != 0) problems += "items were destroyed twice\n";
  return problems;
}

}  // namespace fuzz
