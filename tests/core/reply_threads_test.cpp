// SPDX-License-Identifier: MIT
// Replies between real threads: answers, cancellations and the ends of loops meet; every reply is
// freed once, and every asker ends.
#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/reply.hpp>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "support/test_support.hpp"

using namespace test_support;
using weir::cancel_result;
using weir::task;
using weir::detail::reply;

namespace {

class shared_probe_wait;

struct shared_probe final : weir::detail::reply_to<shared_probe_wait> {
  explicit shared_probe(std::atomic<int>& count) noexcept : freed(count) {}
  void dispose() noexcept override {
    freed.fetch_add(1);
    delete this;
  }
  std::atomic<int>& freed;
  int value = 0;  // the answer; not atomic, so that the thread sanitizer checks the order
};

class shared_probe_wait : public weir::detail::simple_wait<shared_probe_wait> {
 public:
  using args = shared_probe*;
  using result = int;
  explicit shared_probe_wait(args&& r) noexcept : reply_(r) {}
  ~shared_probe_wait() {
    if (reply_ != nullptr) reply_->leave();
  }
  bool try_now() const noexcept { return false; }
  void arm() noexcept;
  cancel_result withdraw() noexcept override {
    std::exchange(reply_, nullptr)->leave();
    complete();
    return cancel_result::later;
  }
  bool pausable() const noexcept override { return false; }
  void describe(weir::detail::dump_line& line) const override { line.add("a reply"); }
  int take() const noexcept { return reply_->value; }
  void answered() noexcept { complete(); }

 private:
  shared_probe* reply_;
};

/// Requests that threads take and answer, or decline.
class desk {
 public:
  explicit desk(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  ~desk() {
    open_.store(false);
    for (auto& t : threads_) t.join();
  }
  void put(shared_probe& r) {
    shared_probe* none = nullptr;
    while (!slot_.compare_exchange_weak(none, &r)) none = nullptr;
  }
  static inline desk* current = nullptr;

 private:
  void work(int number) {
    for (;;) {
      shared_probe* const r = slot_.exchange(nullptr);
      if (r == nullptr) {
        if (!open_.load()) return;
        std::this_thread::yield();
        continue;
      }
      for (int i = 0; i < (number + served_.load()) % 3; ++i) std::this_thread::yield();
      if (!r->claim()) {
        r->dispose();
      } else {
        r->value = 7;
        r->answer();
      }
      served_.fetch_add(1);
    }
  }
  std::atomic<bool> open_{true};
  std::atomic<int> served_{0};
  std::atomic<shared_probe*> slot_{nullptr};
  std::vector<std::thread> threads_;
};

void shared_probe_wait::arm() noexcept {
  reply_->ask(*this);
  desk::current->put(*reply_);
}

task<int> ask_desk(int& made, std::atomic<int>& freed) {
  auto* const r = new shared_probe(freed);
  ++made;
  co_return co_await weir::detail::pending<shared_probe_wait>(r);
}

}  // namespace

TEST(reply_threads, answers_and_cancellations_meet_and_each_reply_is_freed_once) {
  constexpr int repeats = 500;
  int made = 0;
  std::atomic<int> freed{0};
  {
    desk answering(2);
    desk::current = &answering;
    weir::run([&]() -> task<> {
      for (int i = 0; i < repeats; ++i) {
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          auto stays = s.spawn(ask_desk(made, freed));
          auto leaves = s.spawn(ask_desk(made, freed));
          for (int n = i % 4; n > 0; --n) co_await weir::yield();
          leaves.cancel("enough");
          EXPECT_EQ(co_await stays, 7);
        });
      }
    });
  }
  EXPECT_EQ(freed.load(), made);
}

TEST(reply_threads, a_loop_that_ends_leaves_its_replies_to_the_answering_threads) {
  constexpr int repeats = 200;
  int made = 0;
  std::atomic<int> freed{0};
  {
    desk answering(2);
    desk::current = &answering;
    for (int i = 0; i < repeats; ++i) {
      weir::run([&]() -> task<> {
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          for (int n = 0; n < 3; ++n) s.spawn(ask_desk(made, freed));
          co_await weir::yield();
          s.cancel("the end");
        });
      });
    }
  }
  EXPECT_EQ(freed.load(), made);
}

TEST(reply_threads, loops_that_serve_each_other_answer_everything) {
  std::atomic<int> sum{0};
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread other(s, {.name = "other"});
      weir::shared_governor g(1, {.name = "shared"});
      auto once = [&]() -> task<> {
        auto held = co_await g.acquire();
        sum.fetch_add(co_await weir::blocking([] { return 1; }));
      };
      auto many = [&]() -> task<> {
        for (int i = 0; i < 100; ++i) co_await once();
      };
      auto there = [&]() -> task<> { co_await weir::on(other.ref(), many); };
      co_await weir::all(many, there);
    });
  });
  EXPECT_EQ(sum.load(), 200);
}
