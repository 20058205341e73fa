// SPDX-License-Identifier: MIT
// supervisor: whatever is done to a tree on several loops, in orders that an adversary chooses.
#include "supervisor_chaos.hpp"

using namespace supervisor_test;

// M5, D5, J1, J2
TEST(supervisor_chaos, whatever_is_done_to_a_tree_nobody_overlaps_is_forgotten_or_left_behind) {
  for (strategy outer : all_strategies) {
    for (strategy inner : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
      for_each_order([&](weir::sim::world& w) {
        const weir::loop_ref far = w.loop("far"), further = w.loop("further");
        auto body = [&](rig& r) -> task<> {
          const std::vector<weir::loop_ref> loops{weir::this_loop(), far, further};
          co_await one_run(r, options_of(inner, 2, 5ms), loops, true);
        };
        w.run([&]() -> task<> { co_await with_rig(options_of(outer, 3, 5ms), body); });
      });
    }
  }
}
