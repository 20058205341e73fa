// SPDX-License-Identifier: MIT
// The inbox and the door with eight posting threads: nothing is lost, nothing overtakes, a sleeping
// loop is woken once, and a closed inbox refuses.
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/door.hpp"
#include "core/inbox.hpp"

using weir::detail::door;
using weir::detail::inbox;
using weir::detail::loop;
using weir::detail::message;

namespace {

constexpr int producers = 8;
constexpr int each = 5'000;

struct letter final : message {
  letter(int f, int n) : from(f), number(n) {}
  void deliver(loop&) noexcept override {}
  void refuse() noexcept override { ++refused; }
  int from;
  int number;
  int refused = 0;
};

/// The letters of all producers; they stay here until the threads have ended.
class letters {
 public:
  letters() {
    for (int from = 0; from < producers; ++from)
      for (int number = 0; number < each; ++number)
        of_[static_cast<std::size_t>(from)].emplace_back(from, number);
  }
  std::deque<letter>& of(int from) { return of_[static_cast<std::size_t>(from)]; }
  int refused() const {
    int sum = 0;
    for (const auto& all : of_)
      for (const letter& l : all) sum += l.refused;
    return sum;
  }

 private:
  std::array<std::deque<letter>, producers> of_;
};

/// What arrived, and that each producer's letters came without a gap.
class arrivals {
 public:
  void take(message* first) {
    while (first != nullptr) {
      message* following = first->next;
      const auto& l = static_cast<letter&>(*first);
      int& next = next_[static_cast<std::size_t>(l.from)];
      EXPECT_EQ(l.number, next) << "from producer " << l.from;
      next = l.number + 1;
      ++count_;
      first = following;
    }
  }
  int count() const { return count_; }

 private:
  std::array<int, producers> next_{};
  int count_ = 0;
};

/// Rings are counted: as many may be heard as were rung.
class counted_bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    ++rings_;
    rung_.notify_one();
  }
  void hear() {
    std::unique_lock lock(mutex_);
    rung_.wait(lock, [&] { return rings_ > 0; });
    --rings_;
  }
  int unheard() {
    const std::lock_guard lock(mutex_);
    return rings_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  int rings_ = 0;
};

/// Runs `produce(i)` on a thread each, all at once, and `consume` here.
template <class Produce, class Consume>
void with_producers(Produce produce, Consume consume) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < producers; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < producers) std::this_thread::yield();
      produce(i);
    });
  }
  consume();
  for (std::thread& t : threads) t.join();
}

}  // namespace

TEST(inbox, of_eight_producers_nothing_is_lost_and_each_ones_order_is_kept) {
  letters sent;
  inbox box;
  arrivals got;
  with_producers(
      [&](int i) {
        for (letter& l : sent.of(i)) EXPECT_EQ(box.post(l), inbox::posted::awake);
      },
      [&] {
        while (got.count() < producers * each) got.take(box.take());
      });
  EXPECT_EQ(got.count(), producers * each);
  EXPECT_FALSE(box.has_messages());
}

TEST(inbox, each_sleep_is_ended_by_exactly_one_wake) {
  letters sent;
  inbox box;
  counted_bell door_bell;
  arrivals got;
  std::atomic<int> wakes{0};
  int sleeps = 0;
  with_producers(
      [&](int i) {
        for (letter& l : sent.of(i)) {
          if (box.post(l) != inbox::posted::was_sleeping) continue;
          ++wakes;
          door_bell.ring();
        }
      },
      [&] {
        while (got.count() < producers * each) {
          got.take(box.take());
          if (got.count() == producers * each || !box.begin_sleep()) continue;
          ++sleeps;
          door_bell.hear();
          EXPECT_TRUE(box.has_messages());
          EXPECT_EQ(door_bell.unheard(), 0);
          box.end_sleep();
          EXPECT_TRUE(box.has_messages());
        }
      });
  EXPECT_EQ(wakes, sleeps);
  EXPECT_EQ(door_bell.unheard(), 0);
  EXPECT_EQ(got.count(), producers * each);
}

TEST(inbox, a_sleep_that_nobody_ended_leaves_no_mark_behind) {
  inbox box;
  letter one(0, 0);
  EXPECT_TRUE(box.begin_sleep());
  EXPECT_FALSE(box.has_messages());
  EXPECT_EQ(box.take(), nullptr);
  box.end_sleep();
  EXPECT_EQ(box.post(one), inbox::posted::awake);
  EXPECT_FALSE(box.begin_sleep());
  EXPECT_EQ(box.take(), &one);
  EXPECT_EQ(box.take(), nullptr);
}

TEST(inbox, closed_while_it_sleeps_it_gives_nothing_and_refuses_for_ever) {
  inbox box;
  letter one(0, 0);
  EXPECT_TRUE(box.begin_sleep());
  EXPECT_EQ(box.close(), nullptr);
  EXPECT_EQ(box.post(one), inbox::posted::closed);
  box.end_sleep();
  EXPECT_EQ(box.post(one), inbox::posted::closed);
}

TEST(inbox, closed_it_gives_what_was_there_and_refuses_the_rest) {
  letters sent;
  inbox box;
  arrivals got;
  std::atomic<int> accepted{0}, refused{0};
  with_producers(
      [&](int i) {
        bool closed = false;
        for (letter& l : sent.of(i)) {
          const bool taken = box.post(l) != inbox::posted::closed;
          EXPECT_FALSE(taken && closed) << "opened again";
          closed = !taken;
          ++(taken ? accepted : refused);
        }
      },
      [&] {
        while (got.count() < producers * each / 4) got.take(box.take());
        got.take(box.close());
      });
  EXPECT_EQ(accepted + refused, producers * each);
  EXPECT_EQ(got.count(), accepted);
  EXPECT_GE(got.count(), producers * each / 4);
}

TEST(door, a_loop_that_sleeps_whenever_it_is_idle_gets_everything) {
  letters sent;
  door home("home", 1, false, nullptr);
  arrivals got;
  with_producers(
      [&](int i) {
        for (letter& l : sent.of(i)) EXPECT_TRUE(home.post(l));
      },
      [&] {
        while (got.count() < producers * each) {
          got.take(home.messages.take());
          if (got.count() < producers * each) home.sleep(-1);  // for ever, unless it is woken
        }
      });
  EXPECT_EQ(sent.refused(), 0);
}

TEST(door, closed_it_refuses_each_letter_once) {
  letters sent;
  door home("home", 1, false, nullptr);
  arrivals got;
  std::atomic<int> accepted{0};
  with_producers(
      [&](int i) {
        for (letter& l : sent.of(i)) accepted += home.post(l) ? 1 : 0;
      },
      [&] {
        while (got.count() < producers * each / 4) {
          got.take(home.messages.take());
          home.sleep(1);
        }
        got.take(home.messages.close());
      });
  EXPECT_EQ(got.count(), accepted);
  EXPECT_EQ(sent.refused(), producers * each - accepted);
}

TEST(door, a_ring_ends_the_next_sleep_also_if_it_came_before_it) {
  door home("home", 1, false, nullptr);
  for (int i = 0; i < 100; ++i) {
    std::thread ringer([&] { home.wake(); });
    home.sleep(-1);
    ringer.join();
  }
  EXPECT_FALSE(home.messages.has_messages());
}
