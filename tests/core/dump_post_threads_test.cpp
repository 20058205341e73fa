// SPDX-License-Identifier: MIT
// A loop that waits for the dump of another one looks into its inbox meanwhile: what else it finds
// there is put off, not lost, and keeps its order.
#include <atomic>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "core/door.hpp"
#include "support/aid.hpp"

using namespace aid;
using weir::task;

namespace {

/// Counts the destruction of the function it is captured by, once however often that was moved.
class last_breath {
 public:
  explicit last_breath(std::atomic<int>& count) : count_(&count) {}
  last_breath(last_breath&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  last_breath& operator=(last_breath&&) = delete;
  ~last_breath() {
    if (count_ != nullptr) ++*count_;
  }

 private:
  std::atomic<int>* count_;
};

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

/// What happens on the three threads of a test: the loop at home dumps, another loop is silent, and
/// a plain thread posts to home while home waits for the silent one.
class dump_and_post {
 public:
  /// Runs `after` at home once the dump is done.
  template <class After>
  void run(int posts, After after) {
    std::thread silent, poster;
    weir::run([&]() -> task<> {
      home_ = weir::this_loop();
      silent = std::thread([&] { be_silent(); });
      wait_for(other_runs_);
      poster = std::thread([&, posts] { post(posts); });
      std::ostringstream out;
      weir::dump(out);
      dumped_ = true;
      EXPECT_TRUE(called_.empty()) << "called in the middle of a step";
      co_await after(*this);
    });
    poster.join();
    silent.join();
  }
  std::vector<int>& called() { return called_; }
  int destroyed() const { return destroyed_; }
  weir::loop_ref home() const { return home_; }

 private:
  void be_silent() {
    weir::run([&]() -> task<> {
      other_ = weir::this_loop();
      other_runs_ = true;
      wait_for(seen_);
      co_return;
    });
  }
  void post(int posts) {
    // The question in the inbox of the silent loop tells that home is inside of dump.
    const auto asked = weir::detail::door_table::find(other_.index(), other_.serial());
    while (!asked->messages.has_messages()) std::this_thread::yield();
    for (int i = 0; i < posts; ++i) {
      const bool accepted =
          home_.post([this, i, breath = last_breath(destroyed_)] { called_.push_back(i); });
      EXPECT_TRUE(accepted);
    }
    // The silent loop may answer only when home has taken the posts out of its inbox.
    const auto door = weir::detail::door_table::find(home_.index(), home_.serial());
    while (!dumped_ && door->messages.has_messages()) std::this_thread::yield();
    seen_ = true;
  }

  weir::loop_ref home_, other_;
  std::atomic<bool> other_runs_{false}, seen_{false}, dumped_{false};
  std::atomic<int> destroyed_{0};
  std::vector<int> called_;  // home only
};

}  // namespace

TEST(dump, what_is_posted_while_it_waits_for_another_loop_is_called_afterwards_in_order) {
  dump_and_post test;
  test.run(3, [](dump_and_post& t) -> task<> {
    t.home().post([&] { t.called().push_back(3); });
    while (t.called().size() < 4) co_await weir::yield();
  });
  EXPECT_EQ(test.called(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(test.destroyed(), 3);
}

TEST(dump, what_is_posted_while_it_waits_keeps_an_idle_loop_from_being_judged_deadlocked) {
  dump_and_post test;
  test.run(1, [](dump_and_post& t) -> task<> {
    weir::counting_governor g(0);
    t.home().post([&] { g.resize(1); });
    weir::permit p = co_await g.acquire();
  });
  EXPECT_EQ(test.called(), std::vector<int>{0});
  EXPECT_EQ(test.destroyed(), 1);
}

TEST(dump, what_is_posted_while_it_waits_is_destroyed_once_if_the_loop_ends_first) {
  dump_and_post test;
  test.run(3, [](dump_and_post&) -> task<> { co_return; });
  EXPECT_TRUE(test.called().empty());
  EXPECT_EQ(test.destroyed(), 3);
}
