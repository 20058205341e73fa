// SPDX-License-Identifier: MIT
// A loop that waits for the dump of another one reads its inbox meanwhile: other messages in it are
// postponed, not lost, and keep their order.
#include <vector>

#include "support/dump_support.hpp"
#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

/// Runs `after` at home once a dump is done that had to wait while there were posts.
template <class After>
void dumps_and_then(dump_and_post& test, int posts, After after) {
  weir::run([&]() -> task<> {
    test.begin();
    (void)test.dump(posts);
    co_await after(test);
  });
  test.join();
}

}  // namespace

TEST(dump, what_is_posted_while_it_waits_for_another_loop_is_called_afterwards_in_order) {
  dump_and_post test;
  dumps_and_then(test, 3, [](dump_and_post& t) -> task<> {
    t.home().post([&] { t.called().push_back(3); });
    while (t.called().size() < 4) co_await weir::yield();
  });
  EXPECT_EQ(test.called(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(test.destroyed(), 3);
}

TEST(dump, what_is_posted_while_it_waits_keeps_an_idle_loop_from_being_judged_deadlocked) {
  dump_and_post test;
  dumps_and_then(test, 1, [](dump_and_post& t) -> task<> {
    weir::counting_governor g(0);
    t.home().post([&] { g.resize(1); });
    weir::permit p = co_await g.acquire();
  });
  EXPECT_EQ(test.called(), std::vector<int>{0});
  EXPECT_EQ(test.destroyed(), 1);
}

TEST(dump, what_is_posted_while_it_waits_is_destroyed_once_if_the_loop_ends_first) {
  dump_and_post test;
  dumps_and_then(test, 3, [](dump_and_post&) -> task<> { co_return; });
  EXPECT_TRUE(test.called().empty());
  EXPECT_EQ(test.destroyed(), 3);
}
