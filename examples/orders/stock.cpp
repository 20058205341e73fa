// SPDX-License-Identifier: MIT
// The handlers of an item take turns: no two orders get the last piece, and no lock is needed. What
// a handler stores and sends is committed together with its end, or not at all, so a call has its
// effect exactly once. Other items are not held up.
#include "stock.hpp"

#include <algorithm>
#include <cstddef>

namespace shop {

namespace {

constexpr int few = 10;
constexpr int delivery = 100;

weir::task<shelf> look() {
  const std::optional<shelf> known = co_await weir::stored<shelf>("shelf").get();
  co_return known.value_or(shelf{});
}

void put(const shelf& s) { weir::stored<shelf>("shelf").set(s); }

bool holds_for(const shelf& s, const std::string& order) {
  return std::count(s.reserved.begin(), s.reserved.end(), order) > 0;
}

weir::task<> reserve(back_office& office, std::string order) {
  shelf s = co_await look();
  if (holds_for(s, order)) co_return;
  if (s.left == 0) throw weir::terminal_error("sold out");
  const std::string item = weir::this_key();
  co_await weir::step("label", [&] { office.did("reserve", order, item); });
  s.reserved.push_back(order);
  // Sent when this turn is committed: never without it, and never twice.
  if (--s.left == few) co_await weir::send("stock/deliver", delivery, {.delay = 2s, .key = item});
  put(s);
}

weir::task<> release(back_office& office, std::string order) {
  shelf s = co_await look();
  if (!holds_for(s, order)) co_return;
  const std::string item = weir::this_key();
  co_await weir::step("put back", [&] { office.did("release", order, item); });
  std::erase(s.reserved, order);
  ++s.left;
  put(s);
}

weir::task<> hand_out(std::string order) {
  shelf s = co_await look();
  std::erase(s.reserved, order);
  put(s);
}

weir::task<> deliver(int pieces) {
  shelf s = co_await look();
  s.left += pieces;
  put(s);
}

weir::task<int> level() {
  const shelf s = co_await look();
  co_return s.left;
}

}  // namespace

void add_stock(weir::durable::engine& e, back_office& office) {
  auto reserving = [&office](std::string order) { return reserve(office, std::move(order)); };
  auto releasing = [&office](std::string order) { return release(office, std::move(order)); };
  e.add_object("stock", {{"reserve", reserving},
                         {"release", releasing},
                         {"hand_out", hand_out},
                         {"deliver", deliver},
                         {"level", weir::durable::shared(level)}});
}

}  // namespace shop
