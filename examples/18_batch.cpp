// SPDX-License-Identifier: MIT
// A batch: many items, a few at a time. Either the first error ends it, or each item has its
// own result.

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

/// A service that counts how many ask it at once.
struct service {
  int asking = 0;
  int most = 0;
  task<int> price(int item) {
    most = std::max(most, ++asking);
    auto end = weir::scope_exit([&] { --asking; });
    co_await weir::sleep(10ms);
    if (item == 13) throw std::runtime_error("no price for item 13");
    co_return item * 10;
  }
};

std::vector<int> items(int first, int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

// Results come in the order of the items; the first error cancels the rest of the batch.
task<> all_or_nothing() {
  service shop;
  auto one = [&](int item) { return shop.price(item); };
  const std::vector<int> wanted = items(100, 20);
  const std::vector<int> prices = co_await weir::parallel_map(wanted, one, 4);
  say("20 prices, the last " + std::to_string(prices.back()) + ", at most " +
      std::to_string(shop.most) + " at once");
  const std::vector<int> unlucky = items(10, 20);
  try {
    co_await weir::parallel_map(unlucky, one, 4);
  } catch (const std::runtime_error& e) {
    say(e.what());
  }
}

// The limit belongs to the policy: all operations under it share the four places.
task<> each_for_itself() {
  service shop;
  int priced = 0;
  const auto gently = weir::retry({.attempts = 2, .base = 1ms}) | weir::bulkhead(4);
  auto one = [&](int item) -> task<> {
    auto price = weir::op([&shop, item] { return shop.price(item); }) | gently;
    const auto result = co_await weir::settle([&] { return price(); });
    if (result.is_value()) ++priced;
  };
  const auto begun = weir::now();
  co_await weir::with_group([&](weir::group& g) -> task<> {
    for (const int item : items(10, 20)) g.go([&one, item] { return one(item); });
    co_await g.wait();
  });
  say(std::to_string(priced) + " of 20 prices, at most " + std::to_string(shop.most) +
      " at once, in " + std::to_string((weir::now() - begun) / 10ms) + " rounds");
}

task<> program() {
  std::puts("all or nothing");
  co_await all_or_nothing();
  std::puts("each for itself");
  co_await each_for_itself();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
