// SPDX-License-Identifier: MIT
// A dump that has to wait for another loop, and messages that reach the dumping loop meanwhile.
#pragma once

#include <atomic>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <weir/weir.hpp>

#include "core/door.hpp"

namespace test_support {

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

/// What happens on the three threads of a test: the loop at home dumps, another loop is silent, and
/// a plain thread posts to home while home waits for the silent one.
class dump_and_post {
 public:
  dump_and_post() = default;
  dump_and_post(const dump_and_post&) = delete;
  dump_and_post& operator=(const dump_and_post&) = delete;
  ~dump_and_post() { join(); }

  /// At home: from now on there is another loop, which is silent.
  void begin() {
    home_ = weir::this_loop();
    silent_ = std::thread([this] { be_silent(); });
    wait_for(other_runs_);
  }
  void join() {
    if (poster_.joinable()) poster_.join();
    seen_ = true;
    if (silent_.joinable()) silent_.join();
  }
  /// Dumps at home, or in a durable run there, while `posts` messages arrive.
  std::string dump(int posts) {
    poster_ = std::thread([this, posts] { post(posts); });
    std::ostringstream out;
    weir::dump(out);
    dumped_ = true;
    EXPECT_TRUE(called_.empty()) << "called in the middle of a step";
    return out.str();
  }
  std::vector<int>& called() { return called_; }
  int destroyed() const { return destroyed_; }
  weir::loop_ref home() const { return home_; }

 private:
  static void wait_for(const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::yield();
  }
  void be_silent() {
    weir::run({.name = "silent"}, [&]() -> weir::task<> {
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
  std::thread silent_, poster_;
};

}  // namespace test_support
