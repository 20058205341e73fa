// SPDX-License-Identifier: MIT
#include "stress/exchange_plan.hpp"

#include <iterator>
#include <sstream>

namespace fuzz {

namespace {

actor any_actor(dice& d, role as) {
  actor a;
  a.as = as;
  a.items = d.between(1, 6);
  for (int i = d.between(1, 4); i > 0; --i) {
    const auto by = static_cast<way>(d.below(static_cast<int>(way::count)));
    const int pause = d.percent(50) ? 0 : d.between(1, 5);
    a.acts.push_back({by, d.between(1, 6), pause});
  }
  return a;
}

constexpr const char* container_names[] = {"queue", "channel", "channel from another loop",
                                           "broadcast"};
constexpr const char* way_names[] = {"plain",
                                     "with_timeout(x)",
                                     "settle(x)",
                                     "x in a cancelled child",
                                     "race(x,numbers.next)",
                                     "any(x,numbers.next)",
                                     "race(x,acquire)",
                                     "race(x,sleep)",
                                     "any(x,sleep)",
                                     "all(x,sleep)",
                                     "all(x,acquire)",
                                     "race(x,x)",
                                     "all(x,x)"};
static_assert(std::size(way_names) == static_cast<std::size_t>(way::count));
constexpr const char* role_names[] = {"puts", "takes", "all(put, take)"};

}  // namespace

exchange_plan make_exchange_plan(std::uint64_t seed) {
  dice d(seed);
  exchange_plan plan;
  plan.seed = seed;
  plan.what = static_cast<container>(d.below(static_cast<int>(container::count)));
  plan.capacity = d.between(plan.what == container::queue ? 0 : 1, 3);
  plan.in = any_order(d);
  // A channel has one receiver.
  const bool one_taker = plan.what == container::channel || plan.what == container::remote_channel;
  const int takers = one_taker ? 1 : d.between(1, 3);
  // Who puts and takes an item at once waits for ever if another takes the item and puts none, or
  // fills the room that the item needs.
  const bool both = plan.what != container::remote_channel && d.percent(30);
  for (int i = 0; i < takers; ++i) {
    const bool first_only = plan.what == container::broadcast && i > 0;
    plan.actors.push_back(any_actor(d, both && !first_only ? role::both : role::consumer));
  }
  const int producers = both ? 0 : d.between(0, 3);
  for (int i = 0; i < producers; ++i) plan.actors.push_back(any_actor(d, role::producer));
  // A subscription has one next() at a time.
  if (plan.what != container::broadcast) return plan;
  for (actor& who : plan.actors) {
    for (act& a : who.acts)
      if (who.as != role::producer && a.by >= way::race_twice) a.by = way::plain;
  }
  return plan;
}

std::string to_text(const exchange_plan& plan) {
  std::ostringstream out;
  out << "seed " << plan.seed << ", order " << name_of(plan.in) << "\n"
      << container_names[static_cast<int>(plan.what)] << "(" << plan.capacity << ")\n";
  for (const actor& a : plan.actors) {
    out << "  " << role_names[static_cast<int>(a.as)];
    if (a.as != role::consumer) out << " " << a.items << " items";
    out << ":";
    for (const act& c : a.acts)
      out << " " << way_names[static_cast<int>(c.by)] << " " << c.ms << " ms, pause " << c.pause
          << ";";
    out << "\n";
  }
  return out.str();
}

}  // namespace fuzz
