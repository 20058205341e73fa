// SPDX-License-Identifier: MIT
// Streams inside a run: what a generator has in flight between two pulls is replayed like any other
// wait of the run. Keeps of the flow page: "After a value, a wait that cannot be withdrawn stays in
// flight, and the next pull attaches to it."
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

weir::stream<int> stepped(std::string name, int count, weir::duration each) {
  for (int i = 0; i < count; ++i) {
    int v = co_await give_after(each, name + std::to_string(i), i);
    co_yield v;
  }
}

template <class S>
task<std::string> pulled_one_by_one(S& from) {
  std::vector<int> all;
  for (;;) {
    auto v = co_await from.next();
    if (!v) break;
    all.push_back(*v);
    co_await give("seen" + std::to_string(all.size()), 0);
  }
  co_return text(all);
}

}  // namespace

TEST(durable_stream, merged_generators_of_steps_survive_every_crash) {
  survives(
      [](int) -> task<std::string> {
        auto both = weir::merge(stepped("a", 3, 5h), stepped("b", 2, 7h));
        co_return co_await pulled_one_by_one(both);
      },
      "0,0,1,1,2");
}

TEST(durable_stream, one_that_is_dropped_in_flight_survives_every_crash) {
  survives(
      [](int) -> task<std::string> {
        int first = -1;
        {
          auto both = weir::merge(stepped("a", 3, 5h), stepped("b", 2, 1h));
          auto v = co_await both.next();
          first = *v;
        }
        co_await give("after", 0);
        co_return row(first);
      },
      "0");
}
