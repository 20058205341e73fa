// SPDX-License-Identifier: MIT
// supervisor: random operations on a tree on several loops, in orders that an adversary chooses: no
// life overlaps another, every request is answered, and in the end no child is left.
#include "supervisor_chaos.hpp"

using namespace supervisor_test;

namespace {

void disturb_a_tree(strategy outer, strategy inner) {
  for_each_order([&](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far"), further = w.loop("further");
    auto body = [&](rig& r) -> task<> {
      const std::vector<weir::loop_ref> loops{weir::this_loop(), far, further};
      co_await one_run(r, options_of(inner, 2, 5ms), loops, true);
    };
    w.run([&]() -> task<> { co_await with_rig(options_of(outer, 3, 5ms), body); });
  });
}

}  // namespace
TEST(supervisor_chaos, whatever_is_done_to_a_tree_under_one_for_one_it_holds_together) {
  disturb_a_tree(strategy::one_for_one, strategy::rest_for_one);
}
TEST(supervisor_chaos, whatever_is_done_to_a_tree_under_one_for_all_it_holds_together) {
  disturb_a_tree(strategy::one_for_all, strategy::one_for_one);
}
TEST(supervisor_chaos, whatever_is_done_to_a_tree_under_rest_for_one_it_holds_together) {
  disturb_a_tree(strategy::rest_for_one, strategy::one_for_all);
}
TEST(supervisor_chaos, whatever_is_done_to_a_tree_under_dynamic_it_holds_together) {
  disturb_a_tree(strategy::dynamic, strategy::dynamic);
}
