// SPDX-License-Identifier: MIT
// The timer wheel against a sorted map: after any sequence of arming, cancelling and popping both
// agree on what is due, in which order, and on when to look again.
#include <weir/detail/core/timer.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

using weir::detail::deadline_node;
using weir::detail::timer_node;
using weir::detail::timer_wheel;

namespace {

constexpr std::uint64_t latest = ~std::uint64_t{0} - 1;
constexpr std::size_t few = 16;  // with so many timers next_look is exact

struct test_node final : deadline_node {
  void expired() noexcept override {}
};

/// A wheel and its model, driven by one seed.
class twin {
 public:
  twin(bool by_order, std::uint64_t seed)
      : by_order_(by_order),
        random_(seed),
        // Orders are compared as differences, so some runs pass the wrap around.
        first_order_(seed % 2 == 0 ? 0 : 0xffff'ff00U),
        now_(start_time(seed)) {
    EXPECT_EQ(wheel_->pop_due(now_), nullptr);
    elapsed_ = now_;
  }
  twin(const twin&) = delete;
  twin& operator=(const twin&) = delete;
  ~twin() {
    for (auto& entry : model_) wheel_->cancel(*entry.second);
    EXPECT_EQ(wheel_->size(), 0u);
    EXPECT_EQ(wheel_->next_look(), timer_wheel::never);
  }

  void step() {
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        arm();
        break;
      case 5:
      case 6:
        cancel();
        break;
      default:
        compare_next_look();
        advance();
        pop();
    }
    ASSERT_EQ(wheel_->size(), model_.size());
  }

 private:
  using key = std::pair<std::uint64_t, std::uint32_t>;  // effective time, place among equal times

  std::uint64_t start_time(std::uint64_t seed) {
    if (seed % 7 == 0) return (latest >> 1) - 1'000'000;
    return seed % 3 == 0 ? random_() >> 1 : random_() % 1'000'000;
  }

  std::uint64_t distance() {
    switch (random_() % 6) {
      case 0:
        return random_() % 64;
      case 1:
        return random_() % 5'000;
      case 2:
        return random_() % 100'000'000;
      case 3:
        return random_() >> 2;
      case 4:
        return 0;
      default:
        return 998 + random_() % 3;  // so that many timers share a time
    }
  }

  std::uint64_t some_time() {
    if (random_() % 20 == 0) return now_ - std::min<std::uint64_t>(now_, random_() % 50);
    if (random_() % 50 == 0) return latest >> 1;
    if (random_() % 50 == 0) return latest;
    const std::uint64_t after = distance();
    return after > latest - now_ ? latest : now_ + after;
  }

  test_node& unused_node() {
    if (free_.empty()) {
      nodes_.push_back(std::make_unique<test_node>());
      free_.push_back(nodes_.back().get());
    }
    test_node& node = *free_.back();
    free_.pop_back();
    return node;
  }

  void arm() {
    test_node& node = unused_node();
    EXPECT_FALSE(node.armed());
    const std::uint64_t when = some_time();
    std::uint32_t place = ++armings_;
    if (by_order_) {
      // Regions are entered in another order than the one in which their timers are armed.
      place = place * 16 + static_cast<std::uint32_t>(random_() % 160);
      while (orders_[place] != 0) ++place;
      orders_[place] = 1;
      node.order = first_order_ + place;
    }
    wheel_->arm(node, when);
    EXPECT_TRUE(node.armed());
    model_.emplace(key{std::max(when, elapsed_), place}, &node);
  }

  void cancel() {
    if (model_.empty()) return;
    auto at = model_.begin();
    std::advance(at, random_() % std::min<std::size_t>(model_.size(), 200));
    wheel_->cancel(*at->second);
    EXPECT_FALSE(at->second->armed());
    free_.push_back(at->second);
    model_.erase(at);
  }

  void compare_next_look() {
    const std::uint64_t look = wheel_->next_look();
    if (model_.empty()) {
      ASSERT_EQ(look, timer_wheel::never);
    } else if (model_.size() <= few) {
      ASSERT_EQ(look, model_.begin()->first.first);
    } else {
      ASSERT_LE(look, model_.begin()->first.first);
    }
  }

  void advance() {
    const std::uint64_t look = wheel_->next_look();
    std::uint64_t by = 0;
    switch (random_() % 4) {
      case 0:
        by = random_() % 50;
        break;
      case 1:
        by = random_() % 100'000;
        break;
      case 2:
        if (look != timer_wheel::never && look > now_ && look - now_ < (1ULL << 40))
          by = look - now_;
        break;
      default:
        if (random_() % 40 == 0) by = random_() % (1ULL << 36);
    }
    now_ += std::min(by, latest - now_);
  }

  void pop() {
    for (std::size_t limit = random_() % 4 == 0 ? 3 : nodes_.size() + 1; limit > 0; --limit) {
      timer_node* due = wheel_->pop_due(now_);
      if (due == nullptr) {
        ASSERT_TRUE(model_.empty() || model_.begin()->first.first > now_) << "missed one";
        elapsed_ = std::max(elapsed_, now_);
        return;
      }
      ASSERT_FALSE(model_.empty());
      const auto first = model_.begin();
      ASSERT_EQ(due, first->second);
      ASSERT_LE(first->first.first, now_);
      ASSERT_EQ(due->when, first->first.first);
      ASSERT_FALSE(due->armed());
      elapsed_ = first->first.first;
      free_.push_back(first->second);
      model_.erase(first);
    }
  }

  const bool by_order_;
  std::mt19937_64 random_;
  const std::uint32_t first_order_;
  std::uint64_t now_;
  std::uint64_t elapsed_ = 0;
  std::uint32_t armings_ = 0;
  std::map<std::uint32_t, char> orders_;
  std::unique_ptr<timer_wheel> wheel_ = std::make_unique<timer_wheel>(by_order_);
  std::multimap<key, test_node*> model_;
  std::vector<std::unique_ptr<test_node>> nodes_;
  std::vector<test_node*> free_;
};

void compare_with_the_model(bool by_order) {
  constexpr std::uint64_t seeds = 300;
  constexpr int steps = 4'000;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    twin both(by_order, seed);
    for (int i = 0; i < steps; ++i) {
      both.step();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// The places in `nodes` of the timers that are due, in the order in which they come.
template <std::size_t N>
std::vector<int> popped(timer_wheel& wheel, std::array<test_node, N>& nodes, std::uint64_t now) {
  std::vector<int> places;
  while (timer_node* due = wheel.pop_due(now)) {
    const auto found = std::find_if(nodes.begin(), nodes.end(),
                                    [&](const test_node& node) { return &node == due; });
    places.push_back(static_cast<int>(found - nodes.begin()));
  }
  return places;
}

}  // namespace

TEST(timer_wheel, it_agrees_with_a_sorted_map_on_any_sequence_of_operations) {
  compare_with_the_model(false);
}

TEST(timer_wheel, by_order_it_agrees_with_a_map_sorted_by_time_and_order) {
  compare_with_the_model(true);
}

TEST(timer_wheel, without_a_timer_there_is_nothing_due_and_nothing_to_look_at) {
  timer_wheel wheel(false);
  EXPECT_EQ(wheel.next_look(), timer_wheel::never);
  EXPECT_EQ(wheel.pop_due(latest), nullptr);
  EXPECT_EQ(wheel.next_look(), timer_wheel::never);
  EXPECT_EQ(wheel.size(), 0u);
}

TEST(timer_wheel, equal_times_fire_in_order_of_arming_however_far_away_they_were) {
  timer_wheel wheel(false);
  std::array<test_node, 4> nodes;
  constexpr std::uint64_t when = 5'000'000'000;
  wheel.arm(nodes[2], when);
  EXPECT_TRUE(popped(wheel, nodes, 1'000'000'000).empty());
  wheel.arm(nodes[0], when);
  EXPECT_TRUE(popped(wheel, nodes, when - 1).empty());
  wheel.arm(nodes[3], when);
  wheel.arm(nodes[1], when - 4'000);  // in the past: rounded up to now, so before the others
  EXPECT_EQ(wheel.next_look(), when - 1);
  EXPECT_EQ(popped(wheel, nodes, when), (std::vector<int>{1, 2, 0, 3}));
}

TEST(timer_wheel, by_order_equal_times_fire_by_their_order_however_they_were_armed) {
  timer_wheel wheel(true);
  std::array<test_node, 4> nodes;
  const std::array<std::uint32_t, 4> orders{0xffff'ffffU, 7, 2, 0xffff'fff0U};  // 3, 0, 2, 1
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].order = orders[i];
  constexpr std::uint64_t when = 5'000'000'000;
  wheel.arm(nodes[0], when);
  wheel.arm(nodes[1], when);
  EXPECT_TRUE(popped(wheel, nodes, when - 3).empty());
  wheel.arm(nodes[2], when);
  EXPECT_TRUE(popped(wheel, nodes, when - 1).empty());
  wheel.arm(nodes[3], when);
  EXPECT_EQ(popped(wheel, nodes, when), (std::vector<int>{3, 0, 2, 1}));
}

TEST(timer_wheel, a_timer_armed_while_others_of_its_instant_fire_comes_after_them) {
  timer_wheel wheel(false);
  std::array<test_node, 3> nodes;
  wheel.arm(nodes[0], 100);
  wheel.arm(nodes[1], 100);
  EXPECT_EQ(wheel.pop_due(100), &nodes[0]);
  wheel.arm(nodes[0], 100);
  wheel.arm(nodes[2], 50);  // the wheel has passed 50
  EXPECT_EQ(popped(wheel, nodes, 100), (std::vector<int>{1, 0, 2}));
}

TEST(timer_wheel, the_last_nanosecond_that_fits_is_reached_and_not_before) {
  timer_wheel wheel(false);
  std::array<test_node, 2> nodes;
  wheel.arm(nodes[0], latest);
  wheel.arm(nodes[1], 1);
  EXPECT_EQ(popped(wheel, nodes, latest - 1), std::vector<int>{1});
  EXPECT_EQ(wheel.next_look(), latest);
  EXPECT_EQ(popped(wheel, nodes, latest), std::vector<int>{0});
}

TEST(timer_wheel, next_look_is_exact_for_few_timers_and_never_too_late_for_many) {
  timer_wheel wheel(false);
  std::vector<std::unique_ptr<test_node>> nodes;
  constexpr std::uint64_t near_end = 4'000'000;  // all of them begin in one slot of a high level
  for (std::uint64_t i = 0; i < 100; ++i) {
    nodes.push_back(std::make_unique<test_node>());
    wheel.arm(*nodes.back(), near_end - i * 7);
    const std::uint64_t first = near_end - i * 7;
    if (nodes.size() <= few) {
      EXPECT_EQ(wheel.next_look(), first);
    } else {
      EXPECT_LE(wheel.next_look(), first);
    }
  }
  // Looking when it says so always leads to the first one, in a bounded number of looks.
  std::uint64_t now = 0;
  for (int looks = 0; looks < 11 && wheel.size() == 100; ++looks) {
    now = wheel.next_look();
    if (wheel.pop_due(now) != nullptr) break;
  }
  EXPECT_EQ(now, near_end - 99 * 7);
  for (auto& node : nodes)
    if (node->armed()) wheel.cancel(*node);
}
