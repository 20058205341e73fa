// SPDX-License-Identifier: MIT
// dump and live from another thread: a loop describes itself when it is asked through its inbox.
#include <atomic>
#include <optional>
#include <sstream>
#include <thread>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;
TEST(dump, another_thread_sees_the_tree_of_a_parked_loop) {
  std::string text;
  long fibers = 0;
  weir::run({.name = "harbour"}, [&]() -> task<> {
    co_await weir::with_scope({.name = "quay"}, [&](weir::scope& s) -> task<> {
      auto crane = s.spawn(after(1h, 1), {.name = "crane"});
      while (live_timers() == 0) co_await weir::yield();  // the crane is parked
      std::thread other;
      co_await weir::suspend<void>([&](weir::resumer<void> r) {
        other = std::thread([&, r]() mutable {
          std::ostringstream out;
          weir::dump(out);
          text = out.str();
          fibers = live_fibers();
          r.complete();
        });
        return [] { return weir::cancel_result::no; };
      });
      other.join();
      crane.cancel();
    });
  });
  for (const char* part : {"harbour", "quay", "crane", "sleep"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in:\n" << text;
  EXPECT_GE(fibers, 1);
}

// Two loops that dump each other at the same time answer while they wait.
TEST(dump, two_loops_can_dump_each_other_at_once) {
  std::atomic<int> ready_loops{0}, done{0};
  auto loop = [&] {
    weir::run([&]() -> task<> {
      ++ready_loops;
      while (ready_loops < 2) co_await weir::yield();
      for (int i = 0; i < 10; ++i) {
        std::ostringstream out;
        weir::dump(out);
        EXPECT_FALSE(out.str().empty());
        co_await weir::yield();
      }
      ++done;
      while (done < 2) co_await weir::yield();
    });
  };
  std::thread other(loop);
  loop();
  other.join();
  EXPECT_EQ(done, 2);
}
